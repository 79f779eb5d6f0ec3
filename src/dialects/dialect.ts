import type { Message, Usage } from '../core/message.js';

/** The wire formats Spillway reads. The one that comes in is the one that goes out: nothing is translated. */
export type DialectName = 'chat-completions' | 'responses' | 'anthropic-messages';

/** A request as the core needs it. What is not named here stays in the body's own bytes. */
export interface ReadRequest {
  readonly model: string;
  readonly stream: boolean;
  /** The client asked for usage in its stream, or gets it unasked because it does not stream. */
  readonly includesUsage: boolean;
  /** Leading system and developer messages: part of the request, not of the chain (SPEC 1.5). */
  readonly instructions: readonly Message[];
  /** The chain, first to last. */
  readonly messages: readonly Message[];
  /** JSON of the rest of the fixed part: tools, functions, response schema. Counted, never changed. */
  readonly fixedJson: readonly string[];
  /** How many replies were asked for at once; at least 1. */
  readonly choices: number;
  /** The client's explicit output cap in tokens, or null. */
  readonly outputCap: number | null;
  /** A session id found in the body (SPEC 1.2), or null. */
  readonly session: string | null;
}

/**
 * One entry of a message list to be sent. `kept` is an index into the request's own list (instructions first, then
 * messages); `stored` is a wire message from the ledger (SPEC 1.6); `summary` is the content of a summary or a checkpoint
 * (SPEC 4.4, 7.4); `reduced` is one of the first two with other text in some tool results, by call id (SPEC 7.3).
 */
export type WireItem =
  | WireMessage
  | { readonly kind: 'summary'; readonly content: string }
  | { readonly kind: 'reduced'; readonly item: WireMessage; readonly results: ReadonlyMap<string, string> };

export type WireMessage =
  | { readonly kind: 'kept'; readonly index: number }
  | { readonly kind: 'stored'; readonly source: unknown };

/** One reply, folded from a stream or read whole. */
export interface Reply {
  /** One message per choice, by index; empty while nothing was said. */
  readonly messages: readonly Message[];
  /** The provider's stop reason of the first choice, as sent; null until it came. */
  readonly stopReason: string | null;
  /** True once every choice that was asked for has stopped; never with an error. */
  readonly finished: boolean;
  readonly usage: Usage | null;
  /** An error the provider sent inside a 200, as the body of an HTTP error would have it; null otherwise. */
  readonly error: string | null;
}

/** What an event adds, as far as relaying is concerned (SPEC 6.3). */
export interface EventMeaning {
  /** Text, reasoning, refusal, tool-call or media delta: after it nothing can be retried. */
  readonly hasContent: boolean;
  /** The event carries nothing but usage: hidden from a client that did not ask for it. */
  readonly usageOnly: boolean;
  readonly hasError: boolean;
  readonly ends: boolean;
}

/** Folds a stream's events to the reply a non-streaming request would have got. Never throws on strange events. */
export interface Folder {
  push(data: string, event: string | null): EventMeaning;
  reply(): Reply;
}

export interface SummaryCall {
  readonly model: string;
  readonly instructions: string;
  readonly input: string;
  readonly maxOutputTokens: number;
}

/** An error of Spillway's own, for the dialect's error form. */
export interface ErrorForm {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly field: string | null;
}

export interface Dialect {
  readonly name: DialectName;
  /** Path under the API root, for example `/chat/completions`. */
  readonly path: string;
  /** Null when the body is not a shape this dialect can read: it is then the provider's to judge. */
  read(body: unknown): ReadRequest | null;
  /**
   * The request with another message list. `text` is the body as it came: kept messages and all other fields are its
   * very characters (SPEC 4.3). `askForUsage` adds what makes a stream report usage.
   */
  write(
    text: string,
    items: readonly WireItem[],
    options: { readonly askForUsage: boolean; readonly alternate: boolean },
  ): string;
  /** `choices`: how many replies the request asked for, 1 if absent. */
  folder(choices?: number): Folder;
  /** A whole (non-streaming) reply. Null when the body is not one. */
  readReply(body: unknown): Reply | null;
  /** The message a summary is sent as (SPEC 4.4); also what is counted. The same content gives the same message. */
  summaryMessage(content: string): Message;
  /** A message with other text in some of its tool results; call ids, error marks and media stay (SPEC 7.3). */
  withResults(message: Message, results: ReadonlyMap<string, string>): Message;
  /** The body of a summary request: no tools, not streamed, not stored, the least reasoning (SPEC 5.6). */
  summaryBody(call: SummaryCall, upstreamHost: string): string;
  /** Whether a stop reason is the dialect's normal stop. */
  isNormalStop(stopReason: string): boolean;
  /** A reply of Spillway's own: the body of a whole one, or the text of a stream. `id` is unique, without a prefix. */
  answer(
    text: string,
    reply: { readonly model: string; readonly stream: boolean; readonly id: string; readonly createdAt: number },
  ): string;
  /** An event that a waiting client counts as life and ignores as content (SPEC 6.6). */
  keepAlive(reply: { readonly model: string; readonly id: string; readonly createdAt: number }): string;
  /** An error body as an event of a stream that has begun, and the stream's end. */
  streamError(body: string): string;
  /** Reads a wire message that the ledger stored. */
  readMessage(source: unknown): Message | null;
  errorBody(form: ErrorForm): string;
}
