import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress } from './redis-address.js';

export type RedisClient = Redis | Cluster;

/** Longest pause between two attempts to connect again; it bounds how long a Redis that came back goes unnoticed. */
const LONGEST_PAUSE_MS = 1_000;

/**
 * A client that connects on demand and for ever again, and that keeps nothing for later: while there is no connection a
 * command fails at once, and one whose connection breaks fails then. Whether it is tried again is for `RedisConnection`.
 */
export function redisClient(address: RedisAddress, timeoutMs: number): RedisClient {
  const pauseMs = (attempt: number): number => Math.min(25 * 2 ** Math.min(attempt, 10), LONGEST_PAUSE_MS);
  const tls = address.tls ? { tls: {} } : {};
  const common = {
    ...(address.username === null ? {} : { username: address.username }),
    ...(address.password === null ? {} : { password: address.password }),
    ...tls,
    // Scripts answer in shapes of the older protocol whatever the connection speaks.
    protocol: 2,
    connectTimeout: timeoutMs,
    // A Redis that stands still holds its connection open: it is given up, so that another can be made.
    socketTimeout: 2 * timeoutMs,
    maxRetriesPerRequest: 0,
    // Behind a name that moves to another machine, a former master answers on: looking again finds the new one.
    reconnectOnError: (error: Error) => /^READONLY\b/.test(error.message),
  } satisfies RedisOptions;
  const own = { ...common, enableOfflineQueue: false, lazyConnect: true, retryStrategy: pauseMs };
  switch (address.kind.name) {
    case 'single':
      return new Redis({ ...own, ...address.hosts[0], db: address.kind.database });
    case 'sentinel': {
      const { master, database, sentinelPassword } = address.kind;
      return new Redis({
        ...own,
        sentinels: [...address.hosts],
        name: master,
        db: database,
        ...(sentinelPassword === null ? {} : { sentinelPassword }),
        ...(address.tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
        // Without it a client whose connection is kept open would stay with the former master.
        failoverDetector: true,
        sentinelRetryStrategy: pauseMs,
        sentinelCommandTimeout: timeoutMs,
      });
    }
    case 'cluster':
      return new Cluster([...address.hosts], {
        lazyConnect: true,
        enableOfflineQueue: false,
        slotsRefreshTimeout: timeoutMs,
        // So that a node that went away is missed although no command is sent to it.
        slotsRefreshInterval: 5_000,
        clusterRetryStrategy: pauseMs,
        redisOptions: common,
      });
  }
}
