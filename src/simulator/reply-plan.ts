import type { Delivery, Refusal } from './answer.js';
import type { ModelRequest } from './model-request.js';

/** A call of a tool to make; `arguments` is JSON text. An id is made up if none is given. */
export interface PlannedCall {
  readonly name: string;
  readonly arguments: string;
  readonly id?: string | undefined;
}

export interface PlannedChoice {
  readonly text?: string | undefined;
  /** Told before the text, and paid for like it. */
  readonly reasoning?: string | undefined;
  readonly refusal?: string | undefined;
  readonly calls?: readonly PlannedCall[] | undefined;
  /** Overrides the stop that follows from the content and the limit of output tokens. */
  readonly stop?: 'stop' | 'length' | 'tool_calls' | 'content_filter' | undefined;
}

/** What the model says. With fewer choices than the request wants, the last is said again. */
export interface PlannedReply {
  readonly kind: 'reply';
  readonly choices: readonly PlannedChoice[];
  /** Prompt tokens reported as read from the provider's cache. */
  readonly cachedTokens?: number | undefined;
  /** Says it all, whatever limit the request or the window sets. */
  readonly ignoresCap?: boolean | undefined;
  /** Breaks off with this error after so many pieces of a stream; a request that is not streamed gets the error alone. */
  readonly failure?: { readonly afterPieces: number; readonly refusal: Refusal } | undefined;
  readonly delivery?: Delivery | undefined;
}

/** Refuses as if the prompt did not fit, in the form and place the simulator is set to. */
export interface PlannedOverflow {
  readonly kind: 'overflow';
  /** The window to speak of; by default one that the prompt just exceeds. */
  readonly limitTokens?: number | undefined;
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
