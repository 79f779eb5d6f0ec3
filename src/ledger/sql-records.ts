import type { Call, ConversationKey, Instruction, Mark } from '../core/ports.js';
import { matchOfCall } from './match-of-call.js';
import { integer, text, type SqlDatabase } from './sql-database.js';
import { LISTED, OWNED } from './sql-fragments.js';
import { callOf, instructionOf } from './sql-rows.js';
import { toStoredText } from './stored-text.js';
import { utf8Length } from './utf8-length.js';

/** What stands beside the nodes: calls, marks, instructions. One method a question or a write; the rules are `SqlLedger`'s. */
export class SqlRecords {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
  }

  /** `later`: those of its replies that do not follow its head, but another of them. */
  insertCall(call: Call, at: { seq: number; depth: number }, later: readonly string[]): void {
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
    for (const reply of later) {
      const insert = 'INSERT INTO later_reply VALUES (?, ?, ?) ON CONFLICT DO NOTHING';
      this.#db.run(insert, call.conversation, reply, call.id);
    }
  }

  hasCall(conversation: string, id: string): boolean {
    return this.#db.all('SELECT 1 FROM call WHERE conversation = ? AND id = ?', conversation, id).length > 0;
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

  /** A reply follows the head of its call or a reply that does, so its calls are found among few. */
  callsOfReply(key: ConversationKey, reply: string): readonly Call[] {
    return this.#db
      .all(
        `SELECT seq, record FROM call
         WHERE conversation = ? AND head = (SELECT predecessor FROM node WHERE conversation = ? AND id = ?) AND ${OWNED}
         UNION
         SELECT call.seq, record FROM later_reply
         JOIN node ON node.conversation = later_reply.conversation AND node.id = later_reply.reply
         JOIN call ON call.conversation = later_reply.conversation AND call.id = later_reply.call
         WHERE later_reply.conversation = ? AND later_reply.reply = ? AND ${OWNED}
         ORDER BY seq`,
        key.id,
        key.id,
        reply,
        key.id,
        key.tenant,
        key.id,
        reply,
        key.id,
        key.tenant,
      )
      .map(callOf)
      .filter((call) => call.replies.includes(reply));
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

  /** Stores each once by its digest (SPEC 1.5); the texts of those that are there are not even bound. Bytes that were added. */
  storeInstructions(conversation: string, instructions: readonly Instruction[]): number {
    if (instructions.length === 0) return 0;
    const rows = this.#db.all(
      `SELECT digest FROM instruction WHERE conversation = ? AND digest IN ${LISTED}`,
      conversation,
      JSON.stringify(instructions.map((instruction) => instruction.digest)),
    );
    const stored = new Set(rows.map((row) => text(row, 'digest')));
    let added = 0;
    for (const { digest, content } of instructions) {
      if (stored.has(digest)) continue;
      stored.add(digest);
      const bytes = utf8Length(content);
      this.#db.run(
        'INSERT INTO instruction (conversation, digest, bytes, content) VALUES (?, ?, ?, ?)',
        conversation,
        digest,
        bytes,
        toStoredText(content),
      );
      added += bytes;
    }
    return added;
  }

  instruction(key: ConversationKey, digest: string): Instruction | null {
    const [row] = this.#db.all(
      `SELECT digest, content FROM instruction WHERE conversation = ? AND digest = ? AND ${OWNED}`,
      key.id,
      digest,
      key.id,
      key.tenant,
    );
    return row === undefined ? null : instructionOf(row);
  }

  /** Takes out what stands at these heads: marks and calls, with the instructions and reductions that only those name. */
  eraseAt(conversation: string, heads: readonly string[]): { readonly calls: number; readonly bytes: number } {
    const listed = JSON.stringify(heads);
    this.#db.all(
      `DELETE FROM mark WHERE conversation = ? AND kind IN ('latched', 'overflowed') AND head IN ${LISTED} RETURNING kind`,
      conversation,
      listed,
    );
    const calls = this.#db
      .all(`DELETE FROM call WHERE conversation = ? AND head IN ${LISTED} RETURNING record`, conversation, listed)
      .map(callOf);
    this.#db.all(
      `DELETE FROM later_reply WHERE conversation = ? AND call IN ${LISTED} RETURNING call`,
      conversation,
      JSON.stringify(calls.map((call) => call.id)),
    );
    const unnamed = this.#withoutNamed(conversation, new Set(calls.flatMap(digestsOf)));
    const rows = this.#db.all(
      `DELETE FROM instruction WHERE conversation = ? AND digest IN ${LISTED} RETURNING bytes`,
      conversation,
      JSON.stringify([...unnamed]),
    );
    return { calls: calls.length, bytes: rows.reduce((sum, row) => sum + integer(row, 'bytes'), 0) };
  }

  /** Those of some digests that no call names. The latest calls are read first, for most share their instructions. */
  #withoutNamed(conversation: string, digests: ReadonlySet<string>): ReadonlySet<string> {
    const unnamed = new Set(digests);
    let before = Number.MAX_SAFE_INTEGER;
    while (unnamed.size > 0 && before > 0) {
      const rows = this.#db.all(
        'SELECT seq, record FROM call WHERE conversation = ? AND seq < ? ORDER BY seq DESC LIMIT 100',
        conversation,
        before,
      );
      for (const row of rows) for (const digest of digestsOf(callOf(row))) unnamed.delete(digest);
      const last = rows.at(-1);
      before = last === undefined ? 0 : integer(last, 'seq');
    }
    return unnamed;
  }
}

function digestsOf({ manifest }: Call): readonly string[] {
  return manifest.reduction === null ? manifest.instructions : [...manifest.instructions, manifest.reduction];
}
