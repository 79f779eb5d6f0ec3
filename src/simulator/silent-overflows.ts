import type { Overflow } from './openai-errors.js';
import type { OverflowForm, PlannedChoice, PlannedReply, ReplyForm } from './reply-plan.js';

const SAID = 'This is what was left of the reply.';

/** A reply of this one choice, with so many prompt tokens reported for it. */
function replying(choice: PlannedChoice, promptTokens: (overflow: Overflow) => number): ReplyForm {
  return {
    where: 'reply',
    reply: (overflow): PlannedReply => ({
      kind: 'reply',
      choices: [choice],
      promptTokens: promptTokens(overflow),
      ignoresCap: true,
    }),
  };
}

const all = ({ messageTokens, functionTokens }: Overflow): number => messageTokens + functionTokens;
const wholeWindow = ({ limitTokens }: Overflow): number => limitTokens;
/** What is left where a prompt that is too long is cut to half of the window and two tokens. */
const halfWindow = ({ limitTokens }: Overflow): number => Math.floor(limitTokens / 2) + 2;

/** Overflows without an error: the reply's stop says it, or nothing but its usage does. */
export const SILENT_OVERFLOWS = {
  'stop-reason': replying({ text: '', stop: 'model_context_window_exceeded' }, all),
  'stop-reason-after-content': replying({ text: SAID, stop: 'model_context_window_exceeded' }, all),
  'length-without-content': replying({ text: '', stop: 'length' }, wholeWindow),
  'length-after-content': replying({ text: SAID, stop: 'length' }, wholeWindow),
  'empty-reply': replying({ text: '', stop: 'stop' }, () => 0),
  'above-window': replying({ text: SAID, stop: 'stop' }, all),
  'cut-prompt': replying({ text: SAID, stop: 'stop' }, halfWindow),
} as const satisfies Readonly<Record<string, OverflowForm>>;
