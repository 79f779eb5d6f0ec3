import { isSummaryPrompt } from '../core/compaction/headings.js';
import type { TokenCounter } from '../core/ports.js';
import { defaultReply } from './default-script.js';
import type { Asked, ProviderErrors } from './format.js';
import { say } from './reply-plan.js';
import type { PlannedReply, ReplyPlan, Script } from './reply-plan.js';
import { behaviourOf, summaryPlan } from './summariser.js';
import type { Summariser } from './summariser.js';
import { summaryText } from './summary-text.js';

const REASONING = 'What is asked comes first, then what was found out so far, then the next step.';

/** A compaction of the provider's own keeps to no limit of the request's, and may be larger than what it replaces. */
const SMALLEST_COMPACTION_ROOM_TOKENS = 1_000;

export interface PlannerOptions {
  readonly counter: TokenCounter;
  readonly script: Script;
  readonly summariser: Summariser;
  /** Words of a default reply. */
  readonly replyWords: number;
}

/** A turn of a conversation, a summary call of Spillway's, or a compaction that the client wants from the provider. */
export type CallKind = 'chat' | 'summary' | 'compaction';

export function callKind({ request, compacts }: Asked): CallKind {
  if (compacts) return 'compaction';
  return isSummaryPrompt(request.systemText) ? 'summary' : 'chat';
}

/** Decides what the model says, in all formats: summary calls are numbered over all of them. */
export function createPlanner(options: PlannerOptions): (asked: Asked, errors: ProviderErrors) => Promise<ReplyPlan> {
  let summaryCalls = 0;

  const plan = async (asked: Asked, errors: ProviderErrors): Promise<ReplyPlan> => {
    const { request } = asked;
    switch (callKind(asked)) {
      case 'compaction': {
        const room = Math.max(SMALLEST_COMPACTION_ROOM_TOKENS, request.promptTokens);
        return { ...say(summaryText({ ...request, outputCap: room }, options.counter)), ignoresCap: true };
      }
      case 'chat':
        return (await options.script(request)) ?? defaultReply(request, options.replyWords);
      case 'summary': {
        const call = summaryCalls;
        summaryCalls += 1;
        return summaryPlan(await behaviourOf(options.summariser, request, call), request, options.counter, errors);
      }
    }
  };

  return async (asked, errors) => {
    const planned = await plan(asked, errors);
    return planned.kind === 'reply' ? reasoned(planned, asked) : planned;
  };
}

/** With reasoning where the request wants it, without where it forbids it. */
function reasoned(plan: PlannedReply, { reasoning, compacts }: Asked): PlannedReply {
  if (reasoning === 'as-planned' || compacts) return plan;
  return {
    ...plan,
    choices: plan.choices.map((choice) => ({
      ...choice,
      reasoning: reasoning === 'never' ? undefined : (choice.reasoning ?? REASONING),
    })),
  };
}
