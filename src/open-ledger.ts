import { join } from 'node:path';
import type { Config } from './config.js';
import { SpillwayError } from './core/errors.js';
import type { Directory, Ledger, SharedCache } from './core/ports.js';
import { MemoryLedger } from './ledger/memory.js';
import type { RedisAddress } from './ledger/redis-address.js';
import { openRedisLedger, type RedisOptions } from './ledger/redis.js';
import { openSqliteLedger } from './ledger/sqlite.js';

/** Another process on the same file, such as a backup, may hold it this long before a request goes on without the store. */
const BUSY_TIMEOUT_MS = 2_000;

/** How long the start waits for a Redis that starts beside it. */
const REDIS_START_MS = 10_000;

export interface Store {
  readonly ledger: Ledger & Directory;
  /** What processes on it share beside it; null where one has it alone. */
  readonly sharedCache: SharedCache | null;
}

/** Opens the store that the settings name. Rejects with `store_unavailable` that names the setting, if it cannot be used. */
export async function openStore(config: Config): Promise<Store> {
  if (config.store === 'memory' || config.mode === 'no-store') {
    return { ledger: new MemoryLedger(Date.now), sharedCache: null };
  }
  if (config.store === 'redis' && config.redis !== null) {
    const store = await named('SPILLWAY_REDIS_URL', 'redis', openRedisLedger(redisOptions(config, config.redis)));
    return { ledger: store, sharedCache: store };
  }
  const file = sqliteFile(config);
  const options = { file, durability: config.sqliteSync, busyTimeoutMs: BUSY_TIMEOUT_MS, clock: Date.now };
  return { ledger: await named('SPILLWAY_DATA_DIR', 'file', openSqliteLedger(options)), sharedCache: null };
}

/** The ledger and directory of the store alone. */
export async function openLedger(config: Config): Promise<Ledger & Directory> {
  return (await openStore(config)).ledger;
}

function redisOptions(config: Config, address: RedisAddress): RedisOptions {
  return {
    address,
    keyPrefix: config.redisPrefix,
    timeoutMs: config.redisTimeoutMs,
    startTimeoutMs: REDIS_START_MS,
    retentionMs: config.retention.keepMs,
    clock: Date.now,
  };
}

/** What a driver says of a field of its own, said of the setting. */
async function named<T>(setting: string, field: string, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    if (!(error instanceof SpillwayError && error.field === field)) throw error;
    throw new SpillwayError(error.code, `${setting}: ${error.message}`, setting, error);
  }
}

/** Where the embedded store is. */
export function sqliteFile({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'spillway.db');
}
