import type { TokenCounter } from '../core/ports.js';
import type { Refusal } from './answer.js';
import type { GeneratedReply } from './generate.js';
import type { ModelRequest } from './model-request.js';
import type { PrefixCache } from './prefix-cache.js';
import type { PromptTokens } from './prompt-tokens.js';
import type { OverflowForm, RefusalForm, Stop } from './reply-plan.js';

/** What a request comes to, whatever the wire format. */
export interface Asked {
  readonly request: ModelRequest;
  readonly tokens: PromptTokens;
  /** Whether the model reasons: as its script says, or at any rate, or not at all. */
  readonly reasoning: 'as-planned' | 'always' | 'never';
  /** Wants the conversation compacted by the provider, and no reply. */
  readonly compacts: boolean;
}

/** What identifies a reply besides what it says. */
export interface ReplyHead {
  readonly id: string;
  /** Begins the ids of its parts; unlike any other reply's. */
  readonly serial: string;
  /** Seconds since the epoch. */
  readonly createdAt: number;
  readonly model: string;
}

export interface Spoken<A extends Asked> {
  readonly head: ReplyHead;
  readonly asked: A;
  readonly reply: GeneratedReply;
}

/** What is particular to a wire format and the provider that speaks it. */
export interface FormatTraits {
  /** What a request is that cannot be read. */
  readonly kind: 'chat' | 'compaction';
  /** What the ids of replies and of calls begin with. */
  readonly ids: { readonly reply: string; readonly call: string };
  /** The provider's own answer to a prompt that does not fit. */
  readonly overflow: OverflowForm;
  /** Pieces of a stream that come before an error, by where it breaks off. */
  readonly piecesBefore: Readonly<Record<Exclude<RefusalForm['where'], 'http'>, number>>;
  /** Prompt and explicit output limit have to fit together; else the output is cut at the end of the window. */
  readonly refusesCap: boolean;
  /** The stop of a reply that the end of the window cut. */
  readonly stopAtWindow: Stop;
  readonly errors: ProviderErrors;
}

/** A wire format: how a provider reads a request of it, refuses it, and writes a reply. */
export interface Format<A extends Asked> extends FormatTraits {
  createCache(counter: TokenCounter): PrefixCache;
  /** Reads a parsed body and judges it; the refusal names what is at fault, in the provider's words. */
  read(body: unknown): A | Refusal;
  /** The body of a whole reply. */
  whole(spoken: Spoken<A>): unknown;
  /** The events of a stream that says the same. */
  stream(spoken: Spoken<A>): readonly string[];
  /** The event that breaks a stream off behind `afterPieces` events. */
  failure(spoken: Spoken<A>, refusal: Refusal, afterPieces: number): string;
  /** Remembers a reply that was made in full. */
  keep(spoken: Spoken<A>): void;
  /** A refusal with what the provider adds to each, the id of the request for one. */
  refusal(refusal: Refusal, requestId: string): Refusal;
}

/** Failures every provider knows, each in its own form. */
export interface ProviderErrors {
  wrongKey(shown: string): Refusal;
  rateLimited(retryAfterSeconds: number): Refusal;
  serverError(): Refusal;
}
