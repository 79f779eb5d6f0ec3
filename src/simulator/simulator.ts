import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { TokenCounter } from '../core/ports.js';
import type { Answer, Delivery } from './answer.js';
import { createExchange } from './exchange.js';
import { stringsIn } from './json-value.js';
import { rememberingCounter } from './remembering-counter.js';
import type { OverflowForm, Script } from './reply-plan.js';
import { createRequestLog } from './request-log.js';
import type { RecordedRequest } from './request-log.js';
import { createRoutes } from './routes.js';
import type { Summariser } from './summariser.js';
import type { Windows } from './windows.js';

const WAIT_MS = 10_000;
const LARGEST_BODY_BYTES = 32 * 2 ** 20;
/** Longer than any client keeps a connection for the next request, so that none meets one just closed. */
const KEEP_ALIVE_MS = 120_000;

export interface SimulatorOptions {
  /** Counts every prompt and reply. */
  readonly counter: TokenCounter;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default: any free one. */
  readonly port?: number | undefined;
  /** Default: no model has a limit. */
  readonly windows?: Windows | undefined;
  /** For all formats; default: over HTTP, the one of the provider each format belongs to. */
  readonly overflow?: OverflowForm | undefined;
  /** What the model says; the default reply where it returns null. */
  readonly script?: Script | undefined;
  /** How successive summary calls go; faithful unless given. */
  readonly summariser?: Summariser | undefined;
  /** Answers paths that no other route serves; null leaves it to the echo. */
  readonly respond?: ((request: RecordedRequest) => Answer | null) | undefined;
  /** As the templates of many open models demand; off unless given. */
  readonly rolesMustAlternate?: boolean | undefined;
  /** Responses: the provider compacts where a client asks for it; on unless given. */
  readonly servesCompaction?: boolean | undefined;
  /** Messages: the provider holds threads; off unless given. */
  readonly servesThreads?: boolean | undefined;
  /**
   * Messages: a `max_tokens` past the end of the window is accepted, and output cut there stops with `model_context_window_exceeded`;
   * refused unless given.
   */
  readonly cutsAtWindow?: boolean | undefined;
  /** Messages: most bytes of a body; 32 MiB unless given. */
  readonly largestBodyBytes?: number | undefined;
  /** What reasoning is signed and encrypted with; simulators with the same one accept each other's. */
  readonly secret?: string | undefined;
  /** How replies are sent unless a plan says otherwise. */
  readonly delivery?: Delivery | undefined;
  /** Words of a default reply; 24 unless given. */
  readonly replyWords?: number | undefined;
  /** Ids of `GET /v1/models`. */
  readonly models?: readonly string[] | undefined;
  /** How many requests are remembered, bodies included; 10,000 unless given. */
  readonly keepRequests?: number | undefined;
}

/** A provider that is none: it says so in its `server` header, its model names and its fingerprint. */
export interface Simulator {
  /** Without a path, for example `http://127.0.0.1:8080`; the API lies under `/v1`. */
  readonly url: string;
  /** Oldest first; live. */
  readonly requests: readonly RecordedRequest[];
  chatRequests(): readonly RecordedRequest[];
  summaryRequests(): readonly RecordedRequest[];
  /** For each chat request, every string the model could have read, one a line: its body, with what the provider held in place. */
  textsRead(): readonly string[];
  /** The first request, past or to come, for which `predicate` holds; rejects after `timeoutMs`, by default 10 s. */
  waitFor(predicate: (request: RecordedRequest) => boolean, timeoutMs?: number): Promise<RecordedRequest>;
  /** Breaks off whatever is under way and stops listening. */
  close(): Promise<void>;
}

/** Starts a provider simulator; rejects if it cannot listen. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { host = '127.0.0.1', port = 0, models = ['simulated-model'] } = options;
  const counter = rememberingCounter(options.counter);
  const log = createRequestLog(options.keepRequests ?? 10_000);
  const routes = createRoutes({
    counter,
    models,
    windows: options.windows ?? {},
    overflow: options.overflow ?? null,
    script: options.script ?? (() => null),
    summariser: options.summariser ?? [],
    respond: options.respond ?? (() => null),
    rolesMustAlternate: options.rolesMustAlternate ?? false,
    servesCompaction: options.servesCompaction ?? true,
    servesThreads: options.servesThreads ?? false,
    cutsAtWindow: options.cutsAtWindow ?? false,
    largestBodyBytes: options.largestBodyBytes ?? LARGEST_BODY_BYTES,
    secret: options.secret ?? 'spillway-simulator',
    // Clients refer to replies later, so no id may come again after a restart.
    idMark: randomBytes(4).toString('hex'),
    delivery: options.delivery ?? {},
    replyWords: options.replyWords ?? 24,
  });
  const server = createServer(createExchange(log, routes));
  server.requestTimeout = 0;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const listeningPort = await listen(server, port, host);
  const ofKind = (kind: RecordedRequest['kind']) => log.requests.filter((request) => request.kind === kind);
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listeningPort}`,
    requests: log.requests,
    chatRequests: () => ofKind('chat'),
    summaryRequests: () => ofKind('summary'),
    textsRead: () => ofKind('chat').map(({ body, reads }) => stringsIn(reads ?? body).join('\n')),
    waitFor: (predicate, timeoutMs = WAIT_MS) => log.waitFor(predicate, timeoutMs),
    close: () =>
      new Promise((resolve) => {
        log.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Resolves to the port it listens on. */
function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}
