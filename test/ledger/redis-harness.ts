import { randomUUID } from 'node:crypto';
import { redisAddress } from '../../src/ledger/redis-address.js';
import { openRedisLedger, type RedisOptions } from '../../src/ledger/redis.js';
import type { MakeHarness } from './conformance.js';

/** Options for a store of its own on a Redis that others use too. */
export function redisOptions(url: string, changes: Partial<RedisOptions> = {}): RedisOptions {
  return {
    address: redisAddress(url),
    keyPrefix: `${randomUUID()}:`,
    timeoutMs: 10_000,
    startTimeoutMs: 10_000,
    retentionMs: null,
    clock: () => 1_000,
    ...changes,
  };
}

export function redisHarness(url: string): MakeHarness {
  return async (clock) => {
    const options = redisOptions(url, { clock });
    let ledger = await openRedisLedger(options);
    return {
      ledger,
      reopen: async () => {
        await ledger.close();
        ledger = await openRedisLedger(options);
        return ledger;
      },
      dispose: () => ledger.close(),
    };
  };
}
