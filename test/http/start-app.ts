import { hash } from 'node:crypto';
import { request, type Agent, type IncomingHttpHeaders, type Server } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { ConversationKey } from '../../src/core/ports.js';
import { createApp, type AppDeps } from '../../src/http/app.js';
import type { Defect } from '../../src/http/errors.js';
import { nodePlatform } from '../../src/http/node-platform.js';
import { createNodeServer } from '../../src/http/node-server.js';
import { createNodeSink } from '../../src/http/node-sink.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { createDeletion } from '../../src/proxy/deletion.js';
import { createLearnedWindows } from '../../src/proxy/learned-windows.js';
import { createModelWindows } from '../../src/proxy/model-windows.js';
import type { ProxyRequest } from '../../src/proxy/request.js';
import { createRunningTurns } from '../../src/proxy/running-turns.js';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** A connection of its own by default. */
  readonly agent?: Agent;
}

export type RunningApp = Awaited<ReturnType<typeof startApp>>;

/** What the proxy got; its body read to the end. */
export type Proxied = Omit<ProxyRequest, 'body'> & { readonly body: string | null };

/**
 * The app on a free port over an empty ledger in memory. Unless told otherwise it answers the operator on loopback, and its proxy
 * reads a request to the end, notes it and says `proxied`.
 */
export async function startApp(overrides: Partial<AppDeps<HttpBindings>> = {}) {
  let time = 1000;
  const ledger = new MemoryLedger(() => (time += 1));
  const running = createRunningTurns();
  const forgotten: ConversationKey[] = [];
  const defects: Defect[] = [];
  const refusals: unknown[] = [];
  const proxied: Proxied[] = [];
  const reportDefect = (defect: Defect): void => void defects.push(defect);
  const windows = createModelWindows({
    limits: () => Promise.resolve({ configured: null, catalogue: 64_000, outputTokens: 4_096 }),
    learned: createLearnedWindows(ledger, () => time),
    discovery: null,
    directory: ledger,
    hash: (text) => hash('sha256', text, 'base64url').slice(0, 32),
    clock: () => time,
    learnedMs: 1_000_000,
  });
  const app = createApp<HttpBindings>({
    ledger,
    directory: ledger,
    deletion: createDeletion({
      ledger,
      directory: ledger,
      running,
      forget: ({ tenant, id }) => void forgotten.push({ tenant, id }),
      forgetWindows: (tenant) => windows.forgetTenant(tenant),
    }),
    windows,
    compact: () => Promise.reject(new Error('not asked for')),
    platform: nodePlatform(createNodeSink, reportDefect),
    access: { loopback: true, adminToken: null, allowedHosts: [] },
    upstreams: {
      main: { prefix: '', baseUrl: 'https://main.example/v1', apiKey: null },
      byPrefix: new Map(),
      byDialect: new Map(),
    },
    proxy: async (proxyRequest, sink) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of proxyRequest.body ?? []) chunks.push(chunk);
      proxied.push({ ...proxyRequest, body: proxyRequest.body === null ? null : Buffer.concat(chunks).toString() });
      sink.start(200, [['x-from', 'proxy']]);
      await sink.write(Buffer.from('proxied'));
      await sink.end();
    },
    isStopping: () => false,
    now: () => performance.now(),
    reportDefect,
    reportRefusal: (refusal) => void refusals.push(refusal),
    ...overrides,
  });
  const server = createNodeServer(app, reportDefect);
  const port = await listen(server);
  return {
    port,
    ledger,
    running,
    /** Conversations whose derived state was dropped. */
    forgotten,
    /** The app's clock, in milliseconds. */
    now: () => time,
    defects,
    refusals,
    proxied,
    send: (path: string, sent: Sent = {}) => send(port, path, sent),
    async json(path: string, sent: Sent = {}) {
      const { status, text } = await send(port, path, sent);
      const body: unknown = JSON.parse(text);
      return { status, body };
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await ledger.close();
    },
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return address.port;
}

/** A request whose every header, `Host` included, is the test's. */
function send(port: number, path: string, { method = 'GET', headers = {}, body, agent }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path, method, headers, agent: agent ?? false }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => (text += chunk));
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }));
      incoming.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
