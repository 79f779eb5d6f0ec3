import { SpillwayError } from '../core/errors.js';
import type { Role } from '../core/message.js';
import type { Node } from '../core/node.js';
import type { Call, Conversation, ConversationEntry, Instruction, Mark, Summary } from '../core/ports.js';
import { integer, integerOrNull, text, textOrNull, type SqlRow } from './sql-database.js';
import { readCall, readMetadata } from './stored-json.js';
import { fromStoredText } from './stored-text.js';

/** Where a node stands. `depth` is its position on its spine, first node 1; 0 for a summary, which stands on none. */
export interface Place {
  readonly id: string;
  readonly predecessor: string;
  readonly depth: number;
  /** The nearest command at or before it on its spine. */
  readonly lastCommand: string | null;
  readonly deletedAt: number | null;
}

export function isSummaryPlace(place: Place): boolean {
  return place.depth === 0;
}

/** A row of a conversation, with what only the store needs of it. */
export interface ConversationState extends ConversationEntry {
  /** The `seq` that was given to a node last; none is given twice, whatever was erased. So with the next two. */
  readonly lastSeq: number;
  readonly lastCall: number;
  readonly lastFence: number;
  /** Grows when stored nodes are deleted, restored or erased. */
  readonly revision: number;
  /** True from the first page of an import to its last. */
  readonly importing: boolean;
}

/** The state of a conversation of which nothing but this is known. */
export function stateFrom(entry: ConversationEntry): ConversationState {
  const { nodes: lastSeq, calls: lastCall } = entry;
  return { ...entry, lastSeq, lastCall, lastFence: 0, revision: 0, importing: false };
}

export function conversationOf(state: ConversationEntry): Conversation {
  const { tenant, id, dialect, canonicalVersion, name, session, head, activeSummary, createdAt, usedAt, deletedAt } =
    state;
  return {
    tenant,
    id,
    dialect,
    canonicalVersion,
    name,
    session,
    head,
    activeSummary,
    createdAt,
    usedAt,
    deletedAt,
  };
}

export function entryOf(row: SqlRow): ConversationEntry {
  const { lastSeq, lastCall, lastFence, revision, importing, ...entry } = stateOf(row);
  return entry;
}

export function stateOf(row: SqlRow): ConversationState {
  const name = textOrNull(row, 'name');
  const session = textOrNull(row, 'session');
  return {
    tenant: text(row, 'tenant'),
    id: text(row, 'id'),
    dialect: text(row, 'dialect'),
    canonicalVersion: integer(row, 'canonical_version'),
    name: name === null ? null : fromStoredText(name),
    session: session === null ? null : fromStoredText(session),
    head: text(row, 'head'),
    activeSummary: textOrNull(row, 'active_summary'),
    createdAt: integer(row, 'created_at'),
    usedAt: integer(row, 'used_at'),
    deletedAt: integerOrNull(row, 'deleted_at'),
    nodes: integer(row, 'nodes'),
    calls: integer(row, 'calls'),
    summaries: integer(row, 'summaries'),
    bytes: integer(row, 'bytes'),
    lastSeq: integer(row, 'last_seq'),
    lastCall: integer(row, 'last_call'),
    lastFence: integer(row, 'last_fence'),
    revision: integer(row, 'revision'),
    importing: integer(row, 'importing') === 1,
  };
}

export function placeOf(row: SqlRow): Place {
  return {
    id: text(row, 'id'),
    predecessor: text(row, 'predecessor'),
    depth: integer(row, 'depth'),
    lastCommand: textOrNull(row, 'last_command'),
    deletedAt: integerOrNull(row, 'deleted_at'),
  };
}

export function nodeOf(row: SqlRow): Node {
  const name = textOrNull(row, 'name');
  return {
    conversation: text(row, 'conversation'),
    id: text(row, 'id'),
    seq: integer(row, 'seq'),
    predecessor: text(row, 'predecessor'),
    caller: textOrNull(row, 'caller'),
    role: roleOf(text(row, 'role')),
    name: name === null ? null : fromStoredText(name),
    content: fromStoredText(text(row, 'content')),
    metadata: readMetadata(text(row, 'metadata')),
    tokens: integerOrNull(row, 'tokens'),
    tokenizer: textOrNull(row, 'tokenizer'),
    createdAt: integer(row, 'created_at'),
    deletedAt: integerOrNull(row, 'deleted_at'),
  };
}

function roleOf(value: string): Role {
  switch (value) {
    case 'user':
    case 'llm':
    case 'tool':
    case 'system':
      return value;
    default:
      throw new SpillwayError('store_unavailable', 'The store holds a node of an unknown role.');
  }
}

export function summaryOf(row: SqlRow): Summary {
  return {
    id: text(row, 'id'),
    first: text(row, 'first'),
    last: text(row, 'head'),
    count: integer(row, 'depth'),
    content: fromStoredText(text(row, 'content')),
    tokens: integerOrNull(row, 'tokens'),
    tokenizer: textOrNull(row, 'tokenizer'),
  };
}

export function instructionOf(row: SqlRow): Instruction {
  return { digest: text(row, 'digest'), content: fromStoredText(text(row, 'content')) };
}

export function markOf(row: SqlRow): Mark {
  return {
    kind: markKindOf(text(row, 'kind')),
    head: text(row, 'head'),
    tokens: integer(row, 'tokens'),
    scope: text(row, 'scope'),
  };
}

function markKindOf(value: string): Mark['kind'] {
  switch (value) {
    case 'latched':
    case 'overflowed':
      return value;
    default:
      throw new SpillwayError('store_unavailable', 'The store holds a mark of an unknown kind.');
  }
}

export function callOf(row: SqlRow): Call {
  return readCall(text(row, 'record'));
}
