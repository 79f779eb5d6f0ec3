import { afterAll, expect, it } from 'vitest';
import { openRedisLedger } from '../../src/ledger/redis.js';
import { startRedisSentinel, until } from '../support/redis.js';
import { alice, endOf, openOf, spineOf } from './builders.js';
import { redisOptions } from './redis-harness.js';

const sentinel = await startRedisSentinel();
afterAll(() => sentinel.stop());

it('a ledger behind a Sentinel goes on with the new master after a failover', { timeout: 60_000 }, async () => {
  const ledger = await openRedisLedger(redisOptions(sentinel.url, { timeoutMs: 1_000 }));
  const isUp = () => ledger.openTurn(openOf(spineOf('a >b'))).then(() => true);
  await ledger.openTurn(openOf(spineOf('a >b')));
  await until(async () => (await sentinel.replica.admin.dbsize()) === (await sentinel.master.admin.dbsize()));
  await sentinel.failOver();
  await until(isUp);
  expect(await ledger.openTurn(openOf(spineOf('a >b c')))).toMatchObject({ known: 2, head: endOf('a >b c') });

  sentinel.master.signal('SIGKILL');
  await until(isUp);
  expect((await ledger.openTurn(openOf(spineOf('a >b c >d')))).known).toBe(3);
  expect(await ledger.nodes(alice, 0, 10)).toHaveLength(4);
  expect((await sentinel.replica.admin.role())[0]).toBe('master');
  await ledger.close();
});
