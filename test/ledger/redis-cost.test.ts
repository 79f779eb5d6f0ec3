import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { Directory, Ledger, SharedCache } from '../../src/core/ports.js';
import { openRedisLedger, type RedisOptions } from '../../src/ledger/redis.js';
import { startRedis, until } from '../support/redis.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf, usageOf } from './builders.js';
import { redisOptions } from './redis-harness.js';

const server = await startRedis();
afterAll(() => server.stop());

type Store = Ledger & Directory & SharedCache;

const opened: Store[] = [];
afterEach(async () => {
  for (const ledger of opened.splice(0)) await ledger.close();
});

async function open(changes: Partial<RedisOptions> = {}) {
  const options = redisOptions(server.url, changes);
  const ledger = await openRedisLedger(options);
  opened.push(ledger);
  return { ledger, keyPrefix: options.keyPrefix };
}

/** How often Redis was asked for each command since the last count. */
async function commandCounts(): Promise<ReadonlyMap<string, number>> {
  const info = await server.admin.info('commandstats');
  const lines = [...info.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)];
  return new Map(lines.map(([, name = '', calls = '']) => [name, Number(calls)]));
}

/** What some work costs: scripts on the conversation, each a round trip, and everything that those did. */
async function costOf(ledger: Store, work: () => Promise<unknown>) {
  await ledger.list(null, 1, null);
  await server.admin.config('RESETSTAT');
  await work();
  const counts = await commandCounts();
  const operations = [...counts].reduce(
    (sum, [name, calls]) => (/^(info|config|eval)/.test(name) ? sum : sum + calls),
    0,
  );
  // Every script of a conversation reads its fields first, and nothing else reads a whole hash in a turn.
  return { roundTrips: counts.get('hgetall') ?? 0, operations };
}

describe('a turn on Redis', () => {
  const words = Array.from({ length: 10_004 }, (_, index) => `${index % 2 === 0 ? '' : '>'}w${index}`);
  const turns = [10, 1_000, 10_000].map((length) => ({ length, nodes: spineOf(words.slice(0, length + 2)) }));

  it('takes at most two round trips to open and one to close, whatever the length of its history, SPEC 2.7', async () => {
    for (const { length, nodes } of turns) {
      const { ledger } = await open();
      await ledger.openTurn(openOf(nodes.slice(0, length)));
      const openAll = () => ledger.openTurn(openOf(nodes.slice(0, length + 1)));
      expect((await costOf(ledger, openAll)).roundTrips).toBe(2);
      expect((await costOf(ledger, openAll)).roundTrips).toBe(1);
      const close = closeOf(callOf('call-1', nodes[length]?.id ?? ''), nodes.slice(length + 1, length + 2));
      expect((await costOf(ledger, () => ledger.closeTurn(close))).roundTrips).toBe(1);
      expect(
        (
          await costOf(ledger, () =>
            ledger.commitSummary(
              commitOf(
                's',
                nodes.map((node) => node.id),
                2,
              ),
            ),
          )
        ).roundTrips,
      ).toBe(1);
    }
  }, 60_000);

  it('costs Redis a constant and twice log2 of its history, SPEC 2.7', async () => {
    const costs: number[] = [];
    for (const { length, nodes } of turns) {
      const { ledger } = await open();
      const mark = { kind: 'latched' as const, head: nodes[0]?.id ?? '', tokens: 1, scope: 's' };
      await ledger.openTurn(openOf(nodes.slice(0, length)));
      const match = { usage: usageOf(10), estimatedTokens: 10 };
      await ledger.closeTurn(closeOf(callOf('call-0', nodes[length - 1]?.id ?? '', match), [], { marks: [mark] }));
      await ledger.commitSummary(commitOf('s', nodes.map((node) => node.id).slice(0, length), length - 4));
      const turn = async () => {
        const result = await ledger.openTurn(openOf(nodes.slice(0, length + 1)));
        expect(result).toMatchObject({
          known: length,
          match: { measuredTokens: 10 },
          marks: [mark],
          active: { id: 'summary_s' },
        });
        // The directory is told in the background, at best of both at once.
        await ledger.list(null, 1, null);
        await ledger.closeTurn(
          closeOf(callOf('call-1', nodes[length]?.id ?? '', match), nodes.slice(length + 1, length + 2)),
        );
        await ledger.list(null, 1, null);
      };
      costs.push((await costOf(ledger, turn)).operations);
    }
    const [at10 = 0, at1000 = 0, at10000 = 0] = costs;
    expect(at10).toBeLessThan(200);
    // The known prefix is looked for twice.
    expect(at1000 - at10).toBeLessThanOrEqual(2 * Math.log2(1_000 / 10) + 2);
    expect(at10000 - at1000).toBeLessThanOrEqual(2 * Math.log2(10_000 / 1_000) + 2);
  }, 60_000);

  it('reads a spine of any length in two steps', async () => {
    const { ledger } = await open();
    const nodes = spineOf(words.slice(0, 3_000));
    await ledger.openTurn(openOf(nodes));
    await server.admin.config('RESETSTAT');
    const spine = await ledger.spine(alice, null, 'spine');
    expect(spine.nodes.map((node) => node.id)).toEqual(nodes.map((node) => node.id));
    expect((await commandCounts()).get('evalsha')).toBe(1 + 3_000 / 500);
  });

  it('may bring more messages than a function takes arguments', async () => {
    const { ledger } = await open();
    const nodes = spineOf(Array.from({ length: 30_000 }, (_, index) => `w${index}`));
    expect(await ledger.openTurn(openOf(nodes))).toMatchObject({ known: 0, head: nodes.at(-1)?.id });
    expect(await ledger.openTurn(openOf(nodes))).toMatchObject({ known: 30_000 });
  }, 60_000);

  it('stores the content of a node once', async () => {
    const { ledger, keyPrefix } = await open();
    const content = 'a text that is nowhere else '.repeat(10);
    const node = nodeAfter('ROOT', 'a', { content });
    await ledger.openTurn(openOf([node]));
    await ledger.closeTurn(closeOf(callOf('call-1', node.id), [nodeAfter(node.id, '>b')]));
    const dumps = await Promise.all(
      (await server.admin.keys(`${keyPrefix}*`)).map((key) => server.admin.hvals(key).catch(() => [])),
    );
    expect(dumps.flat().filter((value) => value.includes(content))).toHaveLength(1);
  });
});

describe('the keys of a conversation', () => {
  /** A conversation with something in every key. */
  async function fill(ledger: Store) {
    const nodes = spineOf('a >b c >d', { tokens: 3, tokenizer: 'o200k_base' });
    await ledger.openTurn(openOf(nodes, { instructions: [{ digest: 'd1', content: 'Be brief.' }] }));
    const mark = { kind: 'latched' as const, head: endOf('a'), tokens: 1, scope: 's' };
    await ledger.closeTurn(
      closeOf(callOf('1', endOf('a >b c')), [nodeAfter(endOf('a >b c'), '>x')], { marks: [mark] }),
    );
    await ledger.deleteBranch(alice, endOf('a >b c >x'), null);
    await ledger.acquireLease(alice, idsOf('a >b'), 1_000);
    await ledger.set(alice, 'field', 'value', 1_000);
    await ledger.refer(alice.tenant, [{ id: 'resp_1', conversation: alice.id, node: endOf('a >b') }]);
    await ledger.learnWindow({
      tenant: alice.tenant,
      upstream: 'u',
      model: 'm',
      tokens: 2_000,
      source: 'stated',
      rule: 'r',
      learnedAt: 1,
      expiresAt: 9_000,
    });
    await ledger.list(null, 1, null);
  }
  const keysOf = async (keyPrefix: string, part: string) =>
    (await server.admin.keys(`${keyPrefix}*`)).filter((key) => key.includes(part));

  it('expire together after the last use, and each use begins their time anew, SPEC 2.6', async () => {
    const { ledger, keyPrefix } = await open({ retentionMs: 1_000_000 });
    await fill(ledger);
    const keys = (await keysOf(keyPrefix, '{c_alice}')).filter((key) => !key.endsWith(':cache'));
    expect(keys).toHaveLength(13);
    const ends = async () => new Set(await Promise.all(keys.map((key) => server.admin.call('PEXPIRETIME', key))));
    const [before, ...others] = [...(await ends())].map(Number);
    expect(others).toEqual([]);
    await ledger.openTurn(openOf(spineOf('a >b c >d')));
    await until(async () => {
      await ledger.openTurn(openOf(spineOf('a >b c >d')));
      return Number([...(await ends())][0]) > Number(before);
    });
    expect((await ends()).size).toBe(1);
    expect(await server.admin.pttl(`${keyPrefix}{c_alice}:cache`)).toBeLessThan(70_000);
  });

  it('stay where nothing is to expire, also those that were to before', async () => {
    const { ledger, keyPrefix } = await open({ retentionMs: 1_000_000 });
    await fill(ledger);
    const lasting = await openRedisLedger({ ...redisOptions(server.url), keyPrefix, retentionMs: null });
    opened.push(lasting);
    await lasting.openTurn(openOf(spineOf('a >b c >d e')));
    const keys = (await keysOf(keyPrefix, '{c_alice}')).filter((key) => !key.endsWith(':cache'));
    expect(new Set(await Promise.all(keys.map((key) => server.admin.pttl(key))))).toEqual(new Set([-1]));
  });

  it('that expired are gone from every list and sum, and a turn begins anew, SPEC 2.6', async () => {
    const { ledger, keyPrefix } = await open({ retentionMs: 50 });
    await ledger.openTurn(openOf(spineOf('a >b')));
    await until(async () => (await keysOf(keyPrefix, '{c_alice}')).length === 0);
    expect(await ledger.list(null, 10, null)).toEqual([]);
    expect(await ledger.oldest(alice.tenant, 10)).toEqual([]);
    expect(await ledger.tenants()).toEqual([]);
    expect(await ledger.openTurn(openOf(spineOf('a >b')))).toMatchObject({ known: 0 });
  });

  it('whose entry outlived them are counted no more', async () => {
    const { ledger, keyPrefix } = await open({ retentionMs: 1_000_000 });
    await fill(ledger);
    await server.admin.unlink(...(await keysOf(keyPrefix, '{c_alice}')));
    expect(await ledger.tenants()).toEqual([]);
    expect(await ledger.list(null, 10, null)).toEqual([]);
    expect(await ledger.resolve(alice.tenant, ['resp_1'])).toEqual(new Map());
  });

  it('are all gone when it is erased, SPEC 2.6', async () => {
    const { ledger, keyPrefix } = await open({ retentionMs: 1_000_000 });
    await fill(ledger);
    expect(await keysOf(keyPrefix, '{c_alice}')).toHaveLength(14);
    expect(await ledger.eraseConversation(alice, null)).toBe(true);
    await ledger.forgetWindows(alice.tenant);
    expect(await ledger.tenants()).toEqual([]);
    await ledger.set(alice, 'field', 'value', 1_000);
    expect(await keysOf(keyPrefix, '')).toEqual([`${keyPrefix}schema`]);
  });

  it('are those of no other, whatever its name is', async () => {
    const { ledger } = await open();
    for (const id of ['c}x', '{', '}{', 'c_alice}:nodes', 'c alice', '\ud800', 't:alice']) {
      const conversation = { ...alice, id };
      expect(await ledger.conversation(id, null)).toBeNull();
      await ledger.openTurn(openOf(spineOf('a >b'), { conversation }));
      expect(await ledger.nodes(conversation, 0, 10)).toHaveLength(2);
    }
  });
});
