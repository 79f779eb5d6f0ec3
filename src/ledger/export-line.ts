import { z } from 'zod';
import { SpillwayError } from '../core/errors.js';
import type { Node } from '../core/node.js';
import type { Conversation, Instruction, Mark } from '../core/ports.js';
import type { ConversationRecord } from '../core/upkeep.js';
import { callSchema, metadataSchema } from './stored-json.js';

/** The newest form of an export that this program reads, and the one it writes. */
export const EXPORT_VERSION = 1;

/**
 * One line of an export. The header comes first. Each conversation is followed by its records and closed by their number, or by
 * `abandoned` if it changed while they were read, so that nothing of it counts. The end closes the file: without it, it is cut off.
 */
export type ExportLine =
  | { readonly type: 'export'; readonly version: typeof EXPORT_VERSION }
  | { readonly type: 'conversation'; readonly conversation: Conversation }
  | ConversationRecord
  | { readonly type: 'conversation_end'; readonly records: number }
  | { readonly type: 'abandoned' }
  /** How many conversations came before it, and how many records in them; abandoned ones left out. */
  | { readonly type: 'end'; readonly conversations: number; readonly records: number };

const id = z.string().min(1).max(1_000);
const count = z.int().nonnegative();
const time = z.int();

const conversation = z.strictObject({
  tenant: id,
  id,
  dialect: id,
  canonicalVersion: z.int().positive(),
  name: z.string().nullable(),
  session: z.string().nullable(),
  head: id,
  activeSummary: id.nullable(),
  createdAt: time,
  usedAt: time,
  deletedAt: time.nullable(),
}) satisfies z.ZodType<Conversation>;

const node = z.strictObject({
  id,
  predecessor: id,
  caller: id.nullable(),
  role: z.enum(['user', 'llm', 'tool', 'system']),
  name: z.string().nullable(),
  content: z.string(),
  metadata: metadataSchema,
  tokens: count.nullable(),
  tokenizer: z.string().nullable(),
  conversation: id,
  seq: z.int().positive(),
  createdAt: time,
  deletedAt: time.nullable(),
}) satisfies z.ZodType<Node>;

const instruction = z.strictObject({ digest: id, content: z.string() }) satisfies z.ZodType<Instruction>;

const mark = z.strictObject({
  kind: z.enum(['latched', 'overflowed']),
  head: id,
  tokens: count,
  scope: z.string(),
}) satisfies z.ZodType<Mark>;

const line = z.discriminatedUnion(
  'type',
  [
    z.strictObject({ type: z.literal('export'), version: z.literal(EXPORT_VERSION) }),
    z.strictObject({ type: z.literal('conversation'), conversation }),
    z.strictObject({ type: z.literal('instruction'), instruction }),
    z.strictObject({ type: z.literal('node'), node }),
    z.strictObject({ type: z.literal('call'), call: callSchema }),
    z.strictObject({ type: z.literal('mark'), mark }),
    z.strictObject({ type: z.literal('conversation_end'), records: count }),
    z.strictObject({ type: z.literal('abandoned') }),
    z.strictObject({ type: z.literal('end'), conversations: count, records: count }),
  ],
  { error: 'is that of no line of an export' },
) satisfies z.ZodType<ExportLine>;

const header = z.looseObject({ type: z.literal('export'), version: z.number() });

/** Reads a line. Throws `invalid_request` that names the line, the field and the reason, and quotes nothing. */
export function readExportLine(text: string, lineNumber: number): ExportLine {
  const parsed = parseJson(text, lineNumber);
  const { data: given } = header.safeParse(parsed);
  if (given !== undefined && given.version > EXPORT_VERSION) {
    throw faultyLine(
      lineNumber,
      'version',
      `is ${given.version}, and this Spillway reads ${EXPORT_VERSION}: import it with a newer one`,
    );
  }
  const read = line.safeParse(parsed, { reportInput: true });
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw faultyLine(lineNumber, issue?.path.join('.') || null, issue === undefined ? 'is invalid' : reasonOf(issue));
}

/**
 * A line as it is written, with its end: the same members in the same order whatever store it came from. Throws
 * `store_unavailable` for what could not be read again.
 */
export function writeExportLine(given: ExportLine): string {
  const checked = line.safeParse(given);
  if (checked.success) return `${JSON.stringify(checked.data)}\n`;
  throw new SpillwayError(
    'store_unavailable',
    `The store holds a ${given.type} that cannot be read.`,
    null,
    checked.error,
  );
}

/** An `invalid_request` about one line of an export, or about a field of it. */
export function faultyLine(lineNumber: number, field: string | null, reason: string): SpillwayError {
  return new SpillwayError('invalid_request', `line ${lineNumber}: ${field ?? 'it'} ${reason}`, field);
}

function parseJson(text: string, lineNumber: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw faultyLine(lineNumber, null, 'is not JSON; the file may be cut off');
  }
}

function reasonOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys')
    return `has the unknown field ${JSON.stringify(issue.keys[0]?.slice(0, 100))}`;
  if (issue.code !== 'invalid_type') return issue.message;
  return issue.input === undefined ? 'is missing' : `must be a ${issue.expected}`;
}
