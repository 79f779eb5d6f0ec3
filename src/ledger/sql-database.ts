import { SpillwayError } from '../core/errors.js';

export type SqlValue = string | number | null;
export type SqlRow = Readonly<Record<string, unknown>>;

/**
 * What the SQL ledger asks of a database: synchronous, one connection, SQLite's dialect with JSON functions. Both Node
 * drivers and a Durable Object's storage fit it; the last allows 100 bound values a statement, so lists go in as JSON.
 * Whatever the database itself throws is `SpillwayError('store_unavailable')`.
 */
export interface SqlDatabase {
  /** A long text that it binds may be kept in parts beside its row: lists, which a statement looks into, go to `all`. */
  run(sql: string, ...values: readonly SqlValue[]): void;
  all(sql: string, ...values: readonly SqlValue[]): readonly SqlRow[];
  /** Everything `work` wrote, or, if it throws, nothing; its error passes through. Never nested. */
  transaction<T>(work: () => T): T;
  close(): void;
}

/** The text in a column; a value of another type is a broken store. */
export function text(row: SqlRow, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw broken(column);
  return value;
}

export function textOrNull(row: SqlRow, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

export function integer(row: SqlRow, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw broken(column);
  return value;
}

export function integerOrNull(row: SqlRow, column: string): number | null {
  return row[column] === null ? null : integer(row, column);
}

function broken(column: string): SpillwayError {
  return new SpillwayError('store_unavailable', `The store holds something unexpected in its column "${column}".`);
}
