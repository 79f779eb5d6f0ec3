import type { Answer, Refusal } from './answer.js';
import { refusalAnswer } from './answer.js';
import type { GeneratedReply } from './generate.js';
import type { PrefixHit } from './prefix-cache.js';

/**
 * What a request was. `chat`: a call of a conversation, in any of the formats; `summary`: one of Spillway's own; `compaction`: a client's
 * wish that the provider compacts.
 */
export type RequestKind = 'chat' | 'summary' | 'compaction' | 'models' | 'embeddings' | 'other';

/** What a route made of a request. */
export interface Routed {
  readonly kind: RequestKind;
  readonly promptTokens: number | null;
  /** As in `ModelRequest`; undefined for what no model read. */
  readonly reads?: unknown;
  readonly prefix: PrefixHit | null;
  readonly reply: GeneratedReply | null;
  readonly answer: Answer;
}

/** An answer that no model had a part in. */
export function plain(kind: RequestKind, answer: Answer): Routed {
  return { kind, promptTokens: null, prefix: null, reply: null, answer };
}

/** A refusal before anything was counted. */
export function refused(kind: RequestKind, refusal: Refusal): Routed {
  return plain(kind, refusalAnswer(refusal));
}
