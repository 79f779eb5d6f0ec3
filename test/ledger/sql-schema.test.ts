import { describe, expect, it } from 'vitest';
import type { SqlDatabase } from '../../src/ledger/sql-database.js';
import { SqlLedger } from '../../src/ledger/sql-ledger.js';
import { migrate, migrations, type Migration } from '../../src/ledger/sql-schema.js';
import { sqliteDatabase } from '../../src/ledger/sqlite-database.js';
import { betterSqlite } from '../../src/ledger/sqlite.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf } from './builders.js';

const sqlite = await betterSqlite();
if (sqlite === null) throw new Error('better-sqlite3 is a dependency and did not load');
const empty = (): SqlDatabase => sqliteDatabase(sqlite(':memory:'));
const versionOf = (db: SqlDatabase) => db.all('SELECT version FROM schema_version');

const first: Migration = ['CREATE TABLE thing (name TEXT)', `INSERT INTO thing VALUES ('old')`];
const second: Migration = ['ALTER TABLE thing ADD COLUMN size INTEGER', 'UPDATE thing SET size = length(name)'];
const broken: Migration = [`INSERT INTO thing VALUES ('half', 4)`, 'INSERT INTO nowhere VALUES (1)'];

describe('the schema of the SQL ledger', () => {
  it('is made from nothing, once', () => {
    const db = empty();
    migrate(db, migrations);
    const tables = () => db.all('SELECT name, sql FROM sqlite_schema ORDER BY name');
    const made = tables();
    migrate(db, migrations);
    expect(tables()).toEqual(made);
    expect(versionOf(db)).toEqual([{ version: migrations.length }]);
  });

  it('goes from an older version to the newest step by step, keeping what is there', () => {
    const db = empty();
    migrate(db, [first]);
    expect(versionOf(db)).toEqual([{ version: 1 }]);
    migrate(db, [first, second]);
    expect(versionOf(db)).toEqual([{ version: 2 }]);
    expect(db.all('SELECT * FROM thing')).toEqual([{ name: 'old', size: 3 }]);
  });

  it('stays at the last whole version when a step fails', () => {
    const db = empty();
    expect(() => migrate(db, [first, second, broken])).toThrow(expect.objectContaining({ code: 'store_unavailable' }));
    expect(versionOf(db)).toEqual([{ version: 2 }]);
    expect(db.all('SELECT * FROM thing')).toEqual([{ name: 'old', size: 3 }]);
  });

  it('of a newer version is refused and left alone', () => {
    const db = empty();
    migrate(db, [first, second]);
    expect(() => migrate(db, [first])).toThrow(
      'written by a newer Spillway: its schema is version 2, this program knows 1',
    );
    expect(versionOf(db)).toEqual([{ version: 2 }]);
  });
});

describe('a store of the first version', () => {
  it('keeps its calls, which told of no overflow, and can learn windows', async () => {
    const db = empty();
    migrate(db, migrations.slice(0, 1));
    const { overflow, ...written } = callOf('call-1', endOf('a'));
    const before = new SqlLedger(db, () => 1_000);
    await before.openTurn(openOf(spineOf('a')));
    await before.closeTurn(closeOf({ overflow, ...written }, []));
    db.run('UPDATE call SET record = ?', JSON.stringify(written));
    expect(await before.call(alice, 'call-1')).toEqual({ ...written, overflow: null });
    expect(await before.learnedWindows(null, 10)).toEqual([]);
    expect(versionOf(db)).toEqual([{ version: migrations.length }]);
  });
});

describe('a store of the second version', () => {
  const NODE = `conversation, id, seq, depth, last_command, predecessor, caller, role, name, created_at, tokens, tokenizer,
    content, metadata`;
  const CONVERSATION = `id, tenant, dialect, canonical_version, name, session, head, active_summary, created_at, used_at,
    nodes, calls, summaries`;
  const columnsOf = {
    conversation: CONVERSATION,
    node: NODE,
    summary: '*',
    call: '*',
    mark: '*',
    instruction: 'conversation, digest, content',
    learned_window: '*',
  };

  /** What a store of this version would hold in the place of a new one. */
  function asSecondVersion(from: SqlDatabase): SqlDatabase {
    const db = empty();
    migrate(db, migrations.slice(0, 2));
    for (const [table, columns] of Object.entries(columnsOf)) {
      for (const row of from.all(`SELECT ${columns} FROM ${table}`)) {
        const values = Object.values(row).map((value) => {
          if (typeof value !== 'string' && typeof value !== 'number' && value !== null) throw new Error('unreachable');
          return value;
        });
        const names = Object.keys(row).join(', ');
        db.run(`INSERT INTO ${table} (${names}) VALUES (${values.map(() => '?').join(', ')})`, ...values);
      }
    }
    return db;
  }

  it('is upgraded in place with all it holds, and what it counts is computed, SPEC 2.1', async () => {
    const db = empty();
    const ledger = new SqlLedger(db, () => 1_000);
    const other = { ...alice, id: 'c_other' };
    for (const conversation of [alice, other]) {
      const instructions = [{ digest: 'd1', content: 'é😀' }];
      const nodes = spineOf('a !b >c', { content: 'ü', tokens: 3, tokenizer: 'o200k_base' });
      await ledger.openTurn(openOf(nodes, { conversation, instructions }));
      const call = { ...callOf('call-1', endOf('a !b >c'), { estimatedTokens: 9 }), conversation: conversation.id };
      const marks = [{ kind: 'latched', head: endOf('a'), tokens: 1, scope: 's' }] as const;
      await ledger.closeTurn(closeOf(call, [nodeAfter(endOf('a !b >c'), '>d')], { conversation, marks }));
      await ledger.commitSummary(commitOf('s', idsOf('a !b >c'), 2, { conversation }));
    }
    const older = asSecondVersion(db);
    const upgraded = new SqlLedger(older, () => 1_000);
    expect(versionOf(older)).toEqual([{ version: migrations.length }]);
    expect(await upgraded.oldest(null, 10)).toEqual(await ledger.oldest(null, 10));
    for (const conversation of [alice, other]) {
      expect(await upgraded.exportPage(conversation, null)).toEqual(await ledger.exportPage(conversation, null));
    }
    for (const store of [ledger, upgraded]) {
      await store.openTurn(openOf(spineOf('a !b >c >d e')));
      await store.closeTurn(closeOf(callOf('call-0', endOf('a !b >c >d e')), []));
    }
    expect(await upgraded.exportPage(alice, null)).toEqual(await ledger.exportPage(alice, null));
    expect(await upgraded.oldest(null, 10)).toEqual(await ledger.oldest(null, 10));
  });
});
