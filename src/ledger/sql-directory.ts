import type { Clock, ConversationEntry, Directory, ListPosition, Reference, TenantUsage } from '../core/ports.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';
import { checkLimit, checkReferences, checkWindow } from './check-writes.js';
import { SqlConversations } from './sql-conversations.js';
import type { SqlDatabase } from './sql-database.js';
import { SqlLearnedWindows } from './sql-learned-windows.js';
import { SqlReferences } from './sql-references.js';

/** The directory on the tables of the SQL ledger. */
export class SqlDirectory implements Directory {
  readonly #db: SqlDatabase;
  readonly #conversations: SqlConversations;
  readonly #references: SqlReferences;
  readonly #windows: SqlLearnedWindows;
  readonly #clock: Clock;

  constructor(db: SqlDatabase, clock: Clock) {
    this.#db = db;
    this.#conversations = new SqlConversations(db);
    this.#references = new SqlReferences(db);
    this.#windows = new SqlLearnedWindows(db);
    this.#clock = clock;
  }

  async list(tenant: string | null, limit: number, before: ListPosition | null): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    return this.#conversations.list(tenant, limit, before);
  }

  async oldest(tenant: string | null, limit: number): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    return this.#conversations.oldest(tenant, limit);
  }

  async tenants(): Promise<readonly TenantUsage[]> {
    return this.#conversations.tenants();
  }

  async refer(tenant: string, references: readonly Reference[]): Promise<void> {
    checkReferences(tenant, references);
    if (references.length === 0) return;
    this.#db.transaction(() => {
      for (const reference of references) this.#references.save(tenant, reference);
    });
  }

  async resolve(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, Reference>> {
    return this.#references.resolve(tenant, ids);
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

  async forgetWindows(tenant: string): Promise<void> {
    this.#windows.forgetAll(tenant);
  }
}
