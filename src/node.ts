import { createHmac, hash as digestOf, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { HttpBindings } from '@hono/node-server';
import { pino } from 'pino';
import { compose } from './compose.js';
import type { Config } from './config.js';
import { SpillwayError } from './core/errors.js';
import type { Directory, Ledger } from './core/ports.js';
import { createApp } from './http/app.js';
import { defectOf } from './http/errors.js';
import type { Defect } from './http/errors.js';
import { nodePlatform } from './http/node-platform.js';
import { createNodeServer } from './http/node-server.js';
import { createNodeSink } from './http/node-sink.js';
import { MemoryLedger } from './ledger/memory.js';
import { openSqliteLedger } from './ledger/sqlite.js';
import { listenFailure } from './listen-failure.js';
import { serverSecret } from './server-secret.js';
import { createCounterLoader } from './tokens/counter.js';
import { readPackedRanks } from './tokens/node-ranks.js';
import { loadCatalogue } from './upstream/catalogue.js';
import { decodeBody } from './upstream/decode-body.js';
import { createNodeSend } from './upstream/node-send.js';
import { createWindows } from './upstream/windows.js';

/** Another process on the same file, such as a backup, may hold it this long before a request goes on without the store. */
const BUSY_TIMEOUT_MS = 2_000;

export interface Spillway {
  /** Where it listens, for example `http://127.0.0.1:8484`. */
  readonly url: string;
  /** Opens the API where loopback does not; null where none is needed. */
  readonly adminToken: string | null;
  /** Takes no new requests, lets running ones and their records end, then closes the store. */
  close(): Promise<void>;
}

export interface StartOptions {
  /** Where log lines go; standard output by default. */
  readonly logTo?: { write(line: string): void };
}

/** Starts a proxy on Node. Rejects with `SpillwayError` if the data folder, the store or the address does not serve. */
export async function startSpillway(config: Config, options: StartOptions = {}): Promise<Spillway> {
  const formatters = { level: (label: string) => ({ level: label }) };
  const log = pino({ level: config.logLevel, base: null, formatters }, options.logTo ?? process.stdout);
  const reportDefect = (defect: Defect): void => log.error(defect, 'defect');
  const adminToken = config.adminToken ?? (config.loopback ? null : randomBytes(24).toString('base64url'));
  const secret = await secretFor(config);
  const ledger = await openLedger(config);
  const upstream = createNodeSend({ timeoutMs: config.upstreamTimeoutMs });
  const limits = createWindows(config.windows, loadCatalogue);
  const { proxy, compact, windows, drain } = compose(config, {
    ledger,
    directory: ledger,
    send: upstream.send,
    hash: (text) => digestOf('sha256', text, 'base64url').slice(0, 32),
    digest: (body) => digestOf('sha256', body, 'base64url'),
    sign: (text) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32),
    uniqueId: randomUUID,
    now: () => performance.now(),
    loadCounter: createCounterLoader(readPackedRanks),
    limits,
    readBody: (body, contentEncoding) => decodeBody(body, contentEncoding, config.bodyLimitBytes),
    writeLog(fields, error) {
      log.info(fields, 'request');
      if (error !== undefined) reportDefect(defectOf(error));
    },
    onGap: (turn, reason) => log.error({ conversation: turn.conversation.id, reason }, 'store gap'),
  });

  // The first request should not wait for what every request needs. A failure shows itself again there.
  void limits('').catch(() => undefined);

  let stopping = false;
  const app = createApp<HttpBindings>({
    proxy,
    compact,
    windows,
    upstreams: config.upstreams,
    ledger,
    directory: ledger,
    platform: nodePlatform(createNodeSink, reportDefect),
    access: { loopback: config.loopback, adminToken, allowedHosts: config.allowedHosts },
    isStopping: () => stopping,
    now: () => performance.now(),
    reportDefect,
    reportRefusal: (refusal) => log.info(refusal, 'refused'),
  });
  const server = createNodeServer(app, reportDefect);
  const requestsEnded = watchRequests(server);
  try {
    await listen(server, config);
  } catch (error) {
    await ledger.close();
    throw error;
  }
  return {
    url: urlOf(server, config.host),
    adminToken,
    async close() {
      stopping = true;
      const closed = new Promise((resolve) => server.close(resolve));
      await requestsEnded();
      await drain();
      // Not only idle ones: a connection that never sent a request counts as busy, and would hold the process up.
      server.closeAllConnections();
      await closed;
      await upstream.close();
      await ledger.close();
    },
  };
}

async function secretFor(config: Config): Promise<string> {
  if (config.tenantSecret !== null) return config.tenantSecret;
  // Where nothing outlives the process, its secret need not either.
  const outlives = config.store !== 'memory' && config.mode !== 'no-store';
  return outlives ? serverSecret(config.dataDir) : randomBytes(32).toString('base64url');
}

async function openLedger(config: Config): Promise<Ledger & Directory> {
  if (config.store === 'memory' || config.mode === 'no-store') return new MemoryLedger(Date.now);
  const file = join(config.dataDir, 'spillway.db');
  const options = { file, durability: config.sqliteSync, busyTimeoutMs: BUSY_TIMEOUT_MS, clock: Date.now };
  return openSqliteLedger(options).catch((error: unknown) => {
    if (!(error instanceof SpillwayError && error.field === 'file')) throw error;
    throw new SpillwayError(error.code, `SPILLWAY_DATA_DIR: ${error.message}`, 'SPILLWAY_DATA_DIR', error);
  });
}

function listen(server: Server, { host, port }: Config): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(listenFailure(error, { host, port, hostSetting: 'SPILLWAY_HOST', portSetting: 'SPILLWAY_PORT' }));
    });
    server.listen(port, host, resolve);
  });
}

/** What it returns resolves when no request is being answered. */
function watchRequests(server: Server): () => Promise<void> {
  const open = new Set<ServerResponse>();
  server.on('request', (_, response: ServerResponse) => {
    open.add(response);
    response.once('close', () => open.delete(response));
  });
  return async () => {
    while (open.size > 0) await Promise.all([...open].map((response) => once(response, 'close')));
  };
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
