import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock, Directory, Ledger } from '../../src/core/ports.js';
import { SqlLedger } from '../../src/ledger/sql-ledger.js';
import { sqliteDatabase, type SqliteHandle } from '../../src/ledger/sqlite-database.js';
import { betterSqlite, nodeSqlite, openSqliteLedger, type OpenSqlite } from '../../src/ledger/sqlite.js';
import { alice, endOf, idsOf, openOf, spineOf } from './builders.js';
import { ledgerConformance, type LedgerHarness } from './conformance.js';

const better = await betterSqlite();
if (better === null) throw new Error('better-sqlite3 is a dependency and did not load');
const node = nodeSqlite();

ledgerConformance('SQLite (better-sqlite3)', (clock) => harnessOf(better, clock));
if (node !== null) ledgerConformance('SQLite (node:sqlite)', (clock) => harnessOf(node, clock));

/** A ledger over one of the two packages, on a file of its own. */
async function harnessOf(sqlite: OpenSqlite, clock: Clock): Promise<LedgerHarness> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-'));
  const open = (): Promise<Ledger & Directory> =>
    openSqliteLedger({ file: join(folder, 'ledger.db'), durability: 'normal', busyTimeoutMs: 0, clock }, sqlite);
  let ledger = await open();
  return {
    ledger,
    reopen: async () => {
      await ledger.close();
      ledger = await open();
      return ledger;
    },
    dispose: async () => {
      await ledger.close();
      rmSync(folder, { recursive: true });
    },
  };
}

describe('a SQLite data file', () => {
  let folder: string;
  let file: string;
  const opened: (Ledger & Directory)[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'spillway-'));
    file = join(folder, 'data', 'ledger.db');
  });
  afterEach(async () => {
    for (const ledger of opened.splice(0)) await ledger.close();
    rmSync(folder, { recursive: true });
  });

  const open = async () => {
    const ledger = await openSqliteLedger({ file, durability: 'normal', busyTimeoutMs: 0, clock: () => 1_000 });
    opened.push(ledger);
    return ledger;
  };
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  const unavailable = (message: RegExp | string) =>
    expect.objectContaining({ code: 'store_unavailable', message: expect.stringMatching(message) });

  it('and its logs are readable by their owner alone, whatever they were before', async () => {
    const ledger = await open();
    await ledger.openTurn(openOf(spineOf('a')));
    expect(['', '-wal', '-shm'].map((suffix) => modeOf(file + suffix))).toEqual(['600', '600', '600']);
    expect(modeOf(join(folder, 'data'))).toBe('700');
    await ledger.close();

    mkdirSync(join(folder, 'lax'));
    file = join(folder, 'lax', 'ledger.db');
    writeFileSync(file, '', { mode: 0o644 });
    await (await open()).openTurn(openOf(spineOf('a')));
    expect(['', '-wal', '-shm'].map((suffix) => modeOf(file + suffix))).toEqual(['600', '600', '600']);
  });

  it.each([
    ['normal', 1],
    ['full', 2],
  ] as const)('is written ahead, with %s durability at synchronous = %i, SPEC 2.4', async (durability, synchronous) => {
    const handles: SqliteHandle[] = [];
    const options = { file, durability, busyTimeoutMs: 250, clock: () => 1_000 };
    const ledger = await openSqliteLedger(options, (path) => {
      const handle = better(path);
      handles.push(handle);
      return handle;
    });
    opened.push(ledger);
    const settings = ['journal_mode', 'synchronous', 'busy_timeout'].map((name) =>
      handles[0]?.prepare(`PRAGMA ${name}`).all(),
    );
    expect(settings).toEqual([[{ journal_mode: 'wal' }], [{ synchronous }], [{ timeout: 250 }]]);
  });

  it('has its log folded back when it is closed', async () => {
    const ledger = await open();
    await ledger.openTurn(openOf(spineOf('a')));
    const reader = better(file);
    reader.prepare('SELECT count(*) FROM node').all();
    await ledger.close();
    // The reader keeps the log file alive, but nothing is left in it.
    expect(statSync(`${file}-wal`).size).toBe(0);
    reader.close();
  });

  it('closes twice without complaint, and answers nothing afterwards', async () => {
    const ledger = await open();
    await ledger.close();
    await ledger.close();
    await expect(ledger.conversation(alice.id, null)).rejects.toEqual(unavailable(/cannot answer/));
    await expect(ledger.openTurn(openOf(spineOf('a')))).rejects.toEqual(unavailable(/cannot answer/));
  });

  it('that is no database is refused, naming it', async () => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(file, 'this is no database at all '.repeat(100));
    await expect(open()).rejects.toEqual(unavailable(/ledger\.db cannot be used.*SQLITE_NOTADB.*move it away/));
  });

  it('that cannot be made is refused, naming it', async () => {
    writeFileSync(join(folder, 'data'), 'a file where the folder should be');
    await expect(open()).rejects.toEqual(unavailable(/ledger\.db cannot be used.*(EEXIST|ENOTDIR)/));
  });

  it('that a newer program wrote is refused', async () => {
    await (await open()).close();
    const handle = better(file);
    handle.exec('UPDATE schema_version SET version = 99');
    handle.close();
    await expect(open()).rejects.toEqual(unavailable(/newer Spillway.*version 99/));
  });

  it('that another process holds is unavailable, and works again afterwards', async () => {
    const ledger = await open();
    const other = better(file);
    other.exec('BEGIN IMMEDIATE');
    await expect(ledger.openTurn(openOf(spineOf('a')))).rejects.toEqual(unavailable(/SQLITE_BUSY/));
    other.exec('ROLLBACK');
    other.close();
    expect((await ledger.openTurn(openOf(spineOf('a')))).head).toBe(endOf('a'));
  });

  it('that another process holds makes the process wait once, not again for each request, until it is free', async () => {
    const asked: string[] = [];
    const options = { file, durability: 'normal', busyTimeoutMs: 20, clock: () => 1_000 } as const;
    const ledger = await openSqliteLedger(options, (path) => {
      const handle = better(path);
      const patience = (): string => JSON.stringify(handle.prepare('PRAGMA busy_timeout').all());
      return {
        exec: (sql) => handle.exec(sql),
        close: () => handle.close(),
        prepare: (sql) => {
          const statement = handle.prepare(sql);
          if (sql !== 'BEGIN IMMEDIATE') return statement;
          return { run: () => (asked.push(patience()), statement.run()), all: () => statement.all() };
        },
      };
    });
    opened.push(ledger);
    const waits = '[{"timeout":20}]';
    const waitsNot = '[{"timeout":0}]';
    const turn = () => ledger.openTurn(openOf(spineOf('a')));
    const other = better(file);
    other.exec('BEGIN IMMEDIATE');
    asked.length = 0;
    for (let request = 0; request < 4; request += 1) await expect(turn()).rejects.toEqual(unavailable(/SQLITE_BUSY/));
    expect(asked).toEqual([waits, waitsNot, waitsNot, waitsNot]);
    other.exec('ROLLBACK');
    asked.length = 0;
    for (let request = 0; request < 3; request += 1) await turn();
    expect(asked).toEqual([waitsNot, waits, waits]);
    other.close();
  });

  it.each(['removed', 'removed with its folder', 'replaced'] as const)(
    'that was %s while it was open is noticed before anything is written, and then used as it is',
    async (how) => {
      const ledger = await open();
      await ledger.openTurn(openOf(spineOf('a >b')));
      if (how === 'replaced') {
        const spare = join(folder, 'spare.db');
        const another = await openSqliteLedger({ file: spare, durability: 'normal', busyTimeoutMs: 0, clock: () => 7 });
        await another.openTurn(openOf(spineOf('x')));
        await another.close();
        renameSync(spare, file);
      } else {
        rmSync(how === 'removed' ? file : join(folder, 'data'), { recursive: true });
      }
      const turn = () => ledger.openTurn(openOf(spineOf('a >b c')));
      await expect(turn()).rejects.toEqual(unavailable(/removed or replaced/));
      expect((await turn()).known).toBe(0);
      const nodes = async (store: Ledger) => (await store.nodes(alice, 0, 10)).map(({ id }) => id);
      const there = [...(how === 'replaced' ? idsOf('x') : []), ...idsOf('a >b c')];
      expect(await nodes(ledger)).toEqual(there);
      expect(modeOf(file)).toBe('600');
      await ledger.close();
      expect(await nodes(await open())).toEqual(there);
    },
  );

  it('whose place cannot be used any more is unavailable until it can, SPEC 2.4', async () => {
    const ledger = await open();
    const turn = () => ledger.openTurn(openOf(spineOf('a')));
    await turn();
    rmSync(join(folder, 'data'), { recursive: true });
    writeFileSync(join(folder, 'data'), 'a file where the folder was');
    await expect(turn()).rejects.toEqual(unavailable(/ENOTDIR|EEXIST/));
    await expect(turn()).rejects.toEqual(unavailable(/ENOTDIR|EEXIST/));
    await expect(ledger.nodes(alice, 0, 10)).rejects.toEqual(unavailable(/ENOTDIR|EEXIST/));
    rmSync(join(folder, 'data'));
    expect((await turn()).known).toBe(0);
  });

  it('holds no trace of what was erased, SPEC 2.6', async () => {
    const secret = 'the words that must go '.repeat(500);
    const ledger = await open();
    const instructions = [{ digest: 'd', content: secret }];
    await ledger.openTurn(openOf(spineOf('a >b', { content: secret }), { instructions }));
    await ledger.close();
    expect(readFileSync(file).includes('the words that must go')).toBe(true);
    const again = await open();
    await again.eraseConversation(alice, null);
    await again.close();
    expect(readFileSync(file).includes('the words that must go')).toBe(false);
  });

  it('that is full is unavailable, and keeps what it had', async () => {
    const handle = better(':memory:');
    const ledger = new SqlLedger(sqliteDatabase(handle), () => 1_000);
    opened.push(ledger);
    await ledger.openTurn(openOf(spineOf('a')));
    handle.exec('PRAGMA max_page_count = 1');
    const large = spineOf('a >b', { content: 'x'.repeat(1_000_000) });
    await expect(ledger.openTurn(openOf(large))).rejects.toEqual(unavailable(/SQLITE_FULL/));
    expect(await ledger.nodes(alice, 0, 10)).toHaveLength(1);
    expect(await ledger.conversation(alice.id, null)).toMatchObject({ head: endOf('a') });
    handle.exec('PRAGMA max_page_count = 100000');
    expect((await ledger.openTurn(openOf(large))).known).toBe(1);
  });

  it('that was damaged is unavailable, and no stored text is in the message', async () => {
    const handle = better(':memory:');
    const ledger = new SqlLedger(sqliteDatabase(handle), () => 1_000);
    opened.push(ledger);
    await ledger.openTurn(openOf(spineOf('a')));
    handle.exec(`UPDATE node SET metadata = '{"strange": "secret words"}'`);
    await expect(ledger.nodes(alice, 0, 10)).rejects.toEqual(unavailable(/^((?!secret words).)*$/));
    handle.exec(`UPDATE node SET metadata = '{}', role = 'secret words'`);
    await expect(ledger.nodes(alice, 0, 10)).rejects.toEqual(unavailable(/^((?!secret words).)*$/));
    handle.exec('DROP TABLE node');
    await expect(ledger.nodes(alice, 0, 10)).rejects.toEqual(unavailable(/cannot answer/));
  });
});
