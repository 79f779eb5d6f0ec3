import { SpillwayError } from '../core/errors.js';
import type { Role } from '../core/message.js';
import type { Node } from '../core/node.js';
import type { Call, ConversationEntry, Summary } from '../core/ports.js';
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
}

export function entryOf(row: SqlRow): ConversationEntry {
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
    nodes: integer(row, 'nodes'),
    calls: integer(row, 'calls'),
    summaries: integer(row, 'summaries'),
  };
}

export function placeOf(row: SqlRow): Place {
  return {
    id: text(row, 'id'),
    predecessor: text(row, 'predecessor'),
    depth: integer(row, 'depth'),
    lastCommand: textOrNull(row, 'last_command'),
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

export function callOf(row: SqlRow): Call {
  return readCall(text(row, 'record'));
}
