import { SpillwayError } from '../core/errors.js';
import type { Clock, Directory, Ledger, SharedCache } from '../core/ports.js';
import type { RedisAddress } from './redis-address.js';
import { RedisConnection } from './redis-connection.js';
import { RedisKeys } from './redis-keys.js';
import { redisLedger } from './redis-ledger.js';

export interface RedisOptions {
  readonly address: RedisAddress;
  /** Begins every key, so that several may share a Redis; without braces. */
  readonly keyPrefix: string;
  /** Longest that an operation takes; then the store is unavailable. */
  readonly timeoutMs: number;
  /** How long the start waits for a Redis that is not there yet. */
  readonly startTimeoutMs: number;
  /** How long after its last use a conversation expires; null keeps it for ever. */
  readonly retentionMs: number | null;
  readonly clock: Clock;
}

/** What the keys hold and how; grows with every change that an older program would misread. */
const SCHEMA = 1;

/**
 * The ledger, the directory and the shared cache on one Redis, Sentinels or a Cluster. Rejects with `store_unavailable` of the
 * field `redis` if it cannot be reached, is of another kind than the address says, or was written by a newer program; once open it
 * outlives every failure.
 */
export async function openRedisLedger(options: RedisOptions): Promise<Ledger & Directory & SharedCache> {
  const connection = new RedisConnection(options);
  const keys = new RedisKeys(options.keyPrefix);
  try {
    await connection.connect(options.startTimeoutMs);
    await checkKind(connection, options.address);
    await checkSchema(connection, keys.schema);
  } catch (error) {
    connection.close();
    throw error instanceof SpillwayError ? new SpillwayError(error.code, error.message, 'redis') : error;
  }
  return redisLedger({ ...options, connection, keys });
}

/** A node of a Cluster answers a client that knows of none, but only for its own slots. */
async function checkKind(connection: RedisConnection, { kind }: RedisAddress): Promise<void> {
  if (kind.name === 'cluster') return;
  // Where access rules forbid to ask, the first script shows it.
  const info = await connection.send((client) => client.info('cluster')).catch(() => '');
  if (!info.includes('cluster_enabled:1')) return;
  throw new SpillwayError(
    'store_unavailable',
    'Redis cannot be used: it is a node of a Redis Cluster, whose URL begins with redis-cluster://.',
  );
}

async function checkSchema(connection: RedisConnection, key: string): Promise<void> {
  await connection.send((client) => client.setnx(key, SCHEMA));
  const version = Number(await connection.send((client) => client.get(key)));
  if (version === SCHEMA) return;
  throw new SpillwayError(
    'store_unavailable',
    version > SCHEMA
      ? `The store was written by a newer Spillway: its schema is version ${version}, this program knows ${SCHEMA}.`
      : `The key ${key} holds no version of a schema: another program uses this Redis with the same prefix.`,
  );
}
