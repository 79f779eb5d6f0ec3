import { afterAll, describe, expect, it } from 'vitest';
import { openRedisLedger } from '../../src/ledger/redis.js';
import { startRedisCluster, until, type RedisServer } from '../support/redis.js';
import { alice, endOf, openOf, spineOf } from './builders.js';
import { ledgerConformance } from './conformance.js';
import { redisHarness, redisOptions } from './redis-harness.js';

const cluster = await startRedisCluster();
afterAll(() => cluster.stop());

ledgerConformance('Redis Cluster', redisHarness(cluster.url));

describe('a Redis Cluster under a running ledger', () => {
  const say = (ledger: Awaited<ReturnType<typeof openRedisLedger>>, id: string, words: string) =>
    ledger.openTurn(openOf(spineOf(words), { conversation: { ...alice, id } }));

  /** The node that has a key's slot, and one that has not. */
  async function ownersOf(slot: number): Promise<{ readonly owner: RedisServer; readonly other: RedisServer }> {
    const [first] = cluster.nodes;
    const ranges = await first?.admin.cluster('SLOTS');
    const range = ranges?.find(([from, to]) => from <= slot && slot <= to);
    const owner = cluster.nodes.find((node) => node.port === range?.[2]?.[1]);
    const other = cluster.nodes.find((node) => node !== owner);
    if (owner === undefined || other === undefined) throw new Error(`no owner of slot ${slot}`);
    return { owner, other };
  }

  it('is unavailable for a conversation while that moves to another node, and finds it there', async () => {
    const ledger = await openRedisLedger(redisOptions(cluster.url, { timeoutMs: 1_000 }));
    await say(ledger, 'c_moves', 'a');
    const slot = Number(await cluster.nodes[0]?.admin.cluster('KEYSLOT', '{c_moves}'));
    const { owner, other } = await ownersOf(slot);
    const ownerId = await owner.admin.cluster('MYID');
    const otherId = await other.admin.cluster('MYID');
    await other.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ownerId);
    await owner.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', otherId);
    const keys = await owner.admin.cluster('GETKEYSINSLOT', slot, 100);
    expect(keys.length).toBeGreaterThan(3);
    await owner.admin.migrate('127.0.0.1', other.port, '', 0, 5_000, 'KEYS', ...keys);
    // A script on several keys is refused until the move is over, lest it find only some of them.
    await expect(say(ledger, 'c_moves', 'a >b')).rejects.toMatchObject({ code: 'store_unavailable' });
    for (const node of [other, owner]) await node.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', otherId);
    expect(await say(ledger, 'c_moves', 'a >b c')).toMatchObject({ known: 1, head: endOf('a >b c') });
    expect((await ownersOf(slot)).owner).toBe(other);
    await ledger.close();
  });

  it('serves the conversations of all other nodes while one is away, and that one’s when it is back', async () => {
    const ledger = await openRedisLedger(redisOptions(cluster.url, { timeoutMs: 1_000 }));
    const ids = Array.from({ length: 30 }, (_, index) => `c_${index}`);
    const [gone] = cluster.nodes;
    const reached = async () => {
      const answers = await Promise.all(ids.map((id) => say(ledger, id, 'a').catch((error: unknown) => error)));
      expect(answers.filter((answer) => answer instanceof Error)).toEqual(
        answers.flatMap((answer) =>
          answer instanceof Error ? expect.objectContaining({ code: 'store_unavailable' }) : [],
        ),
      );
      return answers.filter((answer) => !(answer instanceof Error)).length;
    };
    await until(async () => (await reached()) === 30);
    const restarted = gone?.restart(1_500);
    await until(async () => {
      const served = await reached();
      return served > 0 && served < 30;
    });
    await restarted;
    await until(async () => (await reached()) === 30);
    await ledger.close();
  });
});
