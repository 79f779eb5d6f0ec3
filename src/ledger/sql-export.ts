import type { ConversationRecord, ExportPage } from '../core/upkeep.js';
import { firstCursor, readCursor, type RecordType } from './export-cursor.js';
import { exportPageOf, type ExportSource } from './export-page.js';
import { integer, integerOrNull, text, type SqlDatabase, type SqlRow } from './sql-database.js';
import { callOf, conversationOf, instructionOf, markOf, nodeOf, type ConversationState } from './sql-rows.js';

/** What a mark is taken to weigh. */
const MARK_BYTES = 200;

/** A page of an export (see `ExportPage`), read inside a transaction. */
export function sqlExportPage(db: SqlDatabase, state: ConversationState, next: string | null): ExportPage {
  const { id, revision, lastSeq, lastCall } = state;
  const conversation = conversationOf(state);
  if (next !== null) return exportPageOf(conversation, sourcesOf(db, id), readCursor(next, revision));
  const [row] = db.all('SELECT max(number) AS number FROM instruction WHERE conversation = ?', id);
  const instruction = row === undefined ? 0 : (integerOrNull(row, 'number') ?? 0);
  const until = { instruction, node: lastSeq, call: lastCall };
  return exportPageOf(conversation, sourcesOf(db, id), firstCursor(conversation, { revision, until }));
}

function sourcesOf(db: SqlDatabase, conversation: string): Readonly<Record<RecordType, ExportSource>> {
  return {
    // By digest, of which an instruction that is written meanwhile may have any: its number tells.
    instruction: {
      sizes: ({ until }, after, limit) =>
        db
          .all(
            `SELECT digest, bytes FROM instruction
             WHERE conversation = ? AND digest > ? AND number <= ? ORDER BY digest LIMIT ?`,
            conversation,
            after,
            until.instruction,
            limit,
          )
          .map((row) => ({ position: text(row, 'digest'), bytes: integer(row, 'bytes') })),
      records: ({ until }, after, last) =>
        db
          .all(
            `SELECT digest, content FROM instruction
             WHERE conversation = ? AND digest > ? AND digest <= ? AND number <= ? ORDER BY digest`,
            conversation,
            after,
            last,
            until.instruction,
          )
          .map((row) => ({ type: 'instruction', instruction: instructionOf(row) })),
    },
    node: bySeq(db, conversation, 'node', 'bytes', (row) => ({ type: 'node', node: nodeOf(row) })),
    call: bySeq(db, conversation, 'call', 'length(record)', (row) => ({ type: 'call', call: callOf(row) })),
    mark: {
      sizes: ({ until }, after, limit) =>
        db
          .all(
            `SELECT mark.kind, mark.head FROM mark
             JOIN node ON node.conversation = mark.conversation AND node.id = mark.head
             WHERE mark.conversation = ? AND mark.kind || ' ' || mark.head > ? AND node.seq <= ?
             ORDER BY mark.kind, mark.head LIMIT ?`,
            conversation,
            after,
            until.node,
            limit,
          )
          .map((row) => ({ position: `${text(row, 'kind')} ${text(row, 'head')}`, bytes: MARK_BYTES })),
      records: ({ until }, after, last) =>
        db
          .all(
            `SELECT mark.* FROM mark JOIN node ON node.conversation = mark.conversation AND node.id = mark.head
             WHERE mark.conversation = ? AND mark.kind || ' ' || mark.head > ? AND mark.kind || ' ' || mark.head <= ?
               AND node.seq <= ?
             ORDER BY mark.kind, mark.head`,
            conversation,
            after,
            last,
            until.node,
          )
          .map((row) => ({ type: 'mark', mark: markOf(row) })),
    },
  };
}

function bySeq(
  db: SqlDatabase,
  conversation: string,
  table: 'node' | 'call',
  bytes: string,
  recordOf: (row: SqlRow) => ConversationRecord,
): ExportSource {
  return {
    sizes: ({ until }, after, limit) =>
      db
        .all(
          `SELECT seq, ${bytes} AS bytes FROM ${table}
           WHERE conversation = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
          conversation,
          after,
          until[table],
          limit,
        )
        .map((row) => ({ position: integer(row, 'seq'), bytes: integer(row, 'bytes') })),
    records: (_, after, last) =>
      db
        .all(
          `SELECT * FROM ${table} WHERE conversation = ? AND seq > ? AND seq <= ? ORDER BY seq`,
          conversation,
          after,
          last,
        )
        .map(recordOf),
  };
}
