import { SpillwayError } from '../core/errors.js';
import type { Message } from '../core/message.js';
import type { Dialect, DialectName } from '../dialects/dialect.js';
import type { HeaderPair } from '../upstream/headers.js';
import { answerCompact } from './answer-command.js';
import type { AnswerCommandDeps } from './answer-command.js';
import { readCompactCommand } from './command.js';
import { namedId } from './identify.js';
import { createPatientSink } from './keep-alive.js';
import type { PatientSink } from './keep-alive.js';
import { openTurn } from './open-turn.js';
import type { Incoming, OpenTurnDeps } from './open-turn.js';
import { passThrough } from './pass-through.js';
import { createRequestLog } from './request-log.js';
import type { LogFields, RequestLog } from './request-log.js';
import type { Proxy, ProxyRequest } from './request.js';
import type { Release } from './running-turns.js';
import { serveTurn } from './serve-turn.js';
import type { ServeTurnDeps } from './serve-turn.js';
import type { Sink } from './sink.js';
import { readSpillwayHeaders } from './spillway-headers.js';
import type { SpillwayHeaders } from './spillway-headers.js';
import type { RequestBody, Turn } from './turn.js';

/** What Spillway may do: everything, record only, or neither record nor rewrite. */
export type Mode = 'compact' | 'observe' | 'no-store';

export interface ProxyDeps extends OpenTurnDeps, Omit<ServeTurnDeps, 'acts'>, Omit<AnswerCommandDeps, 'hash' | 'sign'> {
  readonly mode: Mode;
  /** A failing store lets requests pass without it, or refuses them. */
  readonly storeFailure: 'pass' | 'refuse';
  readonly dialects: ReadonlyMap<DialectName, Dialect>;
  tenantOf(headers: Readonly<Record<string, string>>, query: string): string;
  /** Reads a whole body and undoes its content encoding; rejects as `decodeBody` does. */
  readBody(
    body: AsyncIterable<Uint8Array> | null,
    contentEncoding: string | null,
  ): Promise<{ readonly original: Uint8Array; readonly decoded: Uint8Array }>;
  /** Grace before a waiting client gets a sign of life, and the time between two; 0 sends none (SPEC 6.6). */
  readonly keepAliveMs: number;
  writeLog(fields: LogFields, error: unknown): void;
  /** The status a client is told an error with, and the body in the dialect's form. */
  errorResponse(error: unknown, dialect: Dialect | null): { readonly status: number; readonly body: string };
}

/** The proxy: what it can read becomes a turn, everything else passes through untouched. */
export function createProxy(deps: ProxyDeps): Proxy {
  return async (request, outgoing) => {
    const sink = createPatientSink(outgoing, deps.keepAliveMs);
    const log = createRequestLog(deps.writeLog, { method: request.method, route: routeOf(request) });
    let opened: Turn | null = null;
    try {
      await serve(request, sink, log, deps, (turn) => (opened = turn));
    } catch (error) {
      if (sink.closed.aborted) log.add({ outcome: 'cancelled' });
      else await sayError(error, request, opened, sink, log, deps);
    } finally {
      log.add({ durationMs: Math.round(deps.now() - request.arrivedAt) });
      log.write();
    }
  };
}

async function serve(
  request: ProxyRequest,
  sink: PatientSink,
  log: RequestLog,
  deps: ProxyDeps,
  onOpened: (turn: Turn) => void,
): Promise<void> {
  const options = readSpillwayHeaders(request.headers);
  const dialect = request.dialect === null ? undefined : deps.dialects.get(request.dialect);
  const pass = (action: string, body: Uint8Array | null, storeUnavailable = false): Promise<void> =>
    passThrough(request, sink, log, deps.send, { body, action, storeUnavailable, now: deps.now });

  if (dialect === undefined) return pass('none', null);
  if (options.append && (options.bypass || deps.mode === 'no-store')) throw withoutHistory();
  if (options.bypass) return pass('bypass', null);
  if (deps.mode === 'no-store') return pass('none', null);

  const body = await readBody(request, deps);
  const read = dialect.read(parseJson(body.text));
  if (read === null || read.messages.length === 0) {
    if (options.append) throw withoutHistory();
    return pass('unread', body.original);
  }
  const incoming = {
    request,
    dialect,
    read,
    body,
    options,
    tenant: deps.tenantOf(request.headers, request.query),
    closed: sink.closed,
  };
  const claim = claimFor(options, incoming.tenant, deps);
  let leave: Release | null = null;
  try {
    const turn = await openOrWhyNot(incoming, deps);
    if (turn === 'too_deep') return await pass('unread', body.original);
    if (turn === 'store_unavailable') {
      log.add({ store: 'unavailable' });
      return await pass('none', body.original, true);
    }
    onOpened(turn);
    leave = deps.running.enter(turn.conversation, turn.spine.at(-1)?.id ?? '');
    log.add({
      conversation: turn.conversation.id,
      model: turn.read.model,
      stream: turn.read.stream,
      nodes: turn.spine.length,
    });
    await serveOpened(turn, sink, log, deps);
  } finally {
    leave?.();
    claim?.();
  }
}

function serveOpened(turn: Turn, sink: PatientSink, log: RequestLog, deps: ProxyDeps): Promise<void> {
  const command = commandOf(turn.spine.at(-1)?.message, deps);
  if (command !== null) return answerCompact(turn, command.userWish, sink, log, deps);
  return serveTurn(turn, sink, log, { ...deps, acts: deps.mode === 'compact' });
}

function commandOf(last: Message | undefined, deps: ProxyDeps): ReturnType<typeof readCompactCommand> {
  return deps.readsCommands && last !== undefined ? readCompactCommand(last) : null;
}

async function readBody(request: ProxyRequest, deps: ProxyDeps): Promise<RequestBody> {
  const { original, decoded } = await deps.readBody(request.body, request.headers['content-encoding'] ?? null);
  return { original, text: new TextDecoder().decode(decoded), textBytes: decoded.byteLength };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SpillwayError('invalid_json', 'the request body is not valid JSON', 'body');
  }
}

/** What a thin client sends is no request without the history that the ledger holds for it (SPEC 1.6). */
function withoutHistory(): SpillwayError {
  const reason = 'x-spillway-append needs messages that Spillway can read, in a mode that records them';
  return new SpillwayError('invalid_header', reason, 'x-spillway-append');
}

/** A thin client that appends after HEAD holds it until its turn ends (SPEC 1.6). */
function claimFor(options: SpillwayHeaders, tenant: string, deps: ProxyDeps): Release | null {
  if (!options.append || options.predecessor !== null || options.conversation === null) return null;
  return deps.running.claimHead({ tenant, id: namedId(deps.hash, tenant, options.conversation) });
}

/**
 * The turn, or why the request goes on without one: the store failed, or a message nests too deep to be stored. A thin
 * client's history is in the store, and a command may reach no model (SPEC 4.9): these cannot go on without it.
 */
async function openOrWhyNot(incoming: Incoming, deps: ProxyDeps): Promise<Turn | 'store_unavailable' | 'too_deep'> {
  try {
    return await openTurn(incoming, deps);
  } catch (error) {
    const needsStore = incoming.options.append || commandOf(incoming.read.messages.at(-1), deps) !== null;
    if (!needsStore && error instanceof RangeError) return 'too_deep';
    const storeFailed = error instanceof SpillwayError && error.code === 'store_unavailable';
    if (!needsStore && storeFailed && deps.storeFailure === 'pass') return 'store_unavailable';
    throw error;
  }
}

async function sayError(
  error: unknown,
  request: ProxyRequest,
  opened: Turn | null,
  sink: Sink,
  log: RequestLog,
  deps: ProxyDeps,
): Promise<void> {
  const dialect = request.dialect === null ? null : (deps.dialects.get(request.dialect) ?? null);
  const { status, body } = deps.errorResponse(error, dialect);
  log.add({ status, outcome: 'refused', code: error instanceof SpillwayError ? error.code : 'internal_error' });
  if (!(error instanceof SpillwayError)) log.fail(error);
  try {
    sink.start(status, [['content-type', 'application/json'], ...placeHeaders(opened)]);
    await sink.write(new TextEncoder().encode(body));
    await sink.end();
  } catch {
    sink.abort();
  }
}

/** Where the messages of a refused request are stored, if they are. */
function placeHeaders(opened: Turn | null): readonly HeaderPair[] {
  if (opened === null) return [];
  return [
    ['x-spillway-conversation', opened.conversation.id],
    ['x-spillway-head', opened.spine.at(-1)?.id ?? ''],
  ];
}

/** The route of a log line: a path may carry ids of the client's, so only what is known of it is said. */
function routeOf(request: ProxyRequest): string {
  return request.dialect ?? request.path.split('/').slice(0, 3).join('/');
}
