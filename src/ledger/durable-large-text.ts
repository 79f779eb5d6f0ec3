import type { SqlDatabase, SqlRow, SqlValue } from './sql-database.js';
import { integer, text } from './sql-database.js';

/**
 * Most UTF-16 units of one stored value: at three bytes a unit three such values still fit a row of 2 MB, so that no row of the
 * ledger, which has fewer large ones, passes the limit.
 */
const PART_UNITS = 200_000;

/** Begins what stands in the place of a large value, and of one that begins so by itself. */
const MARK = '\u0002';
const REFERENCE = `${MARK}>`;
const ESCAPED = `${MARK}=`;

/** The columns that may hold a large value, and go while their database stays. */
const COLUMNS = [
  ['node', 'content'],
  ['node', 'name'],
  ['node', 'metadata'],
  ['instruction', 'content'],
  ['call', 'record'],
  ['call', 'model'],
  ['shared_cache', 'value'],
] as const;

const TABLE = `CREATE TABLE IF NOT EXISTS large_text (
  id INTEGER NOT NULL, part INTEGER NOT NULL, content TEXT NOT NULL, PRIMARY KEY (id, part)
) STRICT`;

/**
 * A database whose values may be larger than the one below it can hold: a large one is kept in parts, and a reference to them in its
 * place. Statements see the reference, so none may look into a value that can be large.
 */
export function withLargeText(db: SqlDatabase): SqlDatabase {
  db.run(TABLE);
  const escape = (value: SqlValue): SqlValue =>
    typeof value === 'string' && value.startsWith(MARK) ? ESCAPED + value : value;
  const store = (value: SqlValue): SqlValue => {
    if (typeof value !== 'string' || value.length <= PART_UNITS) return escape(value);
    const [row] = db.all('SELECT coalesce(max(id), 0) + 1 AS id FROM large_text');
    const id = row === undefined ? 1 : integer(row, 'id');
    partsOf(value).forEach((part, index) => db.run('INSERT INTO large_text VALUES (?, ?, ?)', id, index, part));
    return REFERENCE + id;
  };
  const restore = (value: unknown): unknown => {
    if (typeof value !== 'string' || !value.startsWith(MARK)) return value;
    if (value.startsWith(ESCAPED)) return value.slice(ESCAPED.length);
    const id = Number(value.slice(REFERENCE.length));
    const parts = db.all('SELECT content FROM large_text WHERE id = ? ORDER BY part', id);
    return parts.map((row) => text(row, 'content')).join('');
  };
  const restoreRow = (row: SqlRow): SqlRow =>
    Object.fromEntries(Object.entries(row).map(([column, value]) => [column, restore(value)]));
  return {
    run: (sql, ...values) => db.run(sql, ...values.map(store)),
    all: (sql, ...values) => db.all(sql, ...values.map(escape)).map(restoreRow),
    transaction: (work) => db.transaction(work),
    close: () => db.close(),
  };
}

/** Lets the parts of a large value go with its row. Run when the tables are there; again changes nothing. */
export function followDeletions(db: SqlDatabase): void {
  for (const [table, column] of COLUMNS) {
    db.run(
      `CREATE TRIGGER IF NOT EXISTS large_${table}_${column} AFTER DELETE ON ${table}
       WHEN substr(OLD.${column}, 1, 2) = '${REFERENCE}'
       BEGIN DELETE FROM large_text WHERE id = CAST(substr(OLD.${column}, 3) AS INTEGER); END`,
    );
  }
}

/** No part ends inside a surrogate pair, whose halves have no UTF-8. */
function partsOf(value: string): readonly string[] {
  const parts: string[] = [];
  for (let start = 0; start < value.length;) {
    const end = start + PART_UNITS;
    const splitsPair = /[\ud800-\udbff]/.test(value.charAt(end - 1)) && end < value.length;
    const next = splitsPair ? end - 1 : end;
    parts.push(value.slice(start, next));
    start = next;
  }
  return parts;
}
