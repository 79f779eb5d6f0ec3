import { isCommand, type NewNode, type Node } from '../core/node.js';
import type { Call, ConversationEntry, ConversationKey, Instruction, Mark, Summary } from '../core/ports.js';
import { matchOfCall } from './match-of-call.js';
import { integer, text, type SqlDatabase } from './sql-database.js';
import { callOf, entryOf, nodeOf, placeOf, summaryOf, type Place } from './sql-rows.js';
import { fromStoredText, toStoredText } from './stored-text.js';

const PLACE = 'id, predecessor, depth, last_command';
const NODE = 'conversation, id, seq, predecessor, caller, role, name, created_at, tokens, tokenizer, content, metadata';
/** The asker owns the conversation: nothing is read across tenants (SPEC 1.1). */
const OWNED = 'EXISTS (SELECT 1 FROM conversation AS owned WHERE owned.id = ? AND owned.tenant = ?)';
const LISTED = '(SELECT value FROM json_each(?))';

/** The ledger's rows, one method a question or a write; the rules are `SqlLedger`'s. */
export class SqlStore {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
  }

  conversation(id: string): ConversationEntry | null {
    const [row] = this.#db.all('SELECT * FROM conversation WHERE id = ?', id);
    return row === undefined ? null : entryOf(row);
  }

  list(tenant: string | null, limit: number, before: number | null): readonly ConversationEntry[] {
    const until = before ?? Number.MAX_SAFE_INTEGER;
    const rows =
      tenant === null
        ? this.#db.all(
            'SELECT * FROM conversation WHERE used_at < ? ORDER BY used_at DESC, id DESC LIMIT ?',
            until,
            limit,
          )
        : this.#db.all(
            'SELECT * FROM conversation WHERE tenant = ? AND used_at < ? ORDER BY used_at DESC, id DESC LIMIT ?',
            tenant,
            until,
            limit,
          );
    return rows.map(entryOf);
  }

  /** Creates the row, or writes what may change in it. */
  save(entry: ConversationEntry): void {
    this.#db.run(
      `INSERT INTO conversation (id, tenant, dialect, canonical_version, name, session, head, active_summary,
         created_at, used_at, nodes, calls, summaries)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET head = excluded.head, active_summary = excluded.active_summary,
         used_at = excluded.used_at, nodes = excluded.nodes, calls = excluded.calls, summaries = excluded.summaries`,
      entry.id,
      entry.tenant,
      entry.dialect,
      entry.canonicalVersion,
      entry.name === null ? null : toStoredText(entry.name),
      entry.session === null ? null : toStoredText(entry.session),
      entry.head,
      entry.activeSummary,
      entry.createdAt,
      entry.usedAt,
      entry.nodes,
      entry.calls,
      entry.summaries,
    );
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

  /** The one insertion of a node; no statement but `fillCount` ever changes one (SPEC 2.1). */
  insertNode(
    conversation: string,
    node: NewNode,
    at: { seq: number; depth: number; lastCommand: string | null; createdAt: number },
  ): Place {
    const lastCommand = isCommand(node) ? node.id : at.lastCommand;
    this.#db.run(
      `INSERT INTO node (${NODE}, depth, last_command) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      conversation,
      node.id,
      at.seq,
      node.predecessor,
      node.caller,
      node.role,
      node.name === null ? null : toStoredText(node.name),
      at.createdAt,
      node.tokens,
      node.tokenizer,
      toStoredText(node.content),
      JSON.stringify(node.metadata),
      at.depth,
      lastCommand,
    );
    return { id: node.id, predecessor: node.predecessor, depth: at.depth, lastCommand };
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

  /** Remembers a count of a node that had none by this tokenizer: the only update a node's row ever sees. */
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

  insertCall(call: Call, at: { seq: number; depth: number }): void {
    const match = matchOfCall(call);
    this.#db.run(
      `INSERT INTO call (conversation, id, seq, head, depth, model, estimated, measured, record)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      call.conversation,
      call.id,
      at.seq,
      call.manifest.head,
      at.depth,
      call.model,
      match?.estimatedTokens ?? null,
      match?.measuredTokens ?? null,
      JSON.stringify(call),
    );
  }

  call(key: ConversationKey, id: string): Call | null {
    const [row] = this.#db.all(
      `SELECT record FROM call WHERE conversation = ? AND id = ? AND ${OWNED}`,
      key.id,
      id,
      key.id,
      key.tenant,
    );
    return row === undefined ? null : callOf(row);
  }

  calls(key: ConversationKey, limit: number): readonly Call[] {
    return this.#db
      .all(
        `SELECT record FROM call WHERE conversation = ? AND ${OWNED} ORDER BY seq DESC LIMIT ?`,
        key.id,
        key.id,
        key.tenant,
        limit,
      )
      .map(callOf)
      .toReversed();
  }

  /** A reply follows the head of its call, so its calls are found among the few of its predecessor. */
  callsOfReply(key: ConversationKey, reply: string): readonly Call[] {
    return this.#db
      .all(
        `SELECT record FROM call
         WHERE conversation = ? AND head = (SELECT predecessor FROM node WHERE conversation = ? AND id = ?)
           AND EXISTS (SELECT 1 FROM json_each(record, '$.replies') WHERE value = ?) AND ${OWNED}
         ORDER BY seq`,
        key.id,
        key.id,
        reply,
        reply,
        key.id,
        key.tenant,
      )
      .map(callOf);
  }

  saveMark(conversation: string, mark: Mark, depth: number): void {
    this.#db.run(
      `INSERT INTO mark (conversation, kind, head, depth, tokens, scope) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET tokens = excluded.tokens, scope = excluded.scope`,
      conversation,
      mark.kind,
      mark.head,
      depth,
      mark.tokens,
      mark.scope,
    );
  }

  /** Stores each once by its digest (SPEC 1.5); the texts of those that are there are not even bound. */
  storeInstructions(conversation: string, instructions: readonly Instruction[]): void {
    if (instructions.length === 0) return;
    const digests = JSON.stringify(instructions.map((instruction) => instruction.digest));
    const rows = this.#db.all(
      `SELECT digest FROM instruction WHERE conversation = ? AND digest IN ${LISTED}`,
      conversation,
      digests,
    );
    const stored = new Set(rows.map((row) => text(row, 'digest')));
    for (const { digest, content } of instructions) {
      if (stored.has(digest)) continue;
      stored.add(digest);
      this.#db.run('INSERT INTO instruction VALUES (?, ?, ?)', conversation, digest, toStoredText(content));
    }
  }

  instruction(key: ConversationKey, digest: string): Instruction | null {
    const [row] = this.#db.all(
      `SELECT content FROM instruction WHERE conversation = ? AND digest = ? AND ${OWNED}`,
      key.id,
      digest,
      key.id,
      key.tenant,
    );
    return row === undefined ? null : { digest, content: fromStoredText(text(row, 'content')) };
  }
}
