import { abortAllDurableObjects, env, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import type { Directory, Ledger } from '../../src/core/ports.js';
import { createDurableCache } from '../../src/ledger/durable-cache.js';
import { createDurableLedger, type DurableObjects } from '../../src/ledger/durable-ledger.js';
import { alice, callOf, closeOf, endOf, idsOf, nodeAfter, openOf, spineOf } from '../ledger/builders.js';
import { createStore, durableLedger, type DurableStore } from './durable-store.js';
import { setClock } from './worker.js';

let store: DurableStore;
let ledger: Ledger & Directory;
let now: number;

beforeEach(() => {
  now = 1_000;
  setClock(() => now);
  store = createStore();
  ledger = durableLedger(store);
});

/** Rows of the storage of alice's object, past the ledger. */
function rows(sql: string): Promise<Record<string, unknown>[]> {
  return runInDurableObject(store.objects.conversation(alice.id), (_, { storage }) => storage.sql.exec(sql).toArray());
}

/** The same objects, with the name of every method that is called. */
function counted(objects: DurableObjects): { readonly objects: DurableObjects; readonly calls: string[] } {
  const calls: string[] = [];
  const conversation = (id: string): ReturnType<DurableObjects['conversation']> => {
    const stub = objects.conversation(id);
    return {
      open: (turn) => {
        calls.push('open');
        return stub.open(turn);
      },
      ask: (method, args) => {
        calls.push(method);
        return stub.ask(method, args);
      },
      eraseBranch: (...args) => stub.eraseBranch(...args),
      eraseConversation: (...args) => stub.eraseConversation(...args),
      cached: (...args) => stub.cached(...args),
      cache: (...args) => stub.cache(...args),
      told: () => stub.told(),
    };
  };
  return { objects: { ...objects, conversation }, calls };
}

describe('a turn', () => {
  it('takes two round trips where the one before went through here, whatever the history’s length, SPEC 2.7', async () => {
    const { objects, calls } = counted(store.objects);
    const near = createDurableLedger(objects);
    const words = Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? `w${index}` : `>w${index}`));
    await near.openTurn(openOf(spineOf([...words, 'first'])));
    await near.closeTurn(
      closeOf(callOf('1', endOf([...words, 'first'])), [nodeAfter(endOf([...words, 'first']), '>r')]),
    );
    calls.length = 0;
    const chain = [...words, 'first', '>r', 'second'];
    await near.openTurn(openOf(spineOf(chain)));
    await near.closeTurn(closeOf(callOf('2', endOf(chain)), [nodeAfter(endOf(chain), '>s')]));
    expect(calls).toEqual(['open', 'closeTurn']);
  });

  it('takes one more where nothing is known of its conversation here, and where it forks', async () => {
    await ledger.openTurn(openOf(spineOf('a >b c >d')));
    const { objects, calls } = counted(store.objects);
    const elsewhere = createDurableLedger(objects);
    expect(await elsewhere.openTurn(openOf(spineOf('a >b c >d e')))).toMatchObject({ known: 4 });
    expect(calls).toEqual(['open', 'open']);
    await elsewhere.openTurn(openOf(spineOf('a >b c >d e')));
    expect(calls.length).toBe(3);
    expect(await elsewhere.openTurn(openOf(spineOf('a >b x')))).toMatchObject({ known: 2 });
    expect(calls.length).toBe(5);
  });

  it('whose nodes were erased by another appends them again, though they were known here', async () => {
    await ledger.openTurn(openOf(spineOf('a >b c >d')));
    const elsewhere = createDurableLedger(store.objects);
    await elsewhere.eraseConversation(alice, null);
    expect(await ledger.openTurn(openOf(spineOf('a >b c >d e')))).toMatchObject({
      known: 0,
      head: endOf('a >b c >d e'),
    });
    const { nodes } = await ledger.spine(alice, null, 'spine');
    expect(nodes.map((node) => node.id)).toEqual(idsOf('a >b c >d e'));
  });
});

describe('a message larger than a value of a Durable Object', () => {
  const emoji = '😀';
  const texts = [
    'x'.repeat(5_000_000),
    // A pair of surrogates at every place where a part may end.
    `x${emoji.repeat(300_001)}`,
    emoji.repeat(300_001),
    `${'日本'.repeat(900_000)}\0\ud800`,
  ];

  it('comes back unchanged, in every way it is read, SPEC 4.5', async () => {
    const nodes = [...spineOf('a')];
    for (const [index, content] of texts.entries()) {
      nodes.push(nodeAfter(nodes.at(-1)?.id ?? '', `w${index}`, { content }));
    }
    const instructions = [{ digest: 'd1', content: texts[0] ?? '' }];
    await ledger.openTurn(openOf(nodes, { instructions }));
    const stored = await ledger.nodes(alice, 1, 10);
    expect(stored.map(({ content }, index) => content === texts[index])).toEqual(texts.map(() => true));
    expect((await ledger.node(alice, nodes[1]?.id ?? ''))?.content === texts[0]).toBe(true);
    expect((await ledger.instruction(alice, 'd1'))?.content === texts[0]).toBe(true);
    const [entry] = await ledger.list(null, 1, null);
    expect(entry?.bytes).toBeGreaterThan(15_000_000);
    let next: string | null = null;
    let pages = 0;
    do {
      const page = await ledger.exportPage(alice, next);
      ({ next } = page);
      pages += 1;
    } while (next !== null);
    // Sizes are those of the texts, not of what stands for them: no page holds two of them.
    expect(pages).toBeGreaterThan(texts.length);
  });

  it('that looks like what stands for one is itself', async () => {
    const tricky = ['\u0002', '\u0002>1', '\u0002=', `\u0002>${'x'.repeat(300_000)}`];
    const nodes = tricky.map((content, index) => nodeAfter('ROOT', `w${index}`, { content, name: content }));
    for (const node of nodes) await ledger.openTurn(openOf([node]));
    const stored = await ledger.nodes(alice, 0, 10);
    expect(stored.map(({ content }) => content)).toEqual(tricky);
    expect(stored.map(({ name }) => name)).toEqual(tricky);
  });

  it('leaves no part behind when its branch is erased, SPEC 2.6', async () => {
    const [a, b] = spineOf('a >b');
    if (a === undefined || b === undefined) throw new Error('unreachable');
    await ledger.openTurn(openOf([a, { ...b, content: 'x'.repeat(1_000_000) }]));
    expect(await rows('SELECT count(*) AS parts FROM large_text')).toEqual([{ parts: 5 }]);
    await ledger.eraseBranch(alice, b.id, null);
    expect(await rows('SELECT count(*) AS parts FROM large_text')).toEqual([{ parts: 0 }]);
    expect(await ledger.nodes(alice, 0, 10)).toHaveLength(1);
  });
});

describe('an object without a conversation', () => {
  const tables = () => rows("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf\\_%' ESCAPE '\\'");

  it('keeps nothing of a question about it', async () => {
    expect(await ledger.conversation(alice.id, null)).toBeNull();
    await expect(ledger.spine(alice, null, 'spine')).rejects.toMatchObject({ code: 'conversation_not_found' });
    expect(await tables()).toEqual([]);
  });

  it('keeps nothing when it was erased, and begins anew, SPEC 2.6', async () => {
    await ledger.openTurn(openOf(spineOf('a >b')));
    expect((await tables()).length).toBeGreaterThan(5);
    expect(await ledger.eraseConversation(alice, null)).toBe(true);
    expect(await tables()).toEqual([]);
    expect(await ledger.list(null, 10, null)).toEqual([]);
    await ledger.openTurn(openOf(spineOf('z')));
    expect(await ledger.list('alice', 10, null)).toMatchObject([{ nodes: 1 }]);
  });

  it('begins anew beside its erasure, whoever asks meanwhile, and is listed', async () => {
    for (let round = 0; round < 5; round++) {
      await ledger.openTurn(openOf(spineOf('a >b')));
      const asked = [
        ledger.eraseConversation(alice, null),
        ledger.conversation(alice.id, null),
        createDurableLedger(store.objects).openTurn(openOf(spineOf('z'))),
        ledger.nodes(alice, 0, 10),
      ];
      expect((await Promise.all(asked))[0]).toBe(true);
      expect(await ledger.list('alice', 10, null)).toMatchObject([{ nodes: 1, head: endOf('z') }]);
      expect(await ledger.list(null, 10, null)).toMatchObject([{ nodes: 1, head: endOf('z') }]);
    }
  });

  it('is dropped from a directory that still names it, when it is to be erased', async () => {
    await ledger.openTurn(openOf(spineOf('a >b')));
    await store.told();
    await runInDurableObject(store.objects.conversation(alice.id), (_, { storage }) => storage.deleteAll());
    await abortAllDurableObjects();
    expect(await ledger.list(null, 10, null)).toHaveLength(1);
    expect(await ledger.eraseConversation(alice, null)).toBe(false);
    expect(await ledger.list(null, 10, null)).toEqual([]);
    expect(await ledger.list('alice', 10, null)).toEqual([]);
  });
});

describe('an error', () => {
  it('keeps its code, its field and its message on the way from an object', async () => {
    await ledger.openTurn(openOf(spineOf('a')));
    const error: unknown = await ledger.moveHead(alice, 'nobody', null).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SpillwayError);
    expect(error).toMatchObject({
      code: 'node_not_found',
      field: 'to',
      message: expect.stringContaining('no such node'),
    });
  });

  it('of an object that cannot open its storage is a store that cannot answer', async () => {
    await runInDurableObject(store.objects.conversation(alice.id), (_, { storage }) => {
      storage.sql.exec('CREATE TABLE schema_version (version TEXT)');
    });
    await expect(ledger.conversation(alice.id, null)).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('of the storage tells its code and nothing of what was stored', async () => {
    await ledger.openTurn(openOf(spineOf('a')));
    await rows('DROP TABLE node');
    const error: unknown = await ledger.nodes(alice, 0, 10).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'store_unavailable', message: 'The store cannot answer (SQLITE_ERROR).' });
  });
});

describe('the cache that isolates share', () => {
  it('gives a value back until its time is over, to its tenant, and goes with the conversation', async () => {
    const cache = createDurableCache(store.objects);
    const large = 'x'.repeat(3_000_000);
    await cache.set(alice, 'field', large, 1_000);
    // There is no conversation yet, beside which anything could be kept.
    expect(await cache.get(alice, 'field')).toBeNull();
    await ledger.openTurn(openOf(spineOf('a')));
    await cache.set(alice, 'field', 'first', 1_000);
    await cache.set(alice, 'field', large, 1_000);
    await cache.set(alice, 'other', 'short', 10);
    expect((await cache.get(alice, 'field')) === large).toBe(true);
    expect(await cache.get({ ...alice, tenant: 'mallory' }, 'field')).toBeNull();
    now += 10;
    expect(await cache.get(alice, 'other')).toBeNull();
    await cache.delete(alice, 'field');
    expect(await cache.get(alice, 'field')).toBeNull();
    expect(await rows('SELECT count(*) AS parts FROM large_text')).toEqual([{ parts: 0 }]);
    await cache.set(alice, 'field', 'value', 1_000);
    await ledger.eraseConversation(alice, null);
    await ledger.openTurn(openOf(spineOf('a')));
    expect(await cache.get(alice, 'field')).toBeNull();
  });
});

describe('retention', () => {
  it('erases what was not used for its time by the alarm of the tenant’s directory, and nothing else, SPEC 2.6', async () => {
    const day = 24 * 60 * 60_000;
    setClock(() => Date.now() - 31 * day);
    await ledger.openTurn(openOf(spineOf('a'), { conversation: { ...alice, id: 'c_old' } }));
    setClock(() => Date.now() - 29 * day);
    await ledger.openTurn(openOf(spineOf('a'), { conversation: { ...alice, id: 'c_new' } }));
    await ledger.openTurn(openOf(spineOf('a'), { conversation: { ...alice, tenant: 'bob', id: 'c_bob' } }));
    await store.told();
    setClock(() => Date.now());
    const ids = async () => (await ledger.list(null, 10, null)).map(({ id }) => id).toSorted();
    expect(await ids()).toEqual(['c_bob', 'c_new', 'c_old']);
    expect(await runDurableObjectAlarm(store.objects.directory('alice'))).toBe(true);
    expect(await ids()).toEqual(['c_bob', 'c_new']);
    expect(await ledger.conversation('c_old', null)).toBeNull();
    const next = await runInDurableObject(store.objects.directory('alice'), (_, { storage }) => storage.getAlarm());
    // When the next one will be old enough: in about a day.
    expect(Math.abs((next ?? 0) - (Date.now() + day))).toBeLessThan(60_000);
  });

  it('has no alarm in the directory of all tenants', async () => {
    const all = env.DIRECTORIES.getByName('*');
    const entry = { ...alice, head: 'x', activeSummary: null, createdAt: 1, usedAt: 1, deletedAt: null };
    await all.note({ ...entry, nodes: 0, calls: 0, summaries: 0, bytes: 0 });
    expect(await runDurableObjectAlarm(all)).toBe(false);
  });
});
