import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Directory, Ledger } from '../../src/core/ports.js';
import type { SqlDatabase, SqlValue } from '../../src/ledger/sql-database.js';
import { SqlLedger } from '../../src/ledger/sql-ledger.js';
import { sqliteDatabase, type SqliteHandle } from '../../src/ledger/sqlite-database.js';
import { betterSqlite } from '../../src/ledger/sqlite.js';
import { alice, callOf, closeOf, commitOf, idsOf, nodeAfter, openOf, spineOf, usageOf } from './builders.js';

const sqlite = await betterSqlite();
if (sqlite === null) throw new Error('better-sqlite3 is a dependency and did not load');

/** Statements that one ordinary turn (open and close, one new message and one reply) may take beside its look-ups. */
const TURN_STATEMENTS = 16;

describe('what a turn costs', () => {
  let handle: SqliteHandle;
  let ledger: Ledger & Directory;
  let statements: { readonly sql: string; readonly values: readonly SqlValue[] }[];

  beforeEach(() => {
    handle = sqlite(':memory:');
    statements = [];
    ledger = new SqlLedger(recorded(sqliteDatabase(handle)), () => 1_000);
  });
  afterEach(() => ledger.close());

  /** The same database, every statement written down. */
  function recorded(db: SqlDatabase): SqlDatabase {
    const note = (sql: string, values: readonly SqlValue[]) => void statements.push({ sql, values });
    return {
      ...db,
      run: (sql, ...values) => (note(sql, values), db.run(sql, ...values)),
      all: (sql, ...values) => (note(sql, values), db.all(sql, ...values)),
    };
  }

  /** A history of `length` messages: compacted every 200 up to the last 40, with other branches and their marks beside it. */
  async function history(length: number): Promise<readonly string[]> {
    const words = Array.from({ length }, (_, index) => (index % 2 === 0 ? `w${index}` : `>w${index}`));
    const chain = idsOf(words);
    await ledger.openTurn(openOf(spineOf(words, { tokens: 9, tokenizer: 'o200k_base' })));
    let active: string | null = null;
    for (let count = 60; count < length - 20; count += 200) {
      await ledger.commitSummary(commitOf(`at-${count}`, chain, count, { expectedActive: active }));
      active = `summary_at-${count}`;
    }
    for (let fork = 2; fork < length; fork *= 3) {
      const branch = spineOf([...words.slice(0, fork), 'fork']);
      const end = branch.at(-1)?.id ?? '';
      await ledger.openTurn(openOf(branch, { advanceHead: false }));
      await ledger.setMark(alice, { kind: 'latched', head: end, tokens: 1, scope: 's' });
    }
    return words;
  }

  /** One more user message and its reply, as the proxy does it. */
  async function turn(words: readonly string[], id: string) {
    const opened = await ledger.openTurn(
      openOf(spineOf([...words, `new ${id}`]), { instructions: [{ digest: 'd', content: 'Be brief.' }] }),
    );
    const reply = nodeAfter(opened.head, '>answer');
    const call = callOf(id, opened.head, { estimatedTokens: 100, usage: usageOf(110) });
    const counts = new Map([[opened.head, 3]]);
    await ledger.closeTurn(closeOf(call, [reply], { counts, tokenizer: 'o200k_base' }));
    return opened;
  }

  it.each([10, 100, 1_000, 2_000])(
    'grows with log2 of its history of %i messages and nothing else, SPEC 2.7',
    async (length) => {
      const words = await history(length);
      await turn(words, 'first');
      statements.length = 0;
      const opened = await turn([...words, 'new first', '>answer'], 'second');
      expect(opened.known).toBe(length + 2);
      expect(opened.match).toEqual({ estimatedTokens: 100, measuredTokens: 110 });
      expect(statements.length).toBeLessThanOrEqual(TURN_STATEMENTS + Math.ceil(Math.log2(length + 3)));
    },
  );

  it('is one node row for a message, one call row and one row of the conversation, SPEC 2.1', async () => {
    const words = await history(200);
    await turn(words, 'first');
    statements.length = 0;
    await turn([...words, 'new first', '>answer'], 'second');
    const writes = statements
      .map(({ sql }) => /^\s*(INSERT INTO|UPDATE) (\w+)/.exec(sql)?.[0])
      .filter((write) => write !== undefined);
    expect(writes.toSorted()).toEqual([
      'INSERT INTO call',
      'INSERT INTO conversation',
      'INSERT INTO conversation',
      'INSERT INTO node',
      'INSERT INTO node',
      'UPDATE node',
    ]);
  });

  it('binds at most 100 values a statement and never a chain as a whole', async () => {
    const words = await history(2_000);
    statements.length = 0;
    await turn(words, 'first');
    expect(Math.max(...statements.map(({ values }) => values.length))).toBeLessThanOrEqual(100);
    const longest = Math.max(...statements.flatMap(({ values }) => values.map((value) => String(value).length)));
    expect(longest).toBeLessThan(10_000);
  });

  it('reads through an index and walks no table', async () => {
    const words = await history(300);
    await turn(words, 'first');
    statements.length = 0;
    await turn([...words, 'new first', '>answer'], 'second');
    const steps = statements.flatMap(({ sql, values }) => handle.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values));
    const details = steps.map((step) =>
      typeof step === 'object' && step !== null && 'detail' in step ? String(step.detail) : '',
    );
    expect(details.filter((detail) => detail.startsWith('SEARCH')).length).toBeGreaterThan(10);
    const walked = details.filter(
      (detail) => detail.startsWith('SCAN') && !/^SCAN (listed|json_each|trail|CONSTANT ROW)/.test(detail),
    );
    expect(walked).toEqual([]);
    // Every search goes by more than the conversation: a conversation may hold every dialogue that opens alike.
    const broad = details.filter((detail) => detail.startsWith('SEARCH') && detail.endsWith('(conversation=?)'));
    expect(broad).toEqual([]);
  });

  it('of a fork deep in the past is no more than doubling windows back from its end', async () => {
    const words = await history(2_000);
    await turn(words, 'first');
    statements.length = 0;
    const opened = await ledger.openTurn(openOf(spineOf([...words.slice(0, 1_500), 'edited'])));
    expect(opened).toMatchObject({ known: 1_500, active: { id: 'summary_at-1460' }, match: null });
    expect(statements.length).toBeLessThanOrEqual(TURN_STATEMENTS + 2 * Math.ceil(Math.log2(2_000)));
  });
});
