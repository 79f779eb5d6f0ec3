import { SpillwayError } from '../core/errors.js';
import type { SqlDatabase, SqlRow } from './sql-database.js';

/** What the ledger asks of a Durable Object's SQLite storage. */
export interface DurableStorage {
  readonly sql: { exec(query: string, ...values: readonly unknown[]): { toArray(): readonly SqlRow[] } };
  transactionSync<T>(work: () => T): T;
}

/** A Durable Object's own database. It knows no PRAGMA, no BEGIN, and no value or row beyond 2 MB. */
export function durableDatabase(storage: DurableStorage): SqlDatabase {
  const exec = (sql: string, values: readonly unknown[]): readonly SqlRow[] => {
    try {
      return storage.sql.exec(sql, ...values).toArray();
    } catch (error) {
      throw storeUnavailable(error);
    }
  };
  return {
    run: (sql, ...values) => void exec(sql, values),
    all: (sql, ...values) => exec(sql, values),
    transaction: (work) => storage.transactionSync(work),
    // The runtime owns it.
    close: () => undefined,
  };
}

/** A failure told by its code: SQLite's messages may quote what was stored, its codes cannot. */
function storeUnavailable(error: unknown): SpillwayError {
  const code = /SQLITE_[A-Z_]+/.exec(error instanceof Error ? error.message : '')?.[0] ?? 'no code';
  return new SpillwayError('store_unavailable', `The store cannot answer (${code}).`, null, error);
}
