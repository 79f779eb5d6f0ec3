import { SpillwayError } from '../core/errors.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';
import { integer, text, type SqlDatabase, type SqlRow } from './sql-database.js';
import { fromStoredText, toStoredText } from './stored-text.js';

/** The learned windows in their table (SPEC 6.5); each method is one statement, or a sweep and one. */
export class SqlLearnedWindows {
  readonly #db: SqlDatabase;

  constructor(db: SqlDatabase) {
    this.#db = db;
  }

  list(tenant: string | null, limit: number, now: number): readonly LearnedWindow[] {
    const order = 'ORDER BY learned_at DESC, tenant, upstream, model LIMIT ?';
    const rows =
      tenant === null
        ? this.#db.all(`SELECT * FROM learned_window WHERE expires_at > ? ${order}`, now, limit)
        : this.#db.all(`SELECT * FROM learned_window WHERE tenant = ? AND expires_at > ? ${order}`, tenant, now, limit);
    return rows.map(windowOf);
  }

  learn(window: LearnedWindow, now: number): void {
    this.#db.run('DELETE FROM learned_window WHERE expires_at <= ?', now);
    this.#db.run(
      `INSERT INTO learned_window (tenant, upstream, model, tokens, source, rule, learned_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET tokens = excluded.tokens, source = excluded.source, rule = excluded.rule,
         learned_at = excluded.learned_at, expires_at = excluded.expires_at
       WHERE excluded.tokens <= tokens`,
      ...keyOf(window),
      window.tokens,
      window.source,
      window.rule,
      window.learnedAt,
      window.expiresAt,
    );
  }

  widen(key: WindowKey, tokens: number, now: number): void {
    this.#db.run(
      `UPDATE learned_window SET tokens = ?, source = 'success', learned_at = ?
       WHERE tenant = ? AND upstream = ? AND model = ? AND tokens < ? AND expires_at > ?`,
      tokens,
      now,
      ...keyOf(key),
      tokens,
      now,
    );
  }

  forget(key: WindowKey, now: number): boolean {
    const gone = this.#db.all(
      'DELETE FROM learned_window WHERE tenant = ? AND upstream = ? AND model = ? RETURNING expires_at',
      ...keyOf(key),
    );
    return gone.some((row) => integer(row, 'expires_at') > now);
  }

  forgetAll(tenant: string): void {
    this.#db.run('DELETE FROM learned_window WHERE tenant = ?', tenant);
  }
}

/** A model's name is the client's to choose. */
function keyOf({ tenant, upstream, model }: WindowKey): [string, string, string] {
  return [tenant, upstream, toStoredText(model)];
}

function windowOf(row: SqlRow): LearnedWindow {
  return {
    tenant: text(row, 'tenant'),
    upstream: text(row, 'upstream'),
    model: fromStoredText(text(row, 'model')),
    tokens: integer(row, 'tokens'),
    source: sourceOf(text(row, 'source')),
    rule: text(row, 'rule'),
    learnedAt: integer(row, 'learned_at'),
    expiresAt: integer(row, 'expires_at'),
  };
}

function sourceOf(value: string): LearnedWindow['source'] {
  switch (value) {
    case 'stated':
    case 'usage':
    case 'success':
      return value;
    default:
      throw new SpillwayError('store_unavailable', 'The store holds a window of an unknown source.');
  }
}
