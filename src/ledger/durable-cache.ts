import type { Clock, ConversationKey, SharedCache } from '../core/ports.js';
import { unwrap } from './durable-answer.js';
import type { DurableObjects } from './durable-ledger.js';
import { text, type SqlDatabase } from './sql-database.js';

/** Values beside a conversation, in its own storage, with which they go. */
export class CacheTable {
  readonly #db: SqlDatabase;
  readonly #clock: Clock;

  constructor(db: SqlDatabase, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    db.run(`CREATE TABLE IF NOT EXISTS shared_cache (
      tenant TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, expires_at INTEGER NOT NULL,
      PRIMARY KEY (tenant, field)
    ) STRICT`);
  }

  get({ tenant }: ConversationKey, field: string): string | null {
    const [row] = this.#db.all(
      'SELECT value FROM shared_cache WHERE tenant = ? AND field = ? AND expires_at > ?',
      tenant,
      field,
      this.#clock(),
    );
    return row === undefined ? null : text(row, 'value');
  }

  set(key: ConversationKey, field: string, value: string, durationMs: number): void {
    const now = this.#clock();
    this.#db.transaction(() => {
      this.delete(key, field);
      this.#db.run('DELETE FROM shared_cache WHERE expires_at <= ?', now);
      this.#db.run('INSERT INTO shared_cache VALUES (?, ?, ?, ?)', key.tenant, field, value, now + durationMs);
    });
  }

  delete({ tenant }: ConversationKey, field: string): void {
    this.#db.run('DELETE FROM shared_cache WHERE tenant = ? AND field = ?', tenant, field);
  }
}

/** The cache that isolates share, in the objects of the conversations. */
export function createDurableCache({ conversation }: Pick<DurableObjects, 'conversation'>): SharedCache {
  return {
    get: (key, field) => unwrap(conversation(key.id).cached(key, field)),
    async set(key, field, value, durationMs) {
      await unwrap(conversation(key.id).cache(key, field, value, durationMs));
    },
    async delete(key, field) {
      await unwrap(conversation(key.id).cache(key, field, null, 0));
    },
  };
}
