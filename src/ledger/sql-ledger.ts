import { ROOT, type Node } from '../core/node.js';
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
  Lease,
  Ledger,
  ListPosition,
  Mark,
  OpenedTurn,
  OpenTurn,
  Reference,
  Spine,
  SummaryPolicy,
  TenantUsage,
} from '../core/ports.js';
import type { ExportPage, ImportPage } from '../core/upkeep.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';
import {
  checkCloseTurn,
  checkCommitSummary,
  checkImportPage,
  checkLease,
  checkLimit,
  checkMark,
  checkOpenTurn,
} from './check-writes.js';
import { sqlCommitSummary } from './sql-commit.js';
import type { SqlDatabase } from './sql-database.js';
import { SqlDirectory } from './sql-directory.js';
import { deepestSummaries } from './sql-on-chain.js';
import { conversationOf } from './sql-rows.js';
import { migrate, migrations } from './sql-schema.js';
import { requireHead, SqlStore, withHead } from './sql-store.js';
import { SqlTurns } from './sql-turns.js';
import { SqlUpkeep } from './sql-upkeep.js';

/**
 * The ledger and the directory on one SQL database, for every SQLite home. What a turn costs grows with its new
 * messages and with log2 of its history; only stored counts are read for the whole part behind the active summary.
 */
export class SqlLedger implements Ledger, Directory {
  readonly #db: SqlDatabase;
  readonly #store: SqlStore;
  readonly #turns: SqlTurns;
  readonly #upkeep: SqlUpkeep;
  readonly #directory: SqlDirectory;
  readonly #clock: Clock;

  /** Brings the database to the last schema; throws `store_unavailable` if it cannot be used. */
  constructor(db: SqlDatabase, clock: Clock) {
    migrate(db, migrations);
    this.#db = db;
    this.#store = new SqlStore(db);
    this.#turns = new SqlTurns(this.#store, clock);
    this.#upkeep = new SqlUpkeep(this.#store);
    this.#directory = new SqlDirectory(db, clock);
    this.#clock = clock;
  }

  async openTurn(turn: OpenTurn): Promise<OpenedTurn> {
    checkOpenTurn(turn);
    return this.#db.transaction(() => this.#turns.open(turn));
  }

  async closeTurn(turn: CloseTurn): Promise<{ readonly head: string }> {
    checkCloseTurn(turn);
    return this.#db.transaction(() => this.#turns.close(turn));
  }

  async commitSummary(commit: CommitSummary): Promise<CommitOutcome> {
    checkCommitSummary(commit);
    return this.#db.transaction(() => sqlCommitSummary(this.#store, commit, this.#clock()));
  }

  async moveHead(conversation: ConversationKey, to: string, expected: string | null): Promise<void> {
    this.#db.transaction(() => {
      const state = this.#store.require(conversation);
      const place = this.#store.requireLiveNode(state.id, to, 'to');
      requireHead(state.head, expected, 'expected');
      this.#store.conversations.save(withHead(state, place));
    });
  }

  async setMark(conversation: ConversationKey, mark: Mark): Promise<void> {
    checkMark(mark);
    this.#db.transaction(() => this.#turns.saveMark(this.#store.require(conversation).id, mark));
  }

  async conversation(id: string, tenant: string | null): Promise<Conversation | null> {
    const state = this.#store.conversations.find(id);
    return state === null || (tenant !== null && state.tenant !== tenant) ? null : conversationOf(state);
  }

  async spine(conversation: ConversationKey, head: string | null, policy: SummaryPolicy): Promise<Spine> {
    return this.#db.transaction(() => {
      const state = this.#store.require(conversation);
      const from = head ?? state.head;
      if (from !== ROOT) this.#store.requireLiveNode(state.id, from, 'head');
      const nodes = this.#store.nodes.spine(state.id, from);
      const chain = nodes.map((node) => node.id);
      const active = this.#store.active(state, chain, policy, deepestSummaries(this.#db, state.id, chain));
      return { conversation: conversationOf(state), nodes, active };
    });
  }

  async nodes(conversation: ConversationKey, afterSeq: number, limit: number): Promise<readonly Node[]> {
    checkLimit(limit);
    return this.#store.nodes.nodes(conversation, afterSeq, limit);
  }

  async node(conversation: ConversationKey, id: string): Promise<Node | null> {
    return this.#store.nodes.node(conversation, id);
  }

  async call(conversation: ConversationKey, id: string): Promise<Call | null> {
    return this.#store.records.call(conversation, id);
  }

  async calls(conversation: ConversationKey, limit: number): Promise<readonly Call[]> {
    checkLimit(limit);
    return this.#store.records.calls(conversation, limit);
  }

  async callsOfReply(conversation: ConversationKey, reply: string): Promise<readonly Call[]> {
    return this.#store.records.callsOfReply(conversation, reply);
  }

  async instruction(conversation: ConversationKey, digest: string): Promise<Instruction | null> {
    return this.#store.records.instruction(conversation, digest);
  }

  async acquireLease(key: ConversationKey, chain: readonly string[], durationMs: number): Promise<Lease | null> {
    checkLease(chain, durationMs);
    return this.#db.transaction(() => {
      const state = this.#store.require(key);
      const now = this.#clock();
      const lastFence = state.lastFence + 1;
      const lease = this.#store.leases.acquire(state.id, chain, lastFence, now + durationMs, now);
      if (lease !== null) this.#store.conversations.save({ ...state, lastFence });
      return lease;
    });
  }

  async renewLease(key: ConversationKey, lease: Lease, durationMs: number): Promise<boolean> {
    checkLease([lease.head], durationMs);
    return this.#store.leases.renew(key, lease, this.#clock() + durationMs);
  }

  async releaseLease(key: ConversationKey, lease: Lease): Promise<void> {
    this.#store.leases.release(key, lease);
  }

  async deleteBranch(key: ConversationKey, from: string, expected: string | null) {
    return this.#db.transaction(() => this.#upkeep.deleteBranch(key, from, expected, this.#clock()));
  }

  async restoreBranch(key: ConversationKey, node: string): Promise<{ readonly nodes: number }> {
    return this.#db.transaction(() => this.#upkeep.restoreBranch(key, node));
  }

  async eraseBranch(key: ConversationKey, from: string, expected: string | null) {
    return this.#db.transaction(() => this.#upkeep.eraseBranch(key, from, expected));
  }

  async deleteConversation(key: ConversationKey): Promise<void> {
    this.#db.transaction(() => this.#upkeep.deleteConversation(key, this.#clock()));
  }

  async restoreConversation(key: ConversationKey): Promise<void> {
    this.#db.transaction(() => this.#upkeep.restoreConversation(key));
  }

  async eraseConversation(key: ConversationKey, unusedSince: number | null): Promise<boolean> {
    return this.#db.transaction(() => this.#upkeep.eraseConversation(key, unusedSince));
  }

  async exportPage(key: ConversationKey, next: string | null): Promise<ExportPage> {
    return this.#db.transaction(() => this.#upkeep.exportPage(key, next));
  }

  async importPage(page: ImportPage): Promise<void> {
    checkImportPage(page);
    this.#db.transaction(() => this.#upkeep.importPage(page, this.#clock()));
  }

  list(tenant: string | null, limit: number, before: ListPosition | null): Promise<readonly ConversationEntry[]> {
    return this.#directory.list(tenant, limit, before);
  }

  oldest(tenant: string | null, limit: number): Promise<readonly ConversationEntry[]> {
    return this.#directory.oldest(tenant, limit);
  }

  tenants(): Promise<readonly TenantUsage[]> {
    return this.#directory.tenants();
  }

  refer(tenant: string, references: readonly Reference[]): Promise<void> {
    return this.#directory.refer(tenant, references);
  }

  resolve(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, Reference>> {
    return this.#directory.resolve(tenant, ids);
  }

  learnedWindows(tenant: string | null, limit: number): Promise<readonly LearnedWindow[]> {
    return this.#directory.learnedWindows(tenant, limit);
  }

  learnWindow(window: LearnedWindow): Promise<void> {
    return this.#directory.learnWindow(window);
  }

  widenWindow(key: WindowKey, tokens: number): Promise<void> {
    return this.#directory.widenWindow(key, tokens);
  }

  forgetWindow(key: WindowKey): Promise<boolean> {
    return this.#directory.forgetWindow(key);
  }

  forgetWindows(tenant: string): Promise<void> {
    return this.#directory.forgetWindows(tenant);
  }

  async close(): Promise<void> {
    this.#db.close();
  }
}
