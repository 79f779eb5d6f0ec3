import { describe, expect, it } from 'vitest';
import type { SqlDatabase } from '../../src/ledger/sql-database.js';
import { SqlLedger } from '../../src/ledger/sql-ledger.js';
import { migrate, migrations, type Migration } from '../../src/ledger/sql-schema.js';
import { sqliteDatabase } from '../../src/ledger/sqlite-database.js';
import { betterSqlite } from '../../src/ledger/sqlite.js';
import { alice, callOf, closeOf, endOf, openOf, spineOf } from './builders.js';

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
