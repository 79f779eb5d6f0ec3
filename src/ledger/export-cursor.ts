import { z } from 'zod';
import type { Conversation } from '../core/ports.js';
import { invalid } from './check-writes.js';

/** Records of an export come type by type, and those of a type by a position that only grows. */
export const RECORD_TYPES = ['instruction', 'node', 'call', 'mark'] as const;
export type RecordType = (typeof RECORD_TYPES)[number];
export type Position = string | number;

/** Where every type begins: before all its positions. */
export const STARTS = { instruction: '', node: 0, call: 0, mark: '' } as const satisfies Record<RecordType, Position>;

const position = z.union([z.string(), z.int().nonnegative()]);

const cursorSchema = z.strictObject({
  /** What may change of a conversation while its pages are read, as the first page saw it. */
  seen: z.strictObject({
    head: z.string(),
    activeSummary: z.string().nullable(),
    usedAt: z.int(),
    deletedAt: z.int().nullable(),
  }),
  /** Of what was stored then; another one tells that something was deleted, restored or erased since. */
  revision: z.int(),
  /** The last of each kind that the export holds. */
  until: z.strictObject({ instruction: z.int(), node: z.int(), call: z.int() }),
  /** The last record that was given. */
  after: z.strictObject({ type: z.enum(RECORD_TYPES), position }).refine(fitsItsType),
});

/** The state of an export between two of its pages: all of it, so that a store remembers nothing of its readers. */
export type ExportCursor = z.infer<typeof cursorSchema>;

export function firstCursor(conversation: Conversation, of: Pick<ExportCursor, 'revision' | 'until'>): ExportCursor {
  const { head, activeSummary, usedAt, deletedAt } = conversation;
  const after = { type: RECORD_TYPES[0], position: STARTS[RECORD_TYPES[0]] };
  return { seen: { head, activeSummary, usedAt, deletedAt }, ...of, after };
}

export function writeCursor(cursor: ExportCursor): string {
  return JSON.stringify(cursor);
}

/** Throws `invalid_request` for what no page of this conversation, as it is stored now, has given. */
export function readCursor(written: string, revision: number): ExportCursor {
  const read = cursorSchema.safeParse(parsed(written));
  if (!read.success) throw invalid('next', 'is not what a page of an export gave');
  if (read.data.revision !== revision) {
    throw invalid('next', 'is of an export during which something was deleted, restored or erased: begin anew');
  }
  return read.data;
}

function fitsItsType({ type, position: at }: { type: RecordType; position: Position }): boolean {
  return typeof at === typeof STARTS[type];
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
