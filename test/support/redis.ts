import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';

const run = promisify(execFile);

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** A plain client of the test's own, to look at what is stored and to change settings. */
  readonly admin: Redis;
  signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void;
  /** Ends the process, in an orderly way unless told otherwise, and starts another on the same port and folder. */
  restart(pauseMs?: number, signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Ends the process, by its own id, and removes its folder. */
  stop(): Promise<void>;
}

export interface RedisServerOptions {
  /** More arguments of redis-server; without any nothing is written to disk. */
  readonly args?: readonly string[];
  readonly port?: number;
  /** A Sentinel instead, with this text as its configuration. */
  readonly sentinel?: string;
}

/** A real redis-server on a free loopback port. */
export async function startRedis({ args = [], port: wanted, sentinel }: RedisServerOptions = {}): Promise<RedisServer> {
  await requireRedis();
  const port = wanted ?? (await freePort());
  const folder = mkdtempSync(join(tmpdir(), 'spillway-redis-'));
  const own = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--logfile', 'redis.log'];
  const volatile = ['--save', '', '--appendonly', 'no'];
  if (sentinel !== undefined) writeFileSync(join(folder, 'sentinel.conf'), sentinel);
  const command =
    sentinel === undefined ? [...own, ...volatile, ...args] : ['sentinel.conf', '--sentinel', ...own, ...args];
  let child: ChildProcess;
  const endWithTests = (): void => void child.kill('SIGKILL');
  process.on('exit', endWithTests);
  const start = async (): Promise<void> => {
    child = spawn('redis-server', command, { cwd: folder, stdio: 'ignore' });
    await answering(port, child);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGCONT');
    child.kill(signal);
    await ended;
  };
  await start();
  const admin = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => 20 });
  admin.on('error', () => undefined);
  await admin.connect().catch(() => undefined);
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    admin,
    signal: (signal) => void child.kill(signal),
    async restart(pauseMs = 0, signal = 'SIGTERM') {
      await end(signal);
      await sleep(pauseMs);
      await start();
    },
    async stop() {
      admin.disconnect();
      await end('SIGKILL');
      process.off('exit', endWithTests);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface RedisCluster {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  stop(): Promise<void>;
}

/** Three masters of a real Cluster. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--cluster-require-full-coverage', 'no'];
  const nodes = await Promise.all([0, 1, 2].map(() => startRedis({ args })));
  const addresses = nodes.map((node) => `127.0.0.1:${node.port}`);
  await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes']);
  return {
    url: `redis-cluster://${addresses.join(',')}`,
    nodes,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

export interface RedisSentinel {
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  /** Makes the replica the master, as a failure would. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

/** A master, its replica and one Sentinel that watches them. */
export async function startRedisSentinel(): Promise<RedisSentinel> {
  const master = await startRedis();
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
  const sentinel = await startRedis({
    sentinel: [
      `sentinel monitor main 127.0.0.1 ${master.port} 1`,
      'sentinel down-after-milliseconds main 30000',
      'sentinel failover-timeout main 2000',
    ].join('\n'),
  });
  await until(async () =>
    String(await sentinel.admin.call('SENTINEL', 'REPLICAS', 'main')).includes(`${replica.port}`),
  );
  await until(async () => (await replica.admin.info('replication')).includes('master_link_status:up'));
  return {
    url: `redis-sentinel://127.0.0.1:${sentinel.port}/main`,
    master,
    replica,
    async failOver() {
      await sentinel.admin.call('SENTINEL', 'FAILOVER', 'main');
      const address = () => sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main');
      await until(async () => String(await address()) === `127.0.0.1,${replica.port}`);
      await until(async () => (await master.admin.info('replication')).includes('role:slave'));
    },
    async stop() {
      await Promise.all([sentinel.stop(), replica.stop(), master.stop()]);
    },
  };
}

/** Waits until something holds, for as long as a test may take. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds().catch(() => false))) await sleep(20);
}

/** Installs Redis where that is allowed; a test that cannot run must not pass. */
async function requireRedis(): Promise<void> {
  const isThere = async (): Promise<boolean> =>
    run('redis-server', ['--version']).then(
      () => true,
      () => false,
    );
  if (await isThere()) return;
  if (process.env['TESTS_MAY_INSTALL'] === '1') {
    await run('apt-get', ['install', '-y', '--no-install-recommends', 'redis-server']);
    if (await isThere()) return;
  }
  throw new Error(
    'These tests run a real Redis: put redis-server (7 or newer) on the PATH, or set TESTS_MAY_INSTALL=1 where apt-get may install it.',
  );
}

/** Below those that the system hands out, and low enough for a Cluster's second port, ten thousand above. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 10_000);
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

async function answering(port: number, child: ChildProcess): Promise<void> {
  const probe = new Redis(port, '127.0.0.1', { protocol: 2, retryStrategy: () => 20, maxRetriesPerRequest: null });
  probe.on('error', () => undefined);
  const ended = once(child, 'exit').then(() => {
    throw new Error(`redis-server on port ${port} ended at once`);
  });
  ended.catch(() => undefined);
  // One that asks for a password has answered, too.
  const answered = probe.ping().catch((error: unknown) => {
    if (!String(error).includes('NOAUTH')) throw error;
  });
  try {
    await Promise.race([answered, ended]);
  } finally {
    probe.disconnect();
  }
}
