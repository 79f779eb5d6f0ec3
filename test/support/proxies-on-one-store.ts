import { createHmac, hash as digestOf, randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { onTestFinished } from 'vitest';
import { compose } from '../../src/compose.js';
import { readConfig } from '../../src/config.js';
import { createApp } from '../../src/http/app.js';
import { nodePlatform } from '../../src/http/node-platform.js';
import { createNodeServer } from '../../src/http/node-server.js';
import { createNodeSink } from '../../src/http/node-sink.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { startSimulator } from '../../src/simulator/simulator.js';
import type { Simulator, SimulatorOptions } from '../../src/simulator/simulator.js';
import { createCounterLoader } from '../../src/tokens/counter.js';
import { readPackedRanks } from '../../src/tokens/node-ranks.js';
import { decodeBody } from '../../src/upstream/decode-body.js';
import { createNodeSend } from '../../src/upstream/node-send.js';
import { createWindows } from '../../src/upstream/windows.js';
import { MemoryCache } from './memory-cache.js';

const counters = createCounterLoader(readPackedRanks);

/** A Spillway that shares its store with others. */
export interface OneOfMany {
  /** Where its API root is, without `/v1`. */
  readonly url: string;
  /** Its log lines so far. */
  readonly logs: readonly Readonly<Record<string, unknown>>[];
  post(body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

/** A simulator and so many Spillways before it, as if in processes of their own, over one ledger and one shared cache. */
export async function startProxiesOnOneStore(
  count: number,
  settings: Record<string, string>,
  simulated: Partial<SimulatorOptions> = {},
): Promise<{
  readonly simulator: Simulator;
  readonly ledger: MemoryLedger;
  readonly cache: MemoryCache;
  readonly proxies: readonly OneOfMany[];
}> {
  const simulator = await startSimulator({ counter: await counters('o200k_base'), ...simulated });
  onTestFinished(() => simulator.close());
  const ledger = new MemoryLedger(Date.now);
  const cache = new MemoryCache();
  const environment = { SPILLWAY_UPSTREAM_URL: `${simulator.url}/v1`, SPILLWAY_DISCOVER_WINDOWS: 'off', ...settings };
  const start = () => startOne(environment, ledger, cache);
  return { simulator, ledger, cache, proxies: await Promise.all(Array.from({ length: count }, start)) };
}

async function startOne(
  environment: Record<string, string>,
  ledger: MemoryLedger,
  sharedCache: MemoryCache,
): Promise<OneOfMany> {
  const config = readConfig(environment);
  const upstream = createNodeSend({ timeoutMs: null });
  const logs: Readonly<Record<string, unknown>>[] = [];
  const fail = (what: unknown): never => {
    throw new Error('a defect', { cause: what });
  };
  const composed = compose(config, {
    ledger,
    directory: ledger,
    sharedCache,
    sharesWork: true,
    send: upstream.send,
    hash: (text) => digestOf('sha256', text, 'base64url').slice(0, 32),
    digest: (body) => digestOf('sha256', body, 'base64url'),
    sign: (text) => createHmac('sha256', 'of all of them').update(text).digest('base64url').slice(0, 32),
    uniqueId: randomUUID,
    now: () => performance.now(),
    loadCounter: counters,
    limits: createWindows(config.windows, () => Promise.resolve(() => null)),
    readBody: (body, contentEncoding) => decodeBody(body, contentEncoding, config.bodyLimitBytes),
    writeLog(fields, error) {
      if (error !== undefined) fail(error);
      logs.push(fields);
    },
    onGap: (_, reason) => fail(reason),
  });
  const app = createApp<HttpBindings>({
    ...composed,
    upstreams: config.upstreams,
    ledger,
    directory: ledger,
    platform: nodePlatform(createNodeSink, fail),
    access: { loopback: true, adminToken: null, allowedHosts: [] },
    isStopping: () => false,
    now: () => performance.now(),
    reportDefect: fail,
    reportRefusal: () => undefined,
  });
  const server = createNodeServer(app, fail);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await composed.drain();
    await upstream.close();
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  return {
    url,
    logs,
    post: (body, headers = {}) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
  };
}
