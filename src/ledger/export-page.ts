import type { Conversation } from '../core/ports.js';
import type { ConversationRecord, ExportPage } from '../core/upkeep.js';
import {
  RECORD_TYPES,
  STARTS,
  writeCursor,
  type ExportCursor,
  type Position,
  type RecordType,
} from './export-cursor.js';

/** A page ends behind the record that reaches one of these. */
const PAGE_RECORDS = 500;
const PAGE_BYTES = 1024 * 1024;

export interface SizedPosition {
  readonly position: Position;
  readonly bytes: number;
}

/** How a store gives the records of a type, in the order of their positions and up to where the cursor says. */
export interface ExportSource {
  /** Those behind a position. */
  sizes(cursor: ExportCursor, after: Position, limit: number): readonly SizedPosition[];
  /** Those behind a position, `last` included. */
  records(cursor: ExportCursor, after: Position, last: Position): readonly ConversationRecord[];
}

/** The page behind a cursor. Sizes are read before contents, so that a page of large messages is never read as a whole. */
export function exportPageOf(
  conversation: Conversation,
  sources: Readonly<Record<RecordType, ExportSource>>,
  cursor: ExportCursor,
): ExportPage {
  const records: ConversationRecord[] = [];
  let bytes = 0;
  let { after } = cursor;
  for (const type of RECORD_TYPES.slice(RECORD_TYPES.indexOf(after.type))) {
    if (type !== after.type) after = { type, position: STARTS[type] };
    const sizes = sources[type].sizes(cursor, after.position, PAGE_RECORDS - records.length);
    let taken = 0;
    while (taken < sizes.length && bytes < PAGE_BYTES) bytes += sizes[taken++]?.bytes ?? 0;
    const last = sizes[taken - 1]?.position;
    if (last !== undefined) {
      records.push(...sources[type].records(cursor, after.position, last));
      after = { type, position: last };
    }
    if (bytes >= PAGE_BYTES || records.length >= PAGE_RECORDS) {
      return { conversation: { ...conversation, ...cursor.seen }, records, next: writeCursor({ ...cursor, after }) };
    }
  }
  return { conversation: { ...conversation, ...cursor.seen }, records, next: null };
}
