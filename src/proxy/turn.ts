import type { Limits } from '../core/budget.js';
import type { Purse } from '../core/compaction/purse.js';
import type { Ruler } from '../core/estimate.js';
import type { Hash, NewConversation, OpenedTurn, SummaryPolicy, TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
import type { WindowSource } from '../core/windows.js';
import type { Dialect, ReadRequest, WireMessage } from '../dialects/dialect.js';
import type { ProxyRequest } from './request.js';
import type { SpillwayHeaders } from './spillway-headers.js';
import type { TurnWriter } from './turn-writer.js';

/** A body as it came and as it reads. */
export interface RequestBody {
  /** The very bytes the client sent, compressed or not. */
  readonly original: Uint8Array;
  /** Without its content encoding. */
  readonly text: string;
  /** Bytes of `text` in UTF-8. */
  readonly textBytes: number;
}

/** What is believed of a model's window at one upstream, for one tenant (SPEC 6.5). */
export interface ModelBelief {
  readonly windowTokens: number | null;
  readonly source: WindowSource;
  /** The model's largest output in tokens, null if unknown. */
  readonly capability: number | null;
}

/** One request of a client from the moment its nodes are in the ledger. Fixed for its whole life. */
export interface Turn {
  readonly request: ProxyRequest;
  readonly dialect: Dialect;
  readonly read: ReadRequest;
  readonly body: RequestBody;
  readonly options: SpillwayHeaders;
  readonly conversation: NewConversation;
  readonly policy: SummaryPolicy;
  /** Every message from the conversation's first to the request's last, with what the ledger knows of it. */
  readonly spine: readonly SpineNode[];
  /** How each spine message is sent: as this request carries it, or from the ledger (SPEC 1.6, 4.3). */
  readonly wire: readonly WireMessage[];
  /** The ledger supplied a part, so that the request is rewritten even when nothing is substituted. */
  readonly thin: boolean;
  readonly instructionDigests: readonly string[];
  readonly hash: Hash;
  /** What everything done for this request may cost together (SPEC 5.6). */
  readonly purse: Purse;
  readonly opened: OpenedTurn;
  readonly belief: ModelBelief;
  readonly limits: Limits | null;
  readonly measure: Measure;
  readonly writer: TurnWriter;
  /** Aborted when the client leaves. */
  readonly closed: AbortSignal;
}

/** Counts a turn's parts when somebody has to know, and each part once. */
export interface Measure {
  /** Upper bound of a body's tokens by its bytes (SPEC 7.9), null where there is none. Runs no tokenizer. */
  bound(bodyBytes: number): number | null;
  counter(): Promise<TokenCounter>;
  ruler(): Promise<Ruler>;
  /** Counts made here for nodes that the store holds without one. */
  freshCounts(): ReadonlyMap<string, number>;
  /** The tokenizer used so far; null while none was needed. */
  tokenizer(): string | null;
}
