import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import { ROOT } from '../../src/core/node.js';
import type { Directory, Ledger } from '../../src/core/ports.js';
import { exportConversations, type ExportSelection } from '../../src/ledger/export-conversations.js';
import { writeExportLine } from '../../src/ledger/export-line.js';
import { importConversations } from '../../src/ledger/import-conversations.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { openSqliteLedger } from '../../src/ledger/sqlite.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf, usageOf } from './builders.js';

type Store = Ledger & Directory;

const everything: ExportSelection = { ids: null, tenant: null };

async function exported(store: Store, selection = everything): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of exportConversations({ ledger: store, directory: store }, selection)) {
    lines.push(writeExportLine(line).trimEnd());
  }
  return lines;
}

async function imported(store: Store, lines: readonly string[]) {
  const progress: { conversations: number; records: number }[] = [];
  async function* source() {
    yield* lines;
  }
  const report = await importConversations(source(), {
    ledger: store,
    onProgress: (read) => progress.push({ ...read }),
  });
  return { ...report, progress };
}

async function sqliteStore(clock: () => number): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-'));
  const store = await openSqliteLedger({ file: join(folder, 'a.db'), durability: 'normal', busyTimeoutMs: 0, clock });
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  return store;
}

/** A conversation with something of every kind of record. */
async function fill(store: Store, id = alice.id, tenant = alice.tenant): Promise<void> {
  const conversation = { ...alice, id, tenant };
  const chain = idsOf('a >r b >s c');
  await store.openTurn(
    openOf(spineOf('a >r b >s c'), {
      conversation,
      instructions: [{ digest: 'digest-1', content: '{"role":"system"}' }],
    }),
  );
  const reply = nodeAfter(chain.at(-1) ?? '', '>t', { tokens: 5, tokenizer: 'o200k_base' });
  const call = callOf(`call-${id}`, chain.at(-1) ?? '', { conversation: id, usage: usageOf(7), estimatedTokens: 8 });
  const mark = { kind: 'latched', head: chain[2] ?? '', tokens: 3, scope: 'scope' } as const;
  await store.closeTurn(closeOf(call, [reply], { conversation, marks: [mark] }));
  await store.commitSummary(commitOf('one', chain, 2, { conversation }));
  await store.openTurn(openOf(spineOf('a >r fork'), { conversation, advanceHead: false }));
  await store.deleteBranch(conversation, endOf('a >r fork'), null);
}

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '\ud800', 'a\u2028b\u2029c\n', '\u0000', '\ufeff', '"\\', '__proto__', 'é🙂'),
);
/** What may happen to a conversation. Numbers choose among what is there. */
const step = fc.oneof(
  fc.record({
    kind: fc.constant('open' as const),
    from: fc.nat(),
    words: fc.array(text, { minLength: 1, maxLength: 4 }),
    digest: fc.constantFrom('d1', 'd2'),
    content: text,
  }),
  fc.record({
    kind: fc.constant('close' as const),
    from: fc.nat(),
    reply: text,
    outcome: fc.constantFrom('complete', 'failed', 'cancelled'),
    overflow: fc.option(text),
    tokens: fc.option(fc.nat(9_999)),
    overheadMs: fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  }),
  fc.record({ kind: fc.constant('summary' as const), from: fc.nat(), count: fc.nat(3) }),
  fc.record({ kind: fc.constant('mark' as const), from: fc.nat(), scope: fc.constantFrom('', 'scope') }),
  fc.record({ kind: fc.constant('delete' as const), from: fc.nat() }),
  fc.record({ kind: fc.constant('erase' as const), from: fc.nat() }),
);
const story = fc.record({
  name: fc.option(text.filter((name) => name !== '')),
  session: fc.option(text),
  steps: fc.array(step, { minLength: 1, maxLength: 15 }),
});

/** Lives a story in a store; a step that its present does not allow does nothing. */
async function live(
  store: Store,
  id: string,
  { name, session, steps }: typeof story extends fc.Arbitrary<infer T> ? T : never,
  tick: () => void,
): Promise<void> {
  const conversation = { ...alice, id, tenant: `tenant-${id.length % 2}`, name, session };
  await store.openTurn(openOf(spineOf('start'), { conversation }));
  const ends = [endOf('start')];
  for (const [index, one] of steps.entries()) {
    tick();
    const from = ends[one.from % ends.length] ?? '';
    const spine = await store.spine(conversation, from, 'spine').catch(() => null);
    if (spine === null) continue;
    const chain = spine.nodes.map((node) => node.id);
    if (one.kind === 'open') {
      const nodes = [...spine.nodes];
      const added = one.words.map((word, at) => {
        const predecessor = at === 0 ? from : (ends.at(-1) ?? '');
        const node = nodeAfter(predecessor, `${at % 2 === 0 ? '' : '>'}${word}`, { name: word || null });
        ends.push(node.id);
        return node;
      });
      await store.openTurn(
        openOf([...nodes, ...added], { conversation, instructions: [{ digest: one.digest, content: one.content }] }),
      );
    } else if (one.kind === 'close') {
      const reply = nodeAfter(
        from,
        `>${one.reply}`,
        one.tokens === null ? {} : { tokens: one.tokens, tokenizer: 'o200k_base' },
      );
      const { outcome, overflow, overheadMs, tokens } = one;
      const call = callOf(`call-${id}-${index}`, from, {
        conversation: id,
        outcome,
        overflow,
        overheadMs,
        usage: usageOf(tokens),
      });
      await store.closeTurn(closeOf(call, [reply], { conversation }));
      ends.push(reply.id);
    } else if (one.kind === 'summary') {
      const expectedActive = spine.active?.id ?? null;
      await store.commitSummary(
        commitOf(`${id}-${index}`, chain, 1 + (one.count % chain.length), { conversation, expectedActive }),
      );
    } else if (one.kind === 'mark') {
      await store.setMark(conversation, { kind: 'overflowed', head: from, tokens: 1, scope: one.scope });
    } else if (one.kind === 'delete') await store.deleteBranch(conversation, from, null);
    else if (spine.nodes.length > 1) await store.eraseBranch(conversation, from, null);
  }
}

describe('an export', () => {
  it('is the same after it went into another store and out of it again, whatever the conversations hold', async () => {
    const drivers = {
      memory: (clock: () => number): Promise<Store> => Promise.resolve(new MemoryLedger(clock)),
      sqlite: sqliteStore,
    };
    const names = fc.constantFrom<keyof typeof drivers>('memory', 'sqlite');
    await fc.assert(
      fc.asyncProperty(names, names, fc.array(story, { minLength: 1, maxLength: 3 }), async (from, to, stories) => {
        let now = 1_000;
        const source = await drivers[from](() => now);
        for (const [index, one] of stories.entries())
          await live(source, `c_${'x'.repeat(index + 1)}`, one, () => now++);
        const target = await drivers[to](() => 5_000_000);
        const lines = await exported(source);
        const report = await imported(target, lines);
        expect(report).toMatchObject({ conversations: stories.length, skipped: 0, left: [] });
        expect(await exported(target)).toEqual(lines);
        expect((await target.list(null, 10, null)).toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
          (await source.list(null, 10, null)).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
        );
      }),
      { numRuns: Number(process.env['EXPORT_RUNS'] ?? 40) },
    );
  });

  it('has a header, each conversation with its records, the latest used first, and an end that counts them', async () => {
    let now = 1_000;
    const store = new MemoryLedger(() => now++);
    await fill(store, 'c_1');
    await fill(store, 'c_2', 'bob');
    await store.deleteConversation({ tenant: 'alice', id: 'c_1' });
    await fill(store, 'c_3');
    const types = (await exported(store)).map((line) => (JSON.parse(line) as { type: string }).type);
    const one = [
      'conversation',
      'instruction',
      ...Array.from({ length: 8 }, () => 'node'),
      'call',
      'mark',
      'conversation_end',
    ];
    expect(types).toEqual(['export', ...one, ...one, 'end']);
    const lines = await exported(store);
    expect(lines[0]).toBe('{"type":"export","version":1}');
    expect(lines.at(-1)).toBe(`{"type":"end","conversations":2,"records":${2 * (one.length - 2)}}`);
    expect(lines[1]).toContain('"id":"c_3"');
  });

  it('may be of one tenant, or of named conversations', async () => {
    const store = new MemoryLedger(() => 1_000);
    await fill(store, 'c_1');
    await fill(store, 'c_2', 'bob');
    const idsIn = (lines: readonly string[]) =>
      lines.flatMap((line) => {
        const parsed = JSON.parse(line) as { type: string; conversation: { id: string } };
        return parsed.type === 'conversation' ? [parsed.conversation.id] : [];
      });
    expect(idsIn(await exported(store, { ids: null, tenant: 'bob' }))).toEqual(['c_2']);
    expect(idsIn(await exported(store, { ids: ['c_1', 'c_1'], tenant: null }))).toEqual(['c_1']);
    for (const selection of [
      { ids: ['c_none'], tenant: null },
      { ids: ['c_1'], tenant: 'bob' },
    ]) {
      await expect(exported(store, selection)).rejects.toMatchObject({ code: 'conversation_not_found', field: 'id' });
    }
    await store.deleteConversation({ tenant: 'alice', id: 'c_1' });
    await expect(exported(store, { ids: ['c_1'], tenant: null })).rejects.toThrow(/"c_1", or it was deleted/);
  });

  it('misses none that goes to the top of the list while it is read', async () => {
    let now = 1_000;
    const store = new MemoryLedger(() => now++);
    for (let index = 0; index < 450; index++)
      await store.openTurn(openOf(spineOf('a'), { conversation: { ...alice, id: `c_${index}` } }));
    let lists = 0;
    const directory: Pick<Directory, 'list'> = {
      async list(...asked) {
        const page = await store.list(...asked);
        // The one used longest ago, which would come last, is used after the first page was read.
        if (++lists === 2) await store.openTurn(openOf(spineOf('a b'), { conversation: { ...alice, id: 'c_0' } }));
        return page;
      },
    };
    let conversations = 0;
    for await (const line of exportConversations({ ledger: store, directory }, everything)) {
      if (line.type === 'conversation') conversations += 1;
    }
    expect(conversations).toBe(450);
  });

  it('begins a conversation anew that changed while it was read, and leaves out one that was erased', async () => {
    const store = new MemoryLedger(() => 1_000);
    const big = { content: JSON.stringify({ content: 'x'.repeat(700_000) }) };
    await store.openTurn(openOf(spineOf('a >r b >s c', big)));
    const chain = spineOf('a >r b >s c');
    let pages = 0;
    const changing = (change: () => Promise<unknown>): Pick<Ledger, 'conversation' | 'exportPage'> => ({
      conversation: (...asked) => store.conversation(...asked),
      async exportPage(...asked) {
        if (++pages === 2) await change();
        return store.exportPage(...asked);
      },
    });
    const typesOf = async (ledger: Pick<Ledger, 'conversation' | 'exportPage'>) => {
      pages = 0;
      const lines: string[] = [];
      for await (const line of exportConversations({ ledger, directory: store }, everything))
        lines.push(writeExportLine(line).trimEnd());
      return { lines, types: lines.map((line) => (JSON.parse(line) as { type: string }).type) };
    };
    const changed = await typesOf(changing(() => store.deleteBranch(alice, chain.at(-1)?.id ?? '', null)));
    expect(changed.types).toEqual([
      'export',
      'conversation',
      'node',
      'node',
      'abandoned',
      'conversation',
      'node',
      'node',
      'node',
      'node',
      'node',
      'conversation_end',
      'end',
    ]);
    const target = new MemoryLedger(() => 2_000);
    expect(await imported(target, changed.lines)).toMatchObject({ conversations: 1, records: 5 });
    expect(await exported(target)).toEqual(await exported(store));

    const erased = await typesOf(changing(() => store.eraseConversation(alice, null)));
    expect(erased.types).toEqual(['export', 'conversation', 'node', 'node', 'abandoned', 'end']);
    expect(erased.lines.at(-1)).toBe('{"type":"end","conversations":0,"records":0}');
    const empty = new MemoryLedger(() => 2_000);
    expect(await imported(empty, erased.lines)).toMatchObject({ conversations: 0, records: 0 });
    expect(await empty.oldest(null, 10)).toEqual([]);
  });
});

describe('an import', () => {
  async function linesOfTwo(): Promise<readonly string[]> {
    const store = new MemoryLedger(() => 1_000);
    await fill(store, 'c_1');
    await fill(store, 'c_2');
    return exported(store);
  }

  it('that broke off shows nothing of what it did not finish, and completes when it is repeated', async () => {
    const lines = await linesOfTwo();
    for (let cut = 1; cut < lines.length; cut++) {
      const target = new MemoryLedger(() => 2_000);
      await expect(imported(target, lines.slice(0, cut))).rejects.toMatchObject({
        code: 'invalid_request',
        message: `line ${cut + 1}: it is missing: the file is cut off before its end`,
      });
      const shown = await target.list(null, 10, null);
      const complete = lines.slice(0, cut).filter((line) => line.startsWith('{"type":"conversation_end"'));
      expect(shown.length).toBe(complete.length);
      expect(await imported(target, lines)).toMatchObject({
        conversations: 2 - shown.length,
        skipped: shown.length,
        left: [],
      });
      expect((await exported(target)).toSorted()).toEqual(lines.toSorted());
    }
  });

  it('goes page by page, and breaks off in the middle of a conversation without a trace', async () => {
    const source = new MemoryLedger(() => 1_000);
    const words = Array.from({ length: 1_800 }, (_, index) => `w${index}`);
    await source.openTurn(openOf(spineOf(words)));
    const lines = await exported(source);
    const target = new MemoryLedger(() => 2_000);
    await expect(imported(target, lines.slice(0, 1_200))).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await target.list(null, 10, null)).toEqual([]);
    await expect(target.openTurn(openOf(spineOf('a')))).rejects.toMatchObject({ code: 'store_unavailable' });
    const { progress } = await imported(target, lines);
    expect(progress.map(({ records }) => records)).toEqual([500, 1_000, 1_500, 1_800]);
    expect(await exported(target)).toEqual(lines);
  });

  it('leaves what is there as it is, and names what the file holds otherwise', async () => {
    const lines = await linesOfTwo();
    let now = 500;
    const target = new MemoryLedger(() => now);
    await target.openTurn(openOf(spineOf('a'), { conversation: { ...alice, id: 'c_1' } }));
    expect(await imported(target, lines)).toMatchObject({
      conversations: 1,
      left: [{ id: 'c_1', because: 'older' }],
      oldestUse: 1_000,
    });
    expect((await target.nodes({ tenant: 'alice', id: 'c_1' }, 0, 10)).length).toBe(1);
    now = 3_000;
    await target.openTurn(openOf(spineOf('a b'), { conversation: { ...alice, id: 'c_1' } }));
    expect(await imported(target, lines)).toMatchObject({ conversations: 0, records: 0, skipped: 2, left: [] });
    await target.deleteConversation({ tenant: 'alice', id: 'c_2' });
    expect(await imported(target, lines)).toMatchObject({ skipped: 1, left: [{ id: 'c_2', because: 'deleted' }] });
    const elsewhere = new MemoryLedger(() => now);
    await elsewhere.openTurn(openOf(spineOf('a'), { conversation: { ...alice, tenant: 'bob', id: 'c_1' } }));
    expect(await imported(elsewhere, lines)).toMatchObject({ left: [{ id: 'c_1', because: 'another_tenant' }] });
  });

  const broken = (change: (lines: string[]) => void) => async () => {
    const lines = [...(await linesOfTwo())];
    change(lines);
    try {
      return await imported(new MemoryLedger(() => 2_000), lines);
    } catch (error) {
      if (!(error instanceof SpillwayError)) throw error;
      return { code: error.code, field: error.field, message: error.message };
    }
  };
  const edit = (index: number, find: string | RegExp, put: string) =>
    broken((lines) => {
      const before = lines[index] ?? '';
      lines[index] = before.replace(find, put);
      expect(lines[index]).not.toBe(before);
    });
  const fault = (message: string, field: string | null) => ({ code: 'invalid_request', message, field });

  it.each([
    [
      'of a newer version',
      edit(0, '1', '2'),
      fault('line 1: version is 2, and this Spillway reads 1: import it with a newer one', 'version'),
    ],
    ['without its header', broken((lines) => lines.shift()), fault('line 1: type is not that of a header', 'type')],
    [
      'that is something else',
      broken((lines) => lines.unshift('{"object":"list"}')),
      fault('line 1: type is that of no line of an export', 'type'),
    ],
    ['that holds two files', broken((lines) => lines.push(...lines)), fault('line 29: it stands behind the end', null)],
    ['with a line that is no JSON', edit(3, /.$/, ''), fault('line 4: it is not JSON; the file may be cut off', null)],
    ['with a field missing', edit(3, '"seq":1,', ''), fault('line 4: node.seq is missing', 'node.seq')],
    [
      'with a field of another type',
      edit(3, '"seq":1,', '"seq":"1",'),
      fault('line 4: node.seq must be a number', 'node.seq'),
    ],
    [
      'with a field too many',
      edit(3, '"seq":1,', '"seq":1,"secret":"words",'),
      fault('line 4: node has the unknown field "secret"', 'node'),
    ],
    [
      'with metadata of nothing',
      edit(9, '"compaction":true,', ''),
      fault('line 10: node.metadata has the unknown field "covers_ids"', 'node.metadata'),
    ],
    [
      'with a record of another conversation',
      edit(3, '"conversation":"c_2"', '"conversation":"c_3"'),
      fault('line 4: node.conversation is another one than the conversation above', 'node.conversation'),
    ],
    [
      'with a record before its conversation',
      broken((lines) => lines.splice(1, 1)),
      fault('line 2: type is that of a part of a conversation, and none has begun', 'type'),
    ],
    [
      'with the end of a conversation lost',
      broken((lines) => lines.splice(13, 1)),
      fault('line 14: type follows a conversation that has not ended: lines are missing', 'type'),
    ],
    [
      'with a conversation lost',
      broken((lines) => lines.splice(1, 13)),
      fault('line 15: conversations is 2, and there are 1: lines are missing', 'conversations'),
    ],
    [
      'with a line lost',
      broken((lines) => lines.splice(11, 1)),
      fault('line 13: records is 11, and there are 10: lines are missing', 'records'),
    ],
    [
      'with a node lost',
      broken((lines) => {
        lines.splice(4, 1);
        lines[12] = lines[12]?.replace('"records":11', '"records":10') ?? '';
      }),
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringMatching(/^conversation c_2, which begins at line 2: /),
      }),
    ],
  ])('of a file %s names the line, the field and the reason', async (_, run, expected) => {
    expect(await run()).toEqual(expected);
  });

  it('of a conversation whose HEAD is ROOT is one', async () => {
    const store = new MemoryLedger(() => 1_000);
    await fill(store);
    await store.eraseBranch(alice, endOf('a'), null);
    const lines = await exported(store);
    expect(lines[1]).toContain(`"head":"${ROOT}"`);
    const target = new MemoryLedger(() => 2_000);
    await imported(target, lines);
    expect(await exported(target)).toEqual(lines);
  });
});
