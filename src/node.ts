import { createHmac, hash as digestOf, randomBytes, randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { pino } from 'pino';
import { startSweeping } from './background-sweeps.js';
import { compose } from './compose.js';
import type { Config } from './config.js';
import { SpillwayError } from './core/errors.js';
import { createApp } from './http/app.js';
import { defectOf } from './http/errors.js';
import type { Defect } from './http/errors.js';
import { watchRequests } from './http/node-drain.js';
import { nodePlatform } from './http/node-platform.js';
import { createNodeServer } from './http/node-server.js';
import { createNodeSink } from './http/node-sink.js';
import { listenFailure } from './listen-failure.js';
import { openStore } from './open-ledger.js';
import { serverSecret } from './server-secret.js';
import { createCounterLoader } from './tokens/counter.js';
import { readPackedRanks } from './tokens/node-ranks.js';
import { loadCatalogue } from './upstream/catalogue.js';
import { decodeBody } from './upstream/decode-body.js';
import { createNodeSend } from './upstream/node-send.js';
import { createWindows } from './upstream/windows.js';

export interface Spillway {
  /** Where it listens, for example `http://127.0.0.1:8484`. */
  readonly url: string;
  /** Opens the API where loopback does not; null where none is needed. */
  readonly adminToken: string | null;
  /**
   * Takes no new requests, lets running ones and their records end, then closes the store. When the time of the setting is up, or
   * `hurry` is aborted, the connections of those that still run are ended and their turns recorded as cancelled.
   */
  close(hurry?: AbortSignal): Promise<void>;
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
  const { ledger, sharedCache } = await openStore(config);
  const upstream = createNodeSend({ timeoutMs: config.upstreamTimeoutMs });
  const limits = createWindows(config.windows, loadCatalogue);
  const { proxy, compact, windows, deletion, sweep, drain } = compose(config, {
    ledger,
    directory: ledger,
    sharedCache,
    sharesWork: true,
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
    onGap: (turn, reason) =>
      log.error({ conversation: turn.conversation.id, head: turn.spine.at(-1)?.id, reason }, 'store gap'),
  });

  // The first request should not wait for what every request needs. A failure shows itself again there.
  void limits('').catch(() => undefined);

  let stopping = false;
  const app = createApp<HttpBindings>({
    proxy,
    compact,
    windows,
    deletion,
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
  const stopSweeping = startSweeping({
    sweep,
    onSwept(swept) {
      if (swept.conversations > 0) log.info(swept, 'erased by retention');
    },
    onFailed(error) {
      if (error instanceof SpillwayError) log.error({ code: error.code }, 'retention failed');
      else reportDefect(defectOf(error));
    },
  });
  return {
    url: urlOf(server, config.host),
    adminToken,
    async close(hurry) {
      stopping = true;
      const limit = new AbortController();
      const breakOff = (): void => limit.abort();
      const timer = setTimeout(breakOff, config.drainSeconds * 1000);
      if (hurry?.aborted === true) breakOff();
      else hurry?.addEventListener('abort', breakOff);
      const swept = stopSweeping();
      const closed = new Promise((resolve) => server.close(resolve));
      await requestsEnded(limit.signal);
      // A summary outlives its client, but not the limit.
      if (limit.signal.aborted) await upstream.close();
      else limit.signal.addEventListener('abort', () => void upstream.close());
      await drain();
      clearTimeout(timer);
      // Not only idle ones: a connection that never sent a request counts as busy, and would hold the process up.
      server.closeAllConnections();
      await closed;
      await swept;
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

function listen(server: Server, { host, port }: Config): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(listenFailure(error, { host, port, hostSetting: 'SPILLWAY_HOST', portSetting: 'SPILLWAY_PORT' }));
    });
    server.listen(port, host, resolve);
  });
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
