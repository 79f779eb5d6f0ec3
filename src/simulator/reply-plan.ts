import type { Delivery, Refusal } from './answer.js';
import type { ModelRequest } from './model-request.js';
import type { Overflow } from './openai-errors.js';

/** A call of a tool to make; `arguments` is JSON text. An id is made up if none is given. */
export interface PlannedCall {
  readonly name: string;
  readonly arguments: string;
  readonly id?: string | undefined;
}

/** OpenAI's words for the end of a reply, and what others say where the window was full. */
export type Stop = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'model_context_window_exceeded';

export interface PlannedChoice {
  readonly text?: string | undefined;
  /** Told before the text, and paid for like it. */
  readonly reasoning?: string | undefined;
  readonly refusal?: string | undefined;
  readonly calls?: readonly PlannedCall[] | undefined;
  /** Overrides the stop that follows from the content and the limit of output tokens. */
  readonly stop?: Stop | undefined;
}

export interface Failure {
  readonly afterPieces: number;
  readonly refusal: Refusal;
  /** What ends the stream; the refusal's body as an event unless given. */
  readonly events?: string | undefined;
}

/** What the model says. With fewer choices than the request wants, the last is said again. */
export interface PlannedReply {
  readonly kind: 'reply';
  readonly choices: readonly PlannedChoice[];
  /** Prompt tokens reported as read from the provider's cache, in place of what the simulated one had. */
  readonly cachedTokens?: number | undefined;
  /** Reported in place of what the model read. */
  readonly promptTokens?: number | undefined;
  /** Says it all, whatever limit the request or the window sets. */
  readonly ignoresCap?: boolean | undefined;
  /** Breaks off with this error after so many pieces of a stream; a request that is not streamed gets the error alone. */
  readonly failure?: Failure | undefined;
  readonly delivery?: Delivery | undefined;
}

/** An error that says that a prompt does not fit. */
export interface RefusalForm {
  /**
   * `http`: an error status. In a stream instead, after a 200: `first`, before anything else; `stream`, behind the role and
   * before any content; `after-content`, in the middle of a reply. A request that is not streamed gets the status.
   */
  readonly where: 'http' | 'first' | 'stream' | 'after-content';
  readonly refusal: (overflow: Overflow, request: ModelRequest) => Refusal;
  /** The text of the events in a stream; unless given, the refusal's body as one event without a name. */
  readonly events?: ((overflow: Overflow, request: ModelRequest) => string) | undefined;
}

/** No error but a reply: cut, empty, or made of a part of the prompt. Only its stop or its usage tells. */
export interface ReplyForm {
  readonly where: 'reply';
  readonly reply: (overflow: Overflow) => PlannedReply;
}

/** How a prompt that does not fit is answered. */
export type OverflowForm = RefusalForm | ReplyForm;

/** Answers as if the prompt did not fit. */
export interface PlannedOverflow {
  readonly kind: 'overflow';
  /** The window to speak of; by default one that the prompt just exceeds. */
  readonly limitTokens?: number | undefined;
  /** By default the one the simulator is set to. */
  readonly form?: OverflowForm | undefined;
}

export type ReplyPlan = PlannedReply | Refusal | PlannedOverflow;

/** Decides what to answer; null leaves it to the default reply. A promise holds the request until it is settled. */
export type Script = (request: ModelRequest) => ReplyPlan | null | Promise<ReplyPlan | null>;

/** A reply of text. */
export function say(text: string, delivery: Delivery = {}): PlannedReply {
  return { kind: 'reply', choices: [{ text }], delivery };
}

/** A reply that calls tools, all at once. */
export function callTools(...calls: readonly PlannedCall[]): PlannedReply {
  return { kind: 'reply', choices: [{ calls }] };
}

/** No reply at all: the socket is closed, or left open in silence, before a status line. */
export function noAnswer(how: 'close' | 'stall'): PlannedReply {
  return say('', { cut: { after: 'nothing', how } });
}
