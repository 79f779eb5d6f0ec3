import type { OverflowFigures } from '../core/errors.js';
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
  /** Id of the reply that the upstream puts before `messages` by itself (SPEC 1.7), or null. */
  readonly continues: string | null;
  /** Of `messages`, those that only name an item the upstream holds: its id, by index. What stands at that index means nothing. */
  readonly references: ReadonlyMap<number, string>;
  /** False where the upstream reads more than the body shows (held history, stored prompts, hosted tools): bytes bound nothing (SPEC 7.9). */
  readonly selfContained: boolean;
  /** False where the upstream holds instructions and tools too, which the ledger does not: such a request can only pass as it came (SPEC 1.7). */
  readonly rewritable: boolean;
  /** The last thing in the list asks the upstream itself to compact; it is not among `messages`. */
  readonly asksToCompact: boolean;
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

/** Why an answer, or a part of one, was passed on without being read. */
export type Unread = 'too_large' | 'too_deep' | 'malformed' | 'encoded';

/** One reply, folded from a stream or read whole. */
export interface Reply {
  /** One message per choice, by index; where `follows`, one after the other. Empty while nothing was said. */
  readonly messages: readonly Message[];
  /** The messages are one reply, each the next one's predecessor, and not choices beside each other. */
  readonly follows: boolean;
  /** Ids by which a later request may refer to it, each with the index of its message; the id of the whole names the last. */
  readonly references: readonly { readonly id: string; readonly message: number }[];
  /** The provider's stop reason of the first choice, as sent; null until it came. */
  readonly stopReason: string | null;
  /** True once every choice that was asked for has stopped; never with an error. */
  readonly finished: boolean;
  readonly usage: Usage | null;
  /** Why a part of it could not be read, so that the messages are not all that was said; null if everything was. */
  readonly unread: Unread | null;
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
  /** Where the input is too long (SPEC 7.7): its tokens and the most that would fit; null for any other error. */
  readonly overflow: OverflowFigures | null;
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly field: string | null;
}

/** What a response of Spillway's own says of itself. */
export interface OwnResponse {
  readonly model: string;
  /** Unique, without a prefix. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** An item of a request that stands for a history that was compacted. */
export interface CompactedItem {
  /** What its maker put in it, for nobody else to read. */
  readonly content: string;
  /** Where that stands in the request, for errors. */
  readonly field: string;
  /** Nothing but instructions is before it. */
  readonly isFirst: boolean;
}

/** How a format has the provider compact a history, and stand one item for it. */
export interface CompactionForm {
  /** Path under the API root of a request for that and nothing else. */
  readonly path: string;
  /** What the last item of an ordinary request is called that asks for it. */
  readonly trigger: string;
  /**
   * The request `text` with each compacted item for which `standsFor` knows it replaced by what it stands for: instructions, as wire
   * messages, and the message a summary's content is sent as (SPEC 4.4). All other characters stay.
   */
  expand(
    text: string,
    standsFor: (item: CompactedItem) => { readonly pinned: readonly unknown[]; readonly content: string } | null,
  ): string;
  /** An answer of Spillway's own: one item that holds `content`. `alone`: to a request by `path`, which is never streamed. */
  answer(content: string, reply: OwnResponse & { readonly stream: boolean; readonly alone: boolean }): string;
}

export interface Dialect {
  readonly name: DialectName;
  /** Path under the API root, for example `/chat/completions`. */
  readonly path: string;
  /** Headers that a request of Spillway's own needs in this format, where the client's has none of the name. */
  readonly headers: Readonly<Record<string, string>>;
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
  /** Tokens that `summaryBody` asks for beside the summary's own, for the model's reasoning. */
  summaryReasoningTokens(model: string, upstreamHost: string): number;
  /** Whether a stop reason is the dialect's normal stop. */
  isNormalStop(stopReason: string): boolean;
  /** A reply of Spillway's own: the body of a whole one, or the text of a stream. */
  answer(text: string, reply: OwnResponse & { readonly stream: boolean }): string;
  /** An event that a waiting client counts as life and ignores as content (SPEC 6.6). `sent`: how many it got before. */
  keepAlive(reply: OwnResponse, sent: number): string;
  /**
   * How the events of a stream go on behind `sent` keep-alives, at least one: each event's data, in order, as it is to be sent, or null
   * where it is left out (SPEC 6.6). Null in place of the function: as they are.
   */
  resume(sent: number): ((data: string) => string | null) | null;
  /**
   * A whole reply's body as the text of a stream that says the same, to its end: for a client that was promised one (SPEC 6.6).
   * Null if the body is no reply.
   */
  streamOf(body: string, options: { readonly includesUsage: boolean }): string | null;
  /** An error body as an event of a stream that has begun, and the stream's end. */
  streamError(body: string, reply: OwnResponse): string;
  /** Reads a wire message that the ledger stored. */
  readMessage(source: unknown): Message | null;
  errorBody(form: ErrorForm): string;
  /** How clients have the provider itself compact; null in a format that has no item to stand for what was compacted. */
  readonly compaction: CompactionForm | null;
}
