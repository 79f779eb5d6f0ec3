import type { Refusal } from './answer.js';
import type { ModelRequest } from './model-request.js';
import type { Overflow } from './openai-errors.js';
import type { RefusalForm } from './reply-plan.js';

/** What providers state of a prompt that does not fit; in tokens where nothing else is said. */
export interface OverflowNumbers {
  readonly limit: number;
  readonly input: number;
  /** The explicit output cap; 0 without one. */
  readonly output: number;
  readonly total: number;
  /** `total` above the limit. */
  readonly excess: number;
  readonly characters: number;
  readonly model: string;
}

/** A body that is sent with these numbers in it: text as it is, anything else as JSON. */
export type OverflowBody = (numbers: OverflowNumbers) => unknown;

/** An error status with this body, streamed or not. */
export function overHttp(status: number, body: OverflowBody): RefusalForm {
  return { where: 'http', refusal: (...asked) => refusalOf(status, body(numbersOf(...asked))) };
}

/**
 * In a stream these events after a 200, before any content; otherwise an error status with the body. `where` tells whether
 * a chunk with the role comes first. Unless given, the events are one without a name that holds the body.
 */
export function inStream(
  where: 'first' | 'stream',
  status: number,
  body: OverflowBody,
  events?: (numbers: OverflowNumbers) => string,
): RefusalForm {
  return {
    ...overHttp(status, body),
    where,
    events: events === undefined ? undefined : (...asked) => events(numbersOf(...asked)),
  };
}

/** The sentence that OpenAI coined and most who are compatible with it repeat. */
export function modelLimit({ limit, total, input, output }: OverflowNumbers): string {
  return (
    `This model's maximum context length is ${limit} tokens. However, you requested ${total} tokens (${input} in the ` +
    `messages, ${output} in the completion). Please reduce the length of the messages or completion.`
  );
}

function refusalOf(status: number, body: unknown): Refusal {
  return { kind: 'refusal', status, headers: { 'content-type': contentTypeOf(body) }, body };
}

function contentTypeOf(body: unknown): string {
  if (typeof body !== 'string' || body.startsWith('"')) return 'application/json';
  if (/^<!doctype/i.test(body)) return 'text/html';
  return /^(?:id|event|data):/.test(body) ? 'text/event-stream' : 'text/plain';
}

function numbersOf(overflow: Overflow, request: ModelRequest): OverflowNumbers {
  const { limitTokens: limit, messageTokens, functionTokens, outputCap } = overflow;
  const input = messageTokens + functionTokens;
  const output = outputCap ?? 0;
  return {
    limit,
    input,
    output,
    total: input + output,
    excess: input + output - limit,
    characters: request.messages.reduce((sum, { text }) => sum + text.length, 0),
    model: request.model,
  };
}
