import type { ModelRequest } from '../../src/simulator/model-request.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { PlannedCall, PlannedReply } from '../../src/simulator/reply-plan.js';
import { padding } from '../support/chat.js';

/** Replies that call the tool before the one that ends the work. */
export const ROUNDS = 42;
/** Tokens; the results of the loop alone are more than four times as many. */
export const WINDOW = 12_000;
const RESULT_TOKENS = 1_100;

export const INSTRUCTIONS = 'You look through all parts of a harbour and remember what is written there.';
export const TASK = 'Look through every part. The first thing to remember is FACT-harbour=blue-7.';
export const QUESTION = 'What are the values of FACT-harbour and FACT-berth?';
export const DONE = 'I have looked through every part.';
export const ANSWER = 'The value of FACT-harbour is blue-7. The value of FACT-berth is north-4.';

export const TOOL = {
  name: 'look',
  description: 'Looks into one part of the harbour and tells what is there.',
  parameters: {
    type: 'object' as const,
    properties: { part: { type: 'integer' } },
    required: ['part'],
    additionalProperties: false,
  },
};

/** What the tool says of the part named in the JSON text of a call's arguments; begins with `markOf` that part. */
export function look(json: string): string {
  const { part } = JSON.parse(json) as { part: number };
  return padding(`${markOf(part)}: ${part === 2 ? 'FACT-berth=north-4' : 'nothing'}.`, RESULT_TOKENS);
}

/** A word that stands in the result of one call alone. */
export function markOf(part: number): string {
  return `mark-${String(part).padStart(3, '0')}`;
}

/** A model that calls the tool for `ROUNDS` replies, every seventh time for two parts at once, and answers what it is asked then. */
export function createWorker() {
  let replies = 0;
  let parts = 0;
  const nextCall = (): PlannedCall => ({ name: TOOL.name, arguments: JSON.stringify({ part: parts++ }) });
  return {
    /** How many calls it made. */
    get parts() {
      return parts;
    },
    reply(request: ModelRequest): PlannedReply | null {
      const round = replies++;
      if (round > ROUNDS || request.toolNames.length === 0) return null;
      if (round === ROUNDS) return say(DONE);
      const { choices } = callTools(...(round % 7 === 6 ? [nextCall(), nextCall()] : [nextCall()]));
      const reasoning = `Part ${parts} is the next one to look at.`;
      return { kind: 'reply', choices: choices.map((choice) => ({ ...choice, reasoning })) };
    },
  };
}
