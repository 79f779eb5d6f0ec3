import { SpillwayError } from '../core/errors.js';
import type { SqlDatabase, SqlRow, SqlValue } from './sql-database.js';

/** What better-sqlite3 and node:sqlite have in common, as far as it is used. */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

export interface SqliteStatement {
  run(...values: readonly SqlValue[]): unknown;
  all(...values: readonly SqlValue[]): readonly unknown[];
}

/** A SQLite connection as the SQL ledger wants it. Keeps each statement prepared: their texts are a fixed few. */
export function sqliteDatabase(handle: SqliteHandle, busyTimeoutMs = 0): SqlDatabase {
  const statements = new Map<string, SqliteStatement>();
  let closed = false;
  let patient = true;
  const prepare = (sql: string): SqliteStatement => {
    const statement = statements.get(sql) ?? handle.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  // The process stands still while it waits: one wait for a lock that is held is enough, until it is free again.
  const begin = (): void => {
    try {
      prepare('BEGIN IMMEDIATE').run();
    } catch (error) {
      if (patient) handle.exec('PRAGMA busy_timeout = 0');
      patient = false;
      throw error;
    }
    if (!patient) handle.exec(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}`);
    patient = true;
  };
  return {
    run(sql, ...values) {
      guard(() => prepare(sql).run(...values));
    },
    all(sql, ...values) {
      return guard(() => prepare(sql).all(...values)).filter(isRow);
    },
    transaction(work) {
      // IMMEDIATE: a lock that another process holds is met here, before anything was read that would be stale by then.
      guard(begin);
      try {
        const result = work();
        guard(() => prepare('COMMIT').run());
        return result;
      } catch (error) {
        rollBack(handle);
        throw error;
      }
    },
    close() {
      if (closed) return;
      closed = true;
      statements.clear();
      guard(() => {
        handle.exec('PRAGMA wal_checkpoint(TRUNCATE)');
        handle.close();
      });
    },
  };
}

function rollBack(handle: SqliteHandle): void {
  try {
    handle.exec('ROLLBACK');
  } catch {
    // SQLite may have rolled back by itself; and what went wrong is already on its way.
  }
}

function guard<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw storeUnavailable(error);
  }
}

/** A failure of the database, told by its code: SQLite's messages may quote what was stored, its codes cannot. */
export function storeUnavailable(error: unknown): SpillwayError {
  if (error instanceof SpillwayError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
  const number = error instanceof Error && 'errcode' in error ? ` ${String(error.errcode)}` : '';
  return new SpillwayError('store_unavailable', `The store cannot answer (${code}${number}).`, null, error);
}

function isRow(value: unknown): value is SqlRow {
  return typeof value === 'object' && value !== null;
}
