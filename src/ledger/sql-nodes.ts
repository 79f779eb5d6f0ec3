import { isCommand, type NewNode, type Node } from '../core/node.js';
import type { ConversationKey, Summary } from '../core/ports.js';
import { integer, text, type SqlDatabase } from './sql-database.js';
import { LISTED, OWNED } from './sql-fragments.js';
import { nodeOf, placeOf, summaryOf, type Place } from './sql-rows.js';
import { toStoredText } from './stored-text.js';
import { utf8Length } from './utf8-length.js';

const PLACE = 'id, predecessor, depth, last_command, deleted_at';
const NODE = `conversation, id, seq, predecessor, caller, role, name, created_at, deleted_at, tokens, tokenizer,
  content, metadata`;

/** Where and when a node is written. */
export interface NodePlace {
  readonly seq: number;
  readonly depth: number;
  readonly lastCommand: string | null;
  readonly createdAt: number;
  readonly deletedAt: number | null;
}

export interface InsertedNode {
  readonly place: Place;
  /** Of its content. */
  readonly bytes: number;
}

export interface ErasedNodes {
  /** Summaries included. */
  readonly nodes: number;
  readonly summaries: readonly string[];
  readonly bytes: number;
}

/** The nodes and summaries of conversations, one method a question or a write; the rules are `SqlLedger`'s. */
export class SqlNodes {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
  }

  place(conversation: string, id: string): Place | null {
    const [row] = this.#db.all(`SELECT ${PLACE} FROM node WHERE conversation = ? AND id = ?`, conversation, id);
    return row === undefined ? null : placeOf(row);
  }

  places(conversation: string, ids: readonly string[]): ReadonlyMap<string, Place> {
    if (ids.length === 0) return new Map();
    const rows = this.#db.all(
      `SELECT ${PLACE} FROM node WHERE conversation = ? AND id IN ${LISTED}`,
      conversation,
      JSON.stringify(ids),
    );
    return new Map(rows.map((row) => [text(row, 'id'), placeOf(row)]));
  }

  /** The one insertion of a node; afterwards only its count and its tombstone ever change (SPEC 2.1). */
  insert(conversation: string, node: NewNode, at: NodePlace): InsertedNode {
    const bytes = utf8Length(node.content);
    const lastCommand = isCommand(node) ? node.id : at.lastCommand;
    this.#db.run(
      `INSERT INTO node (${NODE}, depth, last_command, bytes)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      conversation,
      node.id,
      at.seq,
      node.predecessor,
      node.caller,
      node.role,
      node.name === null ? null : toStoredText(node.name),
      at.createdAt,
      at.deletedAt,
      node.tokens,
      node.tokenizer,
      toStoredText(node.content),
      JSON.stringify(node.metadata),
      at.depth,
      lastCommand,
      bytes,
    );
    const { id, predecessor } = node;
    return { place: { id, predecessor, depth: at.depth, lastCommand, deletedAt: at.deletedAt }, bytes };
  }

  node(key: ConversationKey, id: string): Node | null {
    const [row] = this.#db.all(
      `SELECT ${NODE} FROM node WHERE conversation = ? AND id = ? AND ${OWNED}`,
      key.id,
      id,
      key.id,
      key.tenant,
    );
    return row === undefined ? null : nodeOf(row);
  }

  nodes(key: ConversationKey, afterSeq: number, limit: number): readonly Node[] {
    return this.#db
      .all(
        `SELECT ${NODE} FROM node WHERE conversation = ? AND seq > ? AND ${OWNED} ORDER BY seq LIMIT ?`,
        key.id,
        afterSeq,
        key.id,
        key.tenant,
        limit,
      )
      .map(nodeOf);
  }

  /** The spine of a node, first node first. */
  spine(conversation: string, head: string): readonly Node[] {
    const rows = this.#db.all(
      `WITH RECURSIVE spine (position, at) AS (
         SELECT 0, ?
         UNION ALL
         SELECT position + 1, predecessor FROM spine JOIN node ON conversation = ? AND id = at
       )
       SELECT ${NODE} FROM spine CROSS JOIN node ON conversation = ? AND id = at ORDER BY position DESC`,
      head,
      conversation,
      conversation,
    );
    return rows.map(nodeOf);
  }

  /** Whether `id`, which stands at `depth`, is `head` or stands before it. */
  descends(conversation: string, head: string, id: string, depth: number): boolean {
    const rows = this.#db.all(
      `WITH RECURSIVE walk (at, depth) AS (
         SELECT id, depth FROM node WHERE conversation = ? AND id = ?
         UNION ALL
         SELECT predecessor, walk.depth - 1 FROM walk JOIN node ON conversation = ? AND id = at WHERE walk.depth > ?
       )
       SELECT 1 FROM walk WHERE at = ?`,
      conversation,
      head,
      conversation,
      depth,
      id,
    );
    return rows.length > 0;
  }

  /** The commands on the spine of a node, first to last: one look-up each. */
  commands(conversation: string, last: Place): readonly string[] {
    if (last.lastCommand === null) return [];
    const rows = this.#db.all(
      `WITH RECURSIVE trail (back, at) AS (
         SELECT 0, ?
         UNION ALL
         SELECT back + 1, earlier.last_command
         FROM trail
         JOIN node AS command ON command.conversation = ? AND command.id = at
         JOIN node AS earlier ON earlier.conversation = ? AND earlier.id = command.predecessor
       )
       SELECT at FROM trail WHERE at IS NOT NULL ORDER BY back DESC`,
      last.lastCommand,
      conversation,
      conversation,
    );
    return rows.map((row) => text(row, 'at'));
  }

  counts(conversation: string, ids: readonly string[], tokenizer: string): ReadonlyMap<string, number> {
    const rows = this.#db.all(
      `SELECT id, tokens FROM node WHERE conversation = ? AND id IN ${LISTED} AND tokenizer = ? AND tokens IS NOT NULL`,
      conversation,
      JSON.stringify(ids),
      tokenizer,
    );
    return new Map(rows.map((row) => [text(row, 'id'), integer(row, 'tokens')]));
  }

  /** Remembers a count of a node that had none by this tokenizer. */
  fillCount(conversation: string, id: string, tokens: number, tokenizer: string): void {
    this.#db.run(
      `UPDATE node SET tokens = ?, tokenizer = ?
       WHERE conversation = ? AND id = ? AND (tokens IS NULL OR tokenizer IS NOT ?)`,
      tokens,
      tokenizer,
      conversation,
      id,
      tokenizer,
    );
  }

  /** A node and every node behind it. A node is written after its predecessor, so one pass finds them. */
  branch(conversation: string, from: string): readonly string[] {
    const rows = this.#db.all(
      `SELECT id, predecessor FROM node
       WHERE conversation = ? AND depth > 0 AND seq >= (SELECT seq FROM node WHERE conversation = ? AND id = ?)
       ORDER BY seq`,
      conversation,
      conversation,
      from,
    );
    const branch = new Set([from]);
    for (const row of rows) if (branch.has(text(row, 'predecessor'))) branch.add(text(row, 'id'));
    return [...branch];
  }

  /** Puts tombstones on those of these nodes that have none; how many that were. */
  markDeleted(conversation: string, ids: readonly string[], deletedAt: number): number {
    return this.#db.all(
      `UPDATE node SET deleted_at = ? WHERE conversation = ? AND id IN ${LISTED} AND deleted_at IS NULL RETURNING seq`,
      deletedAt,
      conversation,
      JSON.stringify(ids),
    ).length;
  }

  /** Lifts the tombstones of these nodes; how many that were. */
  lift(conversation: string, ids: readonly string[]): number {
    return this.#db.all(
      `UPDATE node SET deleted_at = NULL
       WHERE conversation = ? AND id IN ${LISTED} AND deleted_at IS NOT NULL RETURNING seq`,
      conversation,
      JSON.stringify(ids),
    ).length;
  }

  /** Lifts the tombstones of a node and of those before it, of which the deleted ones are the last; how many that were. */
  liftSpine(conversation: string, last: string): number {
    return this.#db.all(
      `WITH RECURSIVE walk (at) AS (
         SELECT ?
         UNION ALL
         SELECT predecessor FROM walk JOIN node ON conversation = ? AND id = at WHERE deleted_at IS NOT NULL
       )
       UPDATE node SET deleted_at = NULL
       WHERE conversation = ? AND id IN (SELECT at FROM walk) AND deleted_at IS NOT NULL RETURNING seq`,
      last,
      conversation,
      conversation,
    ).length;
  }

  /** Takes out nodes of a chain, and the summaries that cover one of them: those whose segment ends in one. */
  erase(conversation: string, ids: readonly string[]): ErasedNodes {
    const listed = JSON.stringify(ids);
    const summaries = this.#db
      .all(`DELETE FROM summary WHERE conversation = ? AND head IN ${LISTED} RETURNING id`, conversation, listed)
      .map((row) => text(row, 'id'));
    const rows = this.#db.all(
      `DELETE FROM node WHERE conversation = ? AND id IN ${LISTED} RETURNING bytes`,
      conversation,
      JSON.stringify([...ids, ...summaries]),
    );
    return { nodes: rows.length, summaries, bytes: rows.reduce((sum, row) => sum + integer(row, 'bytes'), 0) };
  }

  insertSummary(
    conversation: string,
    summary: { id: string; seq: number; first: string; last: string; count: number },
  ): void {
    this.#db.run(
      'INSERT INTO summary (conversation, id, seq, first, head, depth) VALUES (?, ?, ?, ?, ?, ?)',
      conversation,
      summary.id,
      summary.seq,
      summary.first,
      summary.last,
      summary.count,
    );
  }

  summary(conversation: string, id: string): Summary | null {
    const [row] = this.#db.all(
      `SELECT summary.*, content, tokens, tokenizer FROM summary JOIN node USING (conversation, id)
       WHERE summary.conversation = ? AND summary.id = ?`,
      conversation,
      id,
    );
    return row === undefined ? null : summaryOf(row);
  }
}
