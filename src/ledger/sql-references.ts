import type { Reference } from '../core/ports.js';
import { text, type SqlDatabase } from './sql-database.js';
import { LISTED } from './sql-fragments.js';
import { fromStoredText, toStoredText } from './stored-text.js';

/** The references in their table (SPEC 1.2). Their ids are the upstream's to choose. */
export class SqlReferences {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
  }

  save(tenant: string, { id, conversation, node }: Reference): void {
    this.#db.run(
      `INSERT INTO reference (tenant, id, conversation, node) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET conversation = excluded.conversation, node = excluded.node`,
      tenant,
      toStoredText(id),
      conversation,
      node,
    );
  }

  resolve(tenant: string, ids: readonly string[]): ReadonlyMap<string, Reference> {
    if (ids.length === 0) return new Map();
    const rows = this.#db.all(
      `SELECT id, conversation, node FROM reference WHERE tenant = ? AND id IN ${LISTED}`,
      tenant,
      JSON.stringify(ids.map(toStoredText)),
    );
    return new Map(
      rows.map((row) => {
        const id = fromStoredText(text(row, 'id'));
        return [id, { id, conversation: text(row, 'conversation'), node: text(row, 'node') }];
      }),
    );
  }
}
