import { SpillwayError } from '../core/errors.js';
import { integer, type SqlDatabase } from './sql-database.js';

/** One step from a version to the next: statements, run in order in one transaction. */
export type Migration = readonly string[];

/** What makes the tables of version n out of those of n - 1, from an empty database on. Never edited once released. */
export const migrations: readonly Migration[] = [
  [
    // `nodes` counts every node and is the `seq` of the last one; the counters are written with what they count (SPEC 3.5).
    `CREATE TABLE conversation (
      id TEXT PRIMARY KEY, tenant TEXT NOT NULL, dialect TEXT NOT NULL, canonical_version INTEGER NOT NULL,
      name TEXT, session TEXT, head TEXT NOT NULL, active_summary TEXT,
      created_at INTEGER NOT NULL, used_at INTEGER NOT NULL,
      nodes INTEGER NOT NULL, calls INTEGER NOT NULL, summaries INTEGER NOT NULL
    ) STRICT`,
    `CREATE INDEX conversation_used ON conversation (used_at, id)`,
    `CREATE INDEX conversation_tenant_used ON conversation (tenant, used_at, id)`,

    // depth: position on the spine, first node 1; 0 for a summary, which stands on none. last_command: the nearest command
    // at or before this node on its spine, so that a spine's commands are found without reading it (SPEC 4.9).
    // tokens, tokenizer: a remembered measurement and no part of the node, so they alone may be filled in later (SPEC 2.1).
    // They stand before the content, to be read without paging through it.
    `CREATE TABLE node (
      conversation TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, depth INTEGER NOT NULL, last_command TEXT,
      predecessor TEXT NOT NULL, caller TEXT, role TEXT NOT NULL, name TEXT, created_at INTEGER NOT NULL,
      tokens INTEGER, tokenizer TEXT,
      content TEXT NOT NULL, metadata TEXT NOT NULL,
      PRIMARY KEY (conversation, id)
    ) STRICT`,
    `CREATE INDEX node_seq ON node (conversation, seq)`,

    // Where each summary's segment lies. Coverage starts at the spine's first node: its count is the depth of its last one.
    `CREATE TABLE summary (
      conversation TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL,
      first TEXT NOT NULL, head TEXT NOT NULL, depth INTEGER NOT NULL,
      PRIMARY KEY (conversation, id)
    ) STRICT, WITHOUT ROWID`,
    `CREATE INDEX summary_head ON summary (conversation, head)`,
    `CREATE INDEX summary_depth ON summary (conversation, depth)`,

    // estimated, measured: set together, or neither (SPEC 9.4).
    `CREATE TABLE call (
      conversation TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL,
      head TEXT NOT NULL, depth INTEGER NOT NULL, model TEXT NOT NULL, estimated REAL, measured REAL,
      record TEXT NOT NULL,
      PRIMARY KEY (conversation, id)
    ) STRICT`,
    `CREATE INDEX call_seq ON call (conversation, seq)`,
    `CREATE INDEX call_head ON call (conversation, head, model)`,
    `CREATE INDEX call_depth ON call (conversation, model, depth) WHERE measured IS NOT NULL`,

    `CREATE TABLE mark (
      conversation TEXT NOT NULL, kind TEXT NOT NULL, head TEXT NOT NULL,
      depth INTEGER NOT NULL, tokens INTEGER NOT NULL, scope TEXT NOT NULL,
      PRIMARY KEY (conversation, kind, head)
    ) STRICT, WITHOUT ROWID`,
    `CREATE INDEX mark_depth ON mark (conversation, kind, depth)`,

    `CREATE TABLE instruction (
      conversation TEXT NOT NULL, digest TEXT NOT NULL, content TEXT NOT NULL,
      PRIMARY KEY (conversation, digest)
    ) STRICT`,
  ],
  [
    `CREATE TABLE learned_window (
      tenant TEXT NOT NULL, upstream TEXT NOT NULL, model TEXT NOT NULL, tokens INTEGER NOT NULL,
      source TEXT NOT NULL, rule TEXT NOT NULL, learned_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
      PRIMARY KEY (tenant, upstream, model)
    ) STRICT, WITHOUT ROWID`,
    `CREATE INDEX learned_window_expiry ON learned_window (expires_at)`,
  ],
];

/**
 * Brings the database to the last version in `steps`, one transaction a step, so that a break leaves a whole older
 * version. Throws `store_unavailable` for a database that a newer program wrote. The version stands in a table because a
 * Durable Object has no user_version.
 */
export function migrate(db: SqlDatabase, steps: readonly Migration[]): void {
  while (db.transaction(() => migrateOneStep(db, steps)));
}

function migrateOneStep(db: SqlDatabase, steps: readonly Migration[]): boolean {
  db.run('CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT');
  const [row] = db.all('SELECT version FROM schema_version');
  const version = row === undefined ? 0 : integer(row, 'version');
  if (version > steps.length) {
    throw new SpillwayError(
      'store_unavailable',
      `The store was written by a newer Spillway: its schema is version ${version}, this program knows ${steps.length}.`,
    );
  }
  const step = steps[version];
  if (step === undefined) return false;
  for (const statement of step) db.run(statement);
  db.run(
    row === undefined ? 'INSERT INTO schema_version VALUES (?)' : 'UPDATE schema_version SET version = ?',
    version + 1,
  );
  return true;
}
