import type { ConversationEntry, ListPosition, TenantUsage } from '../core/ports.js';
import { integer, text, type SqlDatabase } from './sql-database.js';
import { entryOf, stateOf, type ConversationState } from './sql-rows.js';
import { toStoredText } from './stored-text.js';

/** Every table whose rows belong to a conversation. */
const TABLES = ['node', 'summary', 'call', 'later_reply', 'mark', 'instruction', 'lease', 'reference'] as const;

/** The rows of conversations, one method a question or a write; the rules are `SqlLedger`'s. */
export class SqlConversations {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
  }

  find(id: string): ConversationState | null {
    const [row] = this.#db.all('SELECT * FROM conversation WHERE id = ?', id);
    return row === undefined ? null : stateOf(row);
  }

  /** Creates the row, or writes what may change in it. */
  save(state: ConversationState): void {
    this.#db.run(
      `INSERT INTO conversation (id, tenant, dialect, canonical_version, name, session, head, active_summary,
         created_at, used_at, deleted_at, nodes, calls, summaries, bytes,
         last_seq, last_call, last_fence, revision, importing)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET head = excluded.head, active_summary = excluded.active_summary,
         used_at = excluded.used_at, deleted_at = excluded.deleted_at, nodes = excluded.nodes, calls = excluded.calls,
         summaries = excluded.summaries, bytes = excluded.bytes, last_seq = excluded.last_seq,
         last_call = excluded.last_call, last_fence = excluded.last_fence, revision = excluded.revision,
         importing = excluded.importing`,
      state.id,
      state.tenant,
      state.dialect,
      state.canonicalVersion,
      state.name === null ? null : toStoredText(state.name),
      state.session === null ? null : toStoredText(state.session),
      state.head,
      state.activeSummary,
      state.createdAt,
      state.usedAt,
      state.deletedAt,
      state.nodes,
      state.calls,
      state.summaries,
      state.bytes,
      state.lastSeq,
      state.lastCall,
      state.lastFence,
      state.revision,
      state.importing ? 1 : 0,
    );
  }

  list(tenant: string | null, limit: number, before: ListPosition | null): readonly ConversationEntry[] {
    const { usedAt, id } = before ?? { usedAt: Number.MAX_SAFE_INTEGER, id: '' };
    const rest = 'deleted_at IS NULL AND (used_at, id) < (?, ?) ORDER BY used_at DESC, id DESC LIMIT ?';
    const rows =
      tenant === null
        ? this.#db.all(`SELECT * FROM conversation WHERE ${rest}`, usedAt, id, limit)
        : this.#db.all(`SELECT * FROM conversation WHERE tenant = ? AND ${rest}`, tenant, usedAt, id, limit);
    return rows.map(entryOf);
  }

  oldest(tenant: string | null, limit: number): readonly ConversationEntry[] {
    const order = 'ORDER BY used_at, id LIMIT ?';
    const rows =
      tenant === null
        ? this.#db.all(`SELECT * FROM conversation ${order}`, limit)
        : this.#db.all(`SELECT * FROM conversation WHERE tenant = ? ${order}`, tenant, limit);
    return rows.map(entryOf);
  }

  tenants(): readonly TenantUsage[] {
    return this.#db
      .all('SELECT tenant, count(*) AS conversations, sum(bytes) AS bytes FROM conversation GROUP BY tenant')
      .map((row) => ({
        tenant: text(row, 'tenant'),
        conversations: integer(row, 'conversations'),
        bytes: integer(row, 'bytes'),
      }));
  }

  /** Leaves nothing of it in any table. */
  erase(id: string): void {
    for (const table of TABLES) this.#db.run(`DELETE FROM ${table} WHERE conversation = ?`, id);
    this.#db.run('DELETE FROM conversation WHERE id = ?', id);
  }
}
