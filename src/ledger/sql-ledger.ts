import { SpillwayError } from '../core/errors.js';
import { ROOT, type NewNode, type Node } from '../core/node.js';
import type {
  Call,
  Clock,
  CloseTurn,
  CommitOutcome,
  CommitSummary,
  Conversation,
  ConversationEntry,
  ConversationKey,
  Directory,
  Instruction,
  Ledger,
  Mark,
  NewConversation,
  OpenedTurn,
  OpenTurn,
  Spine,
  Summary,
  SummaryPolicy,
} from '../core/ports.js';
import { activeSummary } from '../core/summary.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';
import {
  checkChainNode,
  checkCloseTurn,
  checkCommitSummary,
  checkLimit,
  checkMark,
  checkOpenTurn,
  checkWindow,
  headOf,
  invalid,
} from './check-writes.js';
import type { SqlDatabase } from './sql-database.js';
import { SqlLearnedWindows } from './sql-learned-windows.js';
import { deepestMarks, deepestMatch, deepestSummaries } from './sql-on-chain.js';
import type { Place } from './sql-rows.js';
import { migrate, migrations } from './sql-schema.js';
import { SqlStore } from './sql-store.js';

/**
 * The ledger and the directory on one SQL database, for every SQLite home. What a turn costs grows with its new
 * messages and with log2 of its history; only stored counts are read for the whole part behind the active summary.
 */
export class SqlLedger implements Ledger, Directory {
  readonly #db: SqlDatabase;
  readonly #store: SqlStore;
  readonly #windows: SqlLearnedWindows;
  readonly #clock: Clock;

  /** Brings the database to the last schema; throws `store_unavailable` if it cannot be used. */
  constructor(db: SqlDatabase, clock: Clock) {
    migrate(db, migrations);
    this.#db = db;
    this.#store = new SqlStore(db);
    this.#windows = new SqlLearnedWindows(db);
    this.#clock = clock;
  }

  async openTurn(turn: OpenTurn): Promise<OpenedTurn> {
    checkOpenTurn(turn);
    return this.#db.transaction(() => {
      const { chain } = turn;
      const { id } = turn.conversation;
      const before = this.#find(turn.conversation);
      const known = before === null ? { count: 0, last: null } : this.#knownPrefix(id, chain);
      let entry = before ?? newEntry(turn.conversation, this.#clock());
      let last = known.last;
      const fresh = chain.slice(known.count);
      const isFresh = new Set(fresh).size === fresh.length && this.#store.places(id, fresh).size === 0;
      if (!isFresh) throw invalid('chain', 'is not one spine');
      for (let index = known.count; index < chain.length; index += 1) {
        const node = turn.node(index);
        checkChainNode(node, chain[index] ?? '', last?.id ?? ROOT, 'chain');
        [entry, last] = this.#append(entry, node, last);
      }
      if (last === null) throw invalid('chain', 'is empty');
      if (turn.advanceHead) entry = withHead(entry, last);
      if (before?.nodes !== entry.nodes || before.head !== entry.head) {
        this.#store.save({ ...entry, usedAt: this.#clock() });
      }
      this.#store.storeInstructions(id, turn.instructions);

      const active = this.#active(entry, chain, turn.policy);
      const behind = active === null ? chain : chain.slice(chain.indexOf(active.last) + 1);
      return {
        head: entry.head,
        known: known.count,
        active,
        commands: this.#store.commands(id, last),
        counts: turn.tokenizer === null ? new Map() : this.#store.counts(id, behind, turn.tokenizer),
        match: deepestMatch(this.#db, id, turn.model, chain),
        marks: deepestMarks(this.#db, id, chain),
      };
    });
  }

  async closeTurn(turn: CloseTurn): Promise<{ readonly head: string }> {
    checkCloseTurn(turn);
    const { call } = turn;
    return this.#db.transaction(() => {
      let entry = this.#require(turn.conversation);
      const headId = headOf(turn);
      const head = headId === null ? null : this.#requireChainNode(entry.id, headId, 'head');
      // A call that is recorded already was closed by an earlier attempt whose answer got lost.
      if (call !== null && this.#store.call(turn.conversation, call.id) !== null) return { head: entry.head };

      const places: Place[] = [];
      for (const reply of turn.replies) {
        const there = this.#store.place(entry.id, reply.id);
        if (there !== null && there.predecessor !== headId) throw invalid('replies', 'is a node of another place');
        const [next, place] = there === null ? this.#append(entry, reply, head) : [entry, there];
        entry = next;
        places.push(place);
      }
      const [first] = places;
      const isComplete = call === null || call.outcome === 'complete';
      if (turn.advanceHead && isComplete && first?.predecessor === entry.head) entry = withHead(entry, first);
      entry = { ...entry, usedAt: this.#clock() };
      if (call !== null && head !== null) {
        entry = { ...entry, calls: entry.calls + 1 };
        if (turn.reduction !== null) this.#store.storeInstructions(entry.id, [turn.reduction]);
        this.#store.insertCall(call, { seq: entry.calls, depth: head.depth });
      }
      if (turn.tokenizer !== null) {
        for (const [id, tokens] of turn.counts) this.#store.fillCount(entry.id, id, tokens, turn.tokenizer);
      }
      for (const mark of turn.marks) this.#saveMark(entry.id, mark);
      this.#store.save(entry);
      return { head: entry.head };
    });
  }

  async commitSummary(commit: CommitSummary): Promise<CommitOutcome> {
    checkCommitSummary(commit);
    return this.#db.transaction(() => {
      const entry = this.#require(commit.conversation);
      const covered = commit.node.metadata.covers_ids;
      const [first] = covered;
      const last = covered.at(-1);
      if (first === undefined || last === undefined) throw invalid('node.metadata.covers_ids', 'is empty');
      const reason = this.#staleBecause(entry, commit, last);
      if (reason !== null) return { outcome: 'stale', reason };

      const seq = entry.nodes + 1;
      this.#store.insertNode(entry.id, commit.node, { seq, depth: 0, lastCommand: null, createdAt: this.#clock() });
      this.#store.insertSummary(entry.id, { id: commit.node.id, seq, first, last, count: covered.length });
      this.#store.save({ ...entry, activeSummary: commit.node.id, nodes: seq, summaries: entry.summaries + 1 });
      return { outcome: 'committed' };
    });
  }

  async moveHead(conversation: ConversationKey, to: string, expected: string | null): Promise<void> {
    this.#db.transaction(() => {
      const entry = this.#require(conversation);
      const place = this.#requireChainNode(entry.id, to, 'to');
      if (expected !== null && expected !== entry.head) {
        throw new SpillwayError('head_moved', 'HEAD is not where it was expected.', 'expected');
      }
      this.#store.save(withHead(entry, place));
    });
  }

  async setMark(conversation: ConversationKey, mark: Mark): Promise<void> {
    checkMark(mark);
    this.#db.transaction(() => this.#saveMark(this.#require(conversation).id, mark));
  }

  async conversation(id: string, tenant: string | null): Promise<Conversation | null> {
    const entry = this.#store.conversation(id);
    return entry === null || (tenant !== null && entry.tenant !== tenant) ? null : conversationOf(entry);
  }

  async spine(conversation: ConversationKey, head: string | null, policy: SummaryPolicy): Promise<Spine> {
    return this.#db.transaction(() => {
      const entry = this.#require(conversation);
      const from = head ?? entry.head;
      if (from !== ROOT) this.#requireChainNode(entry.id, from, 'head');
      const nodes = this.#store.spine(entry.id, from);
      const active = this.#active(
        entry,
        nodes.map((node) => node.id),
        policy,
      );
      return { conversation: conversationOf(entry), nodes, active };
    });
  }

  async nodes(conversation: ConversationKey, afterSeq: number, limit: number): Promise<readonly Node[]> {
    checkLimit(limit);
    return this.#store.nodes(conversation, afterSeq, limit);
  }

  async node(conversation: ConversationKey, id: string): Promise<Node | null> {
    return this.#store.node(conversation, id);
  }

  async call(conversation: ConversationKey, id: string): Promise<Call | null> {
    return this.#store.call(conversation, id);
  }

  async calls(conversation: ConversationKey, limit: number): Promise<readonly Call[]> {
    checkLimit(limit);
    return this.#store.calls(conversation, limit);
  }

  async callsOfReply(conversation: ConversationKey, reply: string): Promise<readonly Call[]> {
    return this.#store.callsOfReply(conversation, reply);
  }

  async instruction(conversation: ConversationKey, digest: string): Promise<Instruction | null> {
    return this.#store.instruction(conversation, digest);
  }

  async list(tenant: string | null, limit: number, before: number | null): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    return this.#store.list(tenant, limit, before);
  }

  async learnedWindows(tenant: string | null, limit: number): Promise<readonly LearnedWindow[]> {
    checkLimit(limit);
    return this.#windows.list(tenant, limit, this.#clock());
  }

  async learnWindow(window: LearnedWindow): Promise<void> {
    checkWindow(window, window.tokens);
    this.#db.transaction(() => this.#windows.learn(window, this.#clock()));
  }

  async widenWindow(key: WindowKey, tokens: number): Promise<void> {
    checkWindow(key, tokens);
    this.#windows.widen(key, tokens, this.#clock());
  }

  async forgetWindow(key: WindowKey): Promise<boolean> {
    return this.#windows.forget(key, this.#clock());
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  /** Null if nobody has it; another tenant's is as good as absent, and nothing is written into it (SPEC 1.1). */
  #find(key: ConversationKey): ConversationEntry | null {
    const entry = this.#store.conversation(key.id);
    if (entry !== null && entry.tenant !== key.tenant) throw conversationNotFound();
    return entry;
  }

  #require(key: ConversationKey): ConversationEntry {
    const entry = this.#find(key);
    if (entry === null) throw conversationNotFound();
    return entry;
  }

  #requireChainNode(conversation: string, id: string, field: string): Place {
    const place = this.#store.place(conversation, id);
    if (place === null || isSummaryPlace(place)) {
      throw new SpillwayError('node_not_found', 'There is no such node in the conversation.', field);
    }
    return place;
  }

  /** An id names its whole prefix, so what is known is a prefix: its length by binary search (SPEC 1.4). */
  #knownPrefix(
    conversation: string,
    chain: readonly string[],
  ): { readonly count: number; readonly last: Place | null } {
    let last: Place | null = null;
    let low = 0;
    let high = chain.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const place = this.#store.place(conversation, chain[middle - 1] ?? '');
      if (place === null) {
        high = middle - 1;
      } else {
        last = place;
        low = middle;
      }
    }
    if (last !== null && (last.depth !== low || last.predecessor !== (chain[low - 2] ?? ROOT))) {
      throw invalid('chain', 'is not one spine');
    }
    return { count: low, last };
  }

  #append(entry: ConversationEntry, node: NewNode, after: Place | null): [ConversationEntry, Place] {
    const place = this.#store.insertNode(entry.id, node, {
      seq: entry.nodes + 1,
      depth: (after?.depth ?? 0) + 1,
      lastCommand: after?.lastCommand ?? null,
      createdAt: this.#clock(),
    });
    return [{ ...entry, nodes: entry.nodes + 1 }, place];
  }

  #active(entry: ConversationEntry, chain: readonly string[], policy: SummaryPolicy): Summary | null {
    return activeSummary(chain, this.#candidates(entry, chain, policy), policy, entry.activeSummary);
  }

  /** The few summaries among which the policy's choice must be, in the order written. */
  #candidates(entry: ConversationEntry, chain: readonly string[], policy: SummaryPolicy): readonly Summary[] {
    switch (policy) {
      case 'session': {
        const named = entry.activeSummary === null ? null : this.#store.summary(entry.id, entry.activeSummary);
        return named === null ? [] : [named];
      }
      case 'spine':
        return deepestSummaries(this.#db, entry.id, chain);
    }
  }

  /** Why a summary must not be committed any more, or null (SPEC 5.8). */
  #staleBecause(entry: ConversationEntry, { chain, ...commit }: CommitSummary, last: string): string | null {
    const covered = commit.node.metadata.covers_ids;
    if (covered.some((id, index) => id !== chain[index])) return 'the coverage is not the start of the spine';
    const places = this.#store.places(entry.id, [...covered, ...chain.slice(-1)]);
    const isSegment = covered.every((id, index) => {
      const place = places.get(id);
      return place?.depth === index + 1 && place.predecessor === (covered[index - 1] ?? ROOT);
    });
    if (!isSegment) return 'a covered node is gone';
    if (!places.has(chain.at(-1) ?? '')) return 'the head is gone';
    if ((this.#active(entry, chain, commit.policy)?.id ?? null) !== commit.expectedActive) {
      return 'another summary became active';
    }
    if (commit.headMustDescend && !this.#store.descends(entry.id, entry.head, last, covered.length)) {
      return 'HEAD left the segment';
    }
    return this.#store.place(entry.id, commit.node.id) === null ? null : 'the summary was written before';
  }

  #saveMark(conversation: string, mark: Mark): void {
    const place = this.#requireChainNode(conversation, mark.head, 'mark.head');
    this.#store.saveMark(conversation, mark, place.depth);
  }
}

/** The one way HEAD moves here; a summary is never HEAD (SPEC 8.1). */
function withHead(entry: ConversationEntry, to: Place): ConversationEntry {
  if (isSummaryPlace(to)) throw new SpillwayError('node_not_found', 'A summary cannot be HEAD.');
  return { ...entry, head: to.id };
}

function isSummaryPlace(place: Place): boolean {
  return place.depth === 0;
}

function newEntry(conversation: NewConversation, now: number): ConversationEntry {
  return {
    ...conversation,
    head: ROOT,
    activeSummary: null,
    createdAt: now,
    usedAt: now,
    nodes: 0,
    calls: 0,
    summaries: 0,
  };
}

function conversationOf({ nodes, calls, summaries, ...conversation }: ConversationEntry): Conversation {
  return conversation;
}

function conversationNotFound(): SpillwayError {
  return new SpillwayError('conversation_not_found', 'There is no such conversation.', 'conversation');
}
