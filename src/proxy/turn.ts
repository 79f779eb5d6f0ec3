import type { Limits } from '../core/budget.js';
import type { Purse } from '../core/compaction/purse.js';
import type { Ruler } from '../core/estimate.js';
import { isTypedUserMessage } from '../core/message.js';
import type { Hash, NewConversation, OpenedTurn, SummaryPolicy, TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
import type { WindowSource } from '../core/windows.js';
import type { Dialect, ReadRequest, WireMessage } from '../dialects/dialect.js';
import type { ProxyRequest } from './request.js';
import type { SpillwayHeaders } from './spillway-headers.js';
import type { TurnWriter } from './turn-writer.js';

/** A body as it came and as it reads. */
export interface RequestBody {
  /** The very bytes the client sent, compressed or not, unless `rewritten`. */
  readonly original: Uint8Array;
  /** Envelopes of Spillway's own were opened, which no upstream can read. */
  readonly rewritten: boolean;
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
  /** To be called when it is over: lets clients of other processes append to where its request ends. Never rejects. */
  leave(): Promise<void>;
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

/** The latest typed user message of a turn's spine: what it does is done for that one. Undefined if there is none. */
export function openerOf({ spine }: Turn): SpineNode | undefined {
  return spine.findLast((node) => !node.command && isTypedUserMessage(node.message));
}

/**
 * Whether a turn's request ends in a typed user message: otherwise it goes on with what one opened. Some clients put a system message
 * behind what the user typed (the date, what changed around them); it says nothing in the user's place.
 */
export function startsTurn(turn: Turn): boolean {
  const opener = openerOf(turn);
  return opener !== undefined && opener === turn.spine.findLast(({ message }) => message.role !== 'system');
}
