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
  [
    // last_seq, last_call, last_fence: the numbers given last; none is given twice, whatever was erased. revision: grows when
    // stored nodes are deleted, restored or erased. importing: 1 from the first page of an import to its last.
    'ALTER TABLE conversation ADD COLUMN deleted_at INTEGER',
    ...['bytes', 'last_seq', 'last_call', 'last_fence', 'revision', 'importing'].map(
      (column) => `ALTER TABLE conversation ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0`,
    ),

    // Made anew, because what is read without the content must stand before it. bytes: of the content in UTF-8.
    `CREATE TABLE new_node (
      conversation TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, depth INTEGER NOT NULL, last_command TEXT,
      predecessor TEXT NOT NULL, caller TEXT, role TEXT NOT NULL, name TEXT, created_at INTEGER NOT NULL,
      deleted_at INTEGER, tokens INTEGER, tokenizer TEXT, bytes INTEGER NOT NULL,
      content TEXT NOT NULL, metadata TEXT NOT NULL,
      PRIMARY KEY (conversation, id)
    ) STRICT`,
    `INSERT INTO new_node
     SELECT conversation, id, seq, depth, last_command, predecessor, caller, role, name, created_at,
       NULL, tokens, tokenizer, length(CAST(content AS BLOB)), content, metadata
     FROM node`,
    'DROP TABLE node',
    'ALTER TABLE new_node RENAME TO node',
    'CREATE INDEX node_seq ON node (conversation, seq)',

    `CREATE TABLE new_instruction (
      number INTEGER PRIMARY KEY, conversation TEXT NOT NULL, digest TEXT NOT NULL, bytes INTEGER NOT NULL,
      content TEXT NOT NULL, UNIQUE (conversation, digest)
    ) STRICT`,
    `INSERT INTO new_instruction (conversation, digest, bytes, content)
     SELECT conversation, digest, length(CAST(content AS BLOB)), content FROM instruction`,
    'DROP TABLE instruction',
    'ALTER TABLE new_instruction RENAME TO instruction',

    `UPDATE conversation SET last_seq = nodes, last_call = calls, bytes =
       (SELECT coalesce(sum(bytes), 0) FROM node WHERE node.conversation = conversation.id) +
       (SELECT coalesce(sum(bytes), 0) FROM instruction WHERE instruction.conversation = conversation.id)`,

    `CREATE TABLE lease (
      conversation TEXT NOT NULL, head TEXT NOT NULL, fence INTEGER NOT NULL, expires_at INTEGER NOT NULL,
      PRIMARY KEY (conversation, head)
    ) STRICT, WITHOUT ROWID`,

    // The replies that follow another one of their call; the others are found by the head of the call.
    `CREATE TABLE later_reply (
      conversation TEXT NOT NULL, reply TEXT NOT NULL, call TEXT NOT NULL,
      PRIMARY KEY (conversation, reply, call)
    ) STRICT, WITHOUT ROWID`,

    `CREATE TABLE reference (
      tenant TEXT NOT NULL, id TEXT NOT NULL, conversation TEXT NOT NULL, node TEXT NOT NULL,
      PRIMARY KEY (tenant, id)
    ) STRICT, WITHOUT ROWID`,
    'CREATE INDEX reference_node ON reference (conversation, node)',
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
