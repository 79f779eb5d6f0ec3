import { waitUntil } from 'cloudflare:workers';
import { compose } from '../compose.js';
import { SpillwayError } from '../core/errors.js';
import { createApp } from '../http/app.js';
import { defectOf, errorForm, errorResponse, type Defect } from '../http/errors.js';
import { workerPlatform, type WorkerBindings } from '../http/worker-platform.js';
import { createDurableCache } from '../ledger/durable-cache.js';
import { createDurableDirectories } from '../ledger/durable-directories.js';
import { createDurableLedger } from '../ledger/durable-ledger.js';
import { createCounterLoader } from '../tokens/counter.js';
import { loadCatalogue } from '../upstream/catalogue.js';
import { decodeBody } from '../upstream/fetch-decode-body.js';
import { createFetchSend } from '../upstream/fetch-send.js';
import { limitSilence } from '../upstream/limit-silence.js';
import { createWindows } from '../upstream/windows.js';
import { objectsOf, type Bindings } from './bindings.js';
import { digest, hash, signWith } from './digests.js';
import { holding, holdingSend } from './holding.js';
import { createLog } from './log.js';
import { readPackedRanks } from './ranks.js';
import { readWorkerConfig } from './worker-config.js';

/** Answers one request. */
export type WorkerApp = (request: Request) => Promise<Response>;

/** The proxy of an isolate. Where the settings are wrong it answers every request so, and says in the log what is wrong. */
export function createWorkerApp(bindings: Bindings, writeLine: (line: string) => void): WorkerApp {
  try {
    return appOf(bindings, writeLine);
  } catch (error) {
    if (!(error instanceof SpillwayError && error.code === 'invalid_setting')) throw error;
    const { field, message } = error;
    return async () => {
      createLog('error', writeLine).error({ field, reason: message }, 'wrong settings');
      return errorResponse(errorForm(new SpillwayError('invalid_setting', 'Spillway is not set up: see its log.')));
    };
  }
}

function appOf(bindings: Bindings, writeLine: (line: string) => void): WorkerApp {
  const config = readWorkerConfig(bindings);
  const log = createLog(config.logLevel, writeLine);
  const reportDefect = (defect: Defect): void => log.error(defect, 'defect');
  const objects = objectsOf(bindings);
  const ledger = holding(createDurableLedger(objects), waitUntil);
  const directory = holding(createDurableDirectories(objects), waitUntil);
  const send = createFetchSend((input, init) => fetch(input, init));
  const now = (): number => performance.now();
  const { proxy, compact, windows, deletion } = compose(config, {
    ledger,
    directory,
    sharedCache: holding(createDurableCache(objects), waitUntil),
    sharesWork: false,
    send: holdingSend(
      config.upstreamTimeoutMs === null ? send : limitSilence(send, config.upstreamTimeoutMs),
      waitUntil,
    ),
    hash,
    digest,
    sign: signWith(config.tenantSecret),
    uniqueId: () => crypto.randomUUID(),
    now,
    loadCounter: createCounterLoader(readPackedRanks),
    limits: createWindows(config.windows, loadCatalogue),
    readBody: (body, contentEncoding) => decodeBody(body, contentEncoding, config.bodyLimitBytes),
    writeLog(fields, error) {
      log.info(fields, 'request');
      if (error !== undefined) reportDefect(defectOf(error));
    },
    onGap: (turn, reason) =>
      log.error({ conversation: turn.conversation.id, head: turn.spine.at(-1)?.id, reason }, 'store gap'),
  });
  const app = createApp<WorkerBindings>({
    proxy,
    compact,
    windows,
    deletion,
    upstreams: config.upstreams,
    ledger,
    directory,
    platform: workerPlatform(reportDefect),
    access: { loopback: false, adminToken: config.adminToken, allowedHosts: config.allowedHosts },
    isStopping: () => false,
    now,
    reportDefect,
    reportRefusal: (refusal) => log.info(refusal, 'refused'),
  });
  return async (request) => app.fetch(request, { request, waitUntil });
}
