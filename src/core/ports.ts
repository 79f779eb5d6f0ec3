import type { Media, Outcome, Usage } from './message.js';
import type { NewNode, Node, SummaryMetadata } from './node.js';
import type { LedgerUpkeep } from './upkeep.js';
import type { LearnedWindow, WindowKey } from './windows.js';

/** A one-shot digest of text: 32 characters of base64url, 192 bits of SHA-256. */
export type Hash = (text: string) => string;

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** An unguessable string of URL-safe characters, at least 96 bits of chance. */
export type UniqueId = () => string;

/** Counts with one tokenizer. Synchronous: its ranks are loaded before one is handed out. */
export interface TokenCounter {
  /** The name stored beside every count it made, for example `o200k_base`. */
  readonly tokenizer: string;
  /** Exact tokens of `text`; time is at most n log n in its length, whatever it holds. */
  count(text: string): number;
  /** The provider's price of an image, a recording or a file in tokens; an upper bound where it cannot be known. */
  countMedia(media: Media): number;
}

/** Which summary may stand on a spine (SPEC 3.4). */
export type SummaryPolicy = 'session' | 'spine';

export interface ConversationKey {
  readonly tenant: string;
  /** `c_` and 30 characters of base64url. */
  readonly id: string;
}

/** What a conversation is created with, by the first turn that names it. */
export interface NewConversation extends ConversationKey {
  readonly dialect: string;
  /** Version of the canonical form its ids were made with (SPEC 1.4). */
  readonly canonicalVersion: number;
  /** The name a client gave it (SPEC 1.2), and the session it belongs to; both only for people. */
  readonly name: string | null;
  readonly session: string | null;
}

export interface Conversation extends NewConversation {
  /** ROOT while it has no node. */
  readonly head: string;
  /** The one active summary under the `session` policy; under `spine`, the newest. Null before any. */
  readonly activeSummary: string | null;
  readonly createdAt: number;
  readonly usedAt: number;
  /** When it was deleted; null while it was not. A turn that carries its history brings it back (SPEC 2.3, 2.6). */
  readonly deletedAt: number | null;
}

/**
 * A contiguous run of a spine. Ids name whole prefixes (SPEC 1.4), so it lies on a spine exactly if `last` stands there with
 * `count - 1` nodes before it of which the first is `first`.
 */
export interface Segment {
  readonly first: string;
  readonly last: string;
  readonly count: number;
}

/** A summary as a view needs it, with the segment that it stands for. */
export interface Summary extends Segment {
  readonly id: string;
  /** Marker line included: the stored content. */
  readonly content: string;
  readonly tokens: number | null;
  readonly tokenizer: string | null;
}

/**
 * A text that belongs to requests, not to the chain, and is stored once by its digest: a leading system or developer message
 * (SPEC 1.5), or a reduction (SPEC 4.6).
 */
export interface Instruction {
  readonly digest: string;
  readonly content: string;
}

/**
 * What is remembered at a point of a spine and holds for every head that descends from it.
 * `latched`: compaction did not help here (SPEC 5.11). `overflowed`: an overflow was seen too late to retry, or a prompt
 * was cut in silence, so the next turn compacts first (SPEC 6.3).
 */
export interface Mark {
  readonly kind: 'latched' | 'overflowed';
  readonly head: string;
  /** Tokens of the view when it was set. */
  readonly tokens: number;
  /** Digest of the model, the window and the settings it holds for. */
  readonly scope: string;
}

/** A finished call whose dispatched messages were estimated and whose usage was reported: what calibrates (SPEC 9.4). */
export interface Match {
  readonly estimatedTokens: number;
  readonly measuredTokens: number;
}

export interface OpenTurn {
  readonly conversation: NewConversation;
  readonly policy: SummaryPolicy;
  /** The whole spine of the request, first node to last; at least one id. */
  readonly chain: readonly string[];
  /** Builds the node at an index of `chain`; asked only for those the store lacks, each once, in order. */
  node(index: number): NewNode;
  readonly instructions: readonly Instruction[];
  /** False for a spawned turn: nothing it writes moves HEAD (SPEC 8.3). */
  readonly advanceHead: boolean;
  /** Where HEAD must still be, ROOT for a conversation that must not be there yet; null where it may be anywhere (SPEC 1.6). */
  readonly expectedHead: string | null;
  readonly model: string;
  /** Name of the tokenizer whose counts are wanted, or null when none are. */
  readonly tokenizer: string | null;
}

export interface OpenedTurn {
  readonly head: string;
  /** How many of `chain`, from its start, were there before: what is known is a prefix (SPEC 1.4). */
  readonly known: number;
  /** The summary that is active on this spine under the policy, or null. */
  readonly active: Summary | null;
  /** Chain ids that are commands or answers to one (SPEC 4.9), in order. */
  readonly commands: readonly string[];
  /** Stored counts by node id, for the chain behind the active summary; absent where never counted or not asked. */
  readonly counts: ReadonlyMap<string, number>;
  /** The latest match on this spine for this model: the one whose head lies deepest. */
  readonly match: Match | null;
  /** The deepest mark of each kind on this spine. */
  readonly marks: readonly Mark[];
}

/** The manifest of a call: enough to render its view again (SPEC 4.6). */
export interface Manifest {
  readonly version: 1;
  /** Last chain node of the request. */
  readonly head: string;
  readonly summary: string | null;
  /** Covered system messages that stayed, in order (SPEC 4.8). */
  readonly pinned: readonly string[];
  /** Chain nodes no model reads: commands and their answers. */
  readonly omitted: readonly string[];
  /** Digests of the leading instructions. */
  readonly instructions: readonly string[];
  /** Digest of the view's request-local reduction as JSON, stored once like an instruction; null if there was none. */
  readonly reduction: string | null;
}

/** One upstream request made for a client (SPEC 2.5). What it read follows from its manifest: see `readsOf`. */
export interface Call {
  readonly id: string;
  readonly conversation: string;
  readonly model: string;
  /** Base URL of the upstream, without credentials. */
  readonly upstream: string;
  /** What Spillway did: `none`, `auto`, `reactive`, … */
  readonly action: string;
  readonly manifest: Manifest;
  /** Replies recorded from what was relayed, one per choice. */
  readonly replies: readonly string[];
  readonly outcome: Outcome;
  /** HTTP status of the upstream's answer; null if there was none. */
  readonly status: number | null;
  readonly stopReason: string | null;
  /** The rule by which its answer told of an overflow, in words or by its usage (SPEC 6.2); null if it did not. */
  readonly overflow: string | null;
  /** Local estimate of exactly the dispatched messages, uncalibrated; null when nothing had to be counted. */
  readonly estimatedTokens: number | null;
  readonly usage: Usage | null;
  /** SHA-256 of the dispatched body, base64url. */
  readonly bodyDigest: string;
  readonly startedAt: number;
  readonly overheadMs: number;
  readonly durationMs: number;
}

export interface CloseTurn {
  readonly conversation: ConversationKey;
  /** Null when Spillway answered by itself, so that no upstream request was made. */
  readonly call: Call | null;
  /** What `call.manifest.reduction` names; null where it names nothing. */
  readonly reduction: Instruction | null;
  /** Each follows the request's last node (choices beside each other) or the reply before it (items of one reply). */
  readonly replies: readonly NewNode[];
  /**
   * HEAD moves to the first reply, and on over those that follow one another from it, if that extends HEAD and the outcome is
   * `complete` (SPEC 2.3, 8.2).
   */
  readonly advanceHead: boolean;
  /** Counts made in this turn for nodes stored without one by this tokenizer; the only thing a node's row is ever given later. */
  readonly counts: ReadonlyMap<string, number>;
  readonly tokenizer: string | null;
  readonly marks: readonly Mark[];
}

/** The right to compact a spine while it lasts (SPEC 5.11). */
export interface Lease {
  /** The end of the spine it was given for. */
  readonly head: string;
  /** Grows with every lease of a conversation, so that a holder that slept through its end cannot write late. */
  readonly fence: number;
}

export interface CommitSummary {
  readonly conversation: ConversationKey;
  readonly policy: SummaryPolicy;
  readonly node: NewNode & { readonly metadata: SummaryMetadata };
  /** The spine that was frozen, first node to last. */
  readonly chain: readonly string[];
  /** The summary that was active on it at the start; any other now is `stale` (SPEC 5.8). */
  readonly expectedActive: string | null;
  /** For manual: HEAD must still descend through the segment. */
  readonly headMustDescend: boolean;
  /** What it was made under; `stale` if another was given for its spine since. */
  readonly lease: Lease | null;
}

export type CommitOutcome = { readonly outcome: 'committed' } | { readonly outcome: 'stale'; readonly reason: string };

/** A node of a spine with what a thin client or a compaction needs of it. */
export interface Spine {
  readonly conversation: Conversation;
  /** First to last. */
  readonly nodes: readonly Node[];
  readonly active: Summary | null;
}

/**
 * The store of one conversation: atomic and coarse (SPEC 2.7). Every method is one transaction; all reject with
 * `SpillwayError('store_unavailable')` when the store cannot answer, and then nothing was written.
 */
export interface Ledger extends LedgerUpkeep {
  /**
   * Appends what is missing of a request's chain and tells what a view needs. HEAD moves to the chain's end unless
   * `advanceHead` is false (SPEC 8.1). Lifts the tombstones of the conversation and of the chain (SPEC 2.3). Rejects with
   * `conversation_not_found` if the id belongs to another tenant, `head_moved` if `expectedHead` is given and is not HEAD,
   * `store_unavailable` while it is being imported.
   */
  openTurn(turn: OpenTurn): Promise<OpenedTurn>;
  /** Records a call with its replies; one that is recorded already changes nothing. Behind a deleted head they are deleted too. */
  closeTurn(turn: CloseTurn): Promise<{ readonly head: string }>;
  /** Writes the summary node and the pointer, or nothing (SPEC 3.5). Never moves HEAD (SPEC 8.5). */
  commitSummary(commit: CommitSummary): Promise<CommitOutcome>;
  /**
   * An explicit move (checkout, rewind). Rejects with `node_not_found` for an unknown or deleted node or a summary, `head_moved`
   * if `expected` is given and is not HEAD (SPEC 8.1).
   */
  moveHead(conversation: ConversationKey, to: string, expected: string | null): Promise<void>;
  setMark(conversation: ConversationKey, mark: Mark): Promise<void>;
  /** Null if there is no such conversation for this tenant; tenant null asks as the operator. */
  conversation(id: string, tenant: string | null): Promise<Conversation | null>;
  /**
   * The walk from `head` (null: HEAD) back to ROOT, first node first. Rejects with `conversation_not_found`,
   * `node_not_found`, the latter for a deleted node too.
   */
  spine(conversation: ConversationKey, head: string | null, policy: SummaryPolicy): Promise<Spine>;
  /** Every node in the order written, summaries and deleted ones included, `limit` at a time after `afterSeq`. */
  nodes(conversation: ConversationKey, afterSeq: number, limit: number): Promise<readonly Node[]>;
  node(conversation: ConversationKey, id: string): Promise<Node | null>;
  call(conversation: ConversationKey, id: string): Promise<Call | null>;
  /** Calls in the order closed; newest last. */
  calls(conversation: ConversationKey, limit: number): Promise<readonly Call[]>;
  /** Calls that recorded this node as a reply: whether it was ever complete is theirs to say (SPEC 2.3). */
  callsOfReply(conversation: ConversationKey, reply: string): Promise<readonly Call[]>;
  instruction(conversation: ConversationKey, digest: string): Promise<Instruction | null>;
  /**
   * The right to compact the spine `chain` (first node to last) for `durationMs`. Null while another's lasts that was given for a
   * node of this chain: a compaction of a fork stands in nobody's way (SPEC 5.11).
   */
  acquireLease(conversation: ConversationKey, chain: readonly string[], durationMs: number): Promise<Lease | null>;
  /** False if another was given for its spine since; a lease that only ran out begins anew. */
  renewLease(conversation: ConversationKey, lease: Lease, durationMs: number): Promise<boolean>;
  /** Ends it; one that is not there any more changes nothing. */
  releaseLease(conversation: ConversationKey, lease: Lease): Promise<void>;
  close(): Promise<void>;
}

/** A row of the list of conversations. */
export interface ConversationEntry extends Conversation {
  /** Nodes stored, deleted ones included until they are erased. */
  readonly nodes: number;
  readonly calls: number;
  readonly summaries: number;
  /** UTF-8 bytes of the content of its nodes and of its instructions. */
  readonly bytes: number;
}

/** Where a page of a list ended. */
export interface ListPosition {
  readonly usedAt: number;
  readonly id: string;
}

export interface TenantUsage {
  readonly tenant: string;
  readonly conversations: number;
  readonly bytes: number;
}

/** Where an id that an upstream gave to a reply or to an item of it leads (SPEC 1.2). */
export interface Reference {
  readonly id: string;
  readonly conversation: string;
  readonly node: string;
}

/** What crosses conversations: may lag, can be rebuilt (SPEC 2.7). */
export interface Directory {
  /** Those that are not deleted, latest used first, of equals the greater id; `before` is where to go on. Tenant null asks as the operator. */
  list(tenant: string | null, limit: number, before: ListPosition | null): Promise<readonly ConversationEntry[]>;
  /** Those used longest ago first, deleted ones included: what is erased next (SPEC 2.6). Tenant null asks for all. */
  oldest(tenant: string | null, limit: number): Promise<readonly ConversationEntry[]>;
  /** What each tenant keeps, in no order. */
  tenants(): Promise<readonly TenantUsage[]>;
  /** Remembers them for a tenant; a newer one of the same id replaces the older. They go with their conversation. */
  refer(tenant: string, references: readonly Reference[]): Promise<void>;
  /** What is known of these ids, by id. */
  resolve(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, Reference>>;
  /** Those that have not expired, the latest learned first. Tenant null asks as the operator. */
  learnedWindows(tenant: string | null, limit: number): Promise<readonly LearnedWindow[]>;
  /** Stores one; a smaller one for the same key stays while it has not expired (SPEC 6.5). */
  learnWindow(window: LearnedWindow): Promise<void>;
  /** Raises what is stored for a key to these tokens if that is less; stores nothing where nothing is. */
  widenWindow(key: WindowKey, tokens: number): Promise<void>;
  /** False if there was none. */
  forgetWindow(key: WindowKey): Promise<boolean>;
  /** Forgets every window a tenant has learned. */
  forgetWindows(tenant: string): Promise<void>;
}

/**
 * What processes on one store share beside the ledger: values that belong to a conversation, may vanish at any time, and go with it
 * when it is erased.
 */
export interface SharedCache {
  get(conversation: ConversationKey, field: string): Promise<string | null>;
  /** Kept for `durationMs` at most. */
  set(conversation: ConversationKey, field: string, value: string, durationMs: number): Promise<void>;
  delete(conversation: ConversationKey, field: string): Promise<void>;
}

/** A summary call, in no wire format. */
export interface SummaryRequest {
  readonly instructions: string;
  readonly input: string;
  /** Most tokens of visible output. */
  readonly maxOutputTokens: number;
}

/** What came back from a summary call. `overflow`: its input did not fit; `failed` carries no text of the provider's. */
export type SummaryResponse =
  | {
      readonly kind: 'text';
      readonly text: string;
      /** True only for the dialect's normal stop. */
      readonly stopped: boolean;
      readonly stopReason: string | null;
      readonly calledTool: boolean;
      readonly reasoningOnly: boolean;
      readonly usage: Usage | null;
    }
  | { readonly kind: 'overflow'; readonly limitTokens: number | null }
  | { readonly kind: 'failed'; readonly reason: string };

/** Asks a model for one summary; rejects only when `signal` aborts. */
export type Summarizer = (request: SummaryRequest, signal: AbortSignal) => Promise<SummaryResponse>;
