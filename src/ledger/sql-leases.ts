import { ROOT } from '../core/node.js';
import type { ConversationKey, Lease } from '../core/ports.js';
import { integer, text, type SqlDatabase } from './sql-database.js';
import { OWNED } from './sql-fragments.js';

/** The leases of conversations (SPEC 5.11): few at a time, since an end of their chain removes them. */
export class SqlLeases {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
  }

  /** Null while one lasts that was given for a node of the chain; those that ran out there end now. */
  acquire(conversation: string, chain: readonly string[], fence: number, expiresAt: number, now: number): Lease | null {
    const places = new Set(chain);
    const onChain = this.#db
      .all('SELECT head, expires_at FROM lease WHERE conversation = ?', conversation)
      .filter((row) => places.has(text(row, 'head')));
    if (onChain.some((row) => integer(row, 'expires_at') > now)) return null;
    for (const row of onChain) {
      this.#db.run('DELETE FROM lease WHERE conversation = ? AND head = ?', conversation, text(row, 'head'));
    }
    const head = chain.at(-1) ?? ROOT;
    this.#db.run('INSERT INTO lease VALUES (?, ?, ?, ?)', conversation, head, fence, expiresAt);
    return { head, fence };
  }

  /** Whether no other was given in its place: one that only ran out still holds. */
  isHeld(conversation: string, { head, fence }: Lease): boolean {
    const held = 'SELECT 1 FROM lease WHERE conversation = ? AND head = ? AND fence = ?';
    return this.#db.all(held, conversation, head, fence).length > 0;
  }

  renew(key: ConversationKey, { head, fence }: Lease, expiresAt: number): boolean {
    const renewed = this.#db.all(
      `UPDATE lease SET expires_at = ? WHERE conversation = ? AND head = ? AND fence = ? AND ${OWNED} RETURNING fence`,
      expiresAt,
      key.id,
      head,
      fence,
      key.id,
      key.tenant,
    );
    return renewed.length > 0;
  }

  release(key: ConversationKey, { head, fence }: Lease): void {
    this.#db.run(
      `DELETE FROM lease WHERE conversation = ? AND head = ? AND fence = ? AND ${OWNED}`,
      key.id,
      head,
      fence,
      key.id,
      key.tenant,
    );
  }
}
