import { SpillwayError } from '../core/errors.js';
import type { Message } from '../core/message.js';
import type { Dialect, DialectName, ReadRequest } from '../dialects/dialect.js';
import type { HeaderPair } from '../upstream/headers.js';
import { answerCompact } from './answer-command.js';
import type { AnswerCommandDeps } from './answer-command.js';
import { asksByPath, compactUpstream, serveAskedCompaction } from './asked-compaction.js';
import type { AskedCompactionDeps } from './asked-compaction.js';
import { readCompactCommand } from './command.js';
import { heldHistory, refersToHistory } from './held-history.js';
import type { HeldHistory, HeldHistoryDeps } from './held-history.js';
import { namedId, policyFor } from './identify.js';
import { createPatientSink } from './keep-alive.js';
import type { PatientSink } from './keep-alive.js';
import { leaveOutCommands } from './leave-out-commands.js';
import { openTurn } from './open-turn.js';
import type { Incoming, OpenTurnDeps } from './open-turn.js';
import { passThrough } from './pass-through.js';
import type { PassThroughOptions } from './pass-through.js';
import { readRequest } from './read-request.js';
import type { ReadRequestDeps } from './read-request.js';
import { createRequestLog } from './request-log.js';
import type { LogFields, RequestLog } from './request-log.js';
import type { Proxy, ProxyRequest } from './request.js';
import type { Release } from './running-turns.js';
import { serveTurn } from './serve-turn.js';
import type { Leave } from './shared-turns.js';
import type { Sink } from './sink.js';
import { readSpillwayHeaders } from './spillway-headers.js';
import type { SpillwayHeaders } from './spillway-headers.js';
import type { RequestBody, Turn } from './turn.js';

/** What Spillway may do: everything, record only, or neither record nor rewrite. */
export type Mode = 'compact' | 'observe' | 'no-store';

export interface ProxyDeps
  extends
    OpenTurnDeps,
    ReadRequestDeps,
    Omit<AskedCompactionDeps, 'acts'>,
    Omit<AnswerCommandDeps, 'hash' | 'sign' | 'directory'> {
  readonly directory: HeldHistoryDeps['directory'] & AnswerCommandDeps['directory'];
  readonly mode: Mode;
  /** A failing store lets requests pass without it, or refuses them. */
  readonly storeFailure: 'pass' | 'refuse';
  readonly dialects: ReadonlyMap<DialectName, Dialect>;
  /** Null where nothing says who sent a request. */
  tenantOf(headers: Readonly<Record<string, string>>, query: string): string | null;
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
  const given = readSpillwayHeaders(request.headers);
  const dialect = request.dialect === null ? undefined : deps.dialects.get(request.dialect);
  const passWith = async (how: Omit<PassThroughOptions, 'now'>): Promise<void> => {
    await passThrough(request, sink, log, deps.send, { ...how, now: deps.now });
  };
  const pass = (action: string, body: RequestBody | null): Promise<void> =>
    passWith({
      action,
      body: body?.original ?? null,
      rewritten: body?.rewritten ?? false,
      storeUnavailable: false,
    });

  if (dialect === undefined) return pass('none', null);
  if (given.append && (given.bypass || deps.mode === 'no-store')) throw withoutHistory();
  if (given.bypass) return pass('bypass', null);
  if (deps.mode === 'no-store') return pass('none', null);

  const tenant = deps.tenantOf(request.headers, request.query);
  const { body, options, read } = await readRequest(request, dialect, given, tenant, deps);
  if (read === null || read.messages.length === 0) {
    if (options.append) throw withoutHistory();
    return pass('unread', body);
  }
  if (tenant === null) {
    if (needsLedger(options, read, deps)) throw withoutTenant();
    return pass('anonymous', body);
  }
  const { compaction } = dialect;
  if (compaction !== null && asksByPath(request, compaction) && !options.append) {
    if (deps.mode !== 'compact') return pass('none', body);
    const how = {
      action: 'none',
      body: body.original,
      rewritten: body.rewritten,
      storeUnavailable: false,
      now: deps.now,
    };
    if (await compactUpstream(request, tenant, compaction, sink, log, how, { ...deps, acts: true })) return;
  }
  const held = refersToHistory(read) ? await heldOrWhyNot(tenant, read, options, deps) : null;
  if (held === 'unknown') return pass('unread', body);
  if (held === 'store_unavailable') {
    log.add({ store: 'unavailable' });
    return passWith({ action: 'none', body: body.original, rewritten: body.rewritten, storeUnavailable: true });
  }
  const incoming = { request, dialect, read, body, options, tenant, held, closed: sink.closed };
  const claim = claimFor(incoming, deps);
  let leave: Leave | null = null;
  try {
    const turn = await openOrWhyNot(incoming, deps);
    if (turn === 'too_deep' || turn === 'store_unavailable') {
      const storeUnavailable = turn === 'store_unavailable';
      if (storeUnavailable) log.add({ store: 'unavailable' });
      const rest = deps.readsCommands ? leaveOutCommands(incoming, deps) : null;
      return await passWith({
        action: storeUnavailable ? 'none' : 'unread',
        body: rest ?? body.original,
        rewritten: rest !== null || body.rewritten,
        storeUnavailable,
      });
    }
    onOpened(turn);
    const leaveHere = deps.running.enter(turn.conversation, turn.spine.at(-1)?.id ?? '');
    leave = () => turn.leave().finally(leaveHere);
    log.add({
      conversation: turn.conversation.id,
      model: turn.read.model,
      stream: turn.read.stream,
      nodes: turn.spine.length,
    });
    await serveOpened(turn, sink, log, deps);
  } finally {
    claim?.();
    await leave?.();
  }
}

async function serveOpened(turn: Turn, sink: PatientSink, log: RequestLog, deps: ProxyDeps): Promise<void> {
  const acting = { ...deps, acts: deps.mode === 'compact' };
  const { compaction } = turn.dialect;
  if (compaction !== null && turn.read.asksToCompact && acting.acts) {
    return serveAskedCompaction(turn, compaction, sink, log, acting);
  }
  const command = commandOf(turn.spine.at(-1)?.message, deps);
  if (command !== null) return answerCompact(turn, command.userWish, sink, log, deps);
  await serveTurn(turn, sink, log, acting);
}

function commandOf(last: Message | undefined, deps: ProxyDeps): ReturnType<typeof readCompactCommand> {
  return deps.readsCommands && last !== undefined ? readCompactCommand(last) : null;
}

/** What a thin client sends is no request without the history that the ledger holds for it (SPEC 1.6). */
function withoutHistory(): SpillwayError {
  const reason = 'x-spillway-append needs messages that Spillway can read, in a mode that records them';
  return new SpillwayError('invalid_header', reason, 'x-spillway-append');
}

/** A thin client's history is in the ledger, and a command may reach no model (SPEC 4.9). */
function needsLedger(options: SpillwayHeaders, read: ReadRequest, deps: ProxyDeps): boolean {
  return options.append || commandOf(read.messages.at(-1), deps) !== null;
}

function withoutTenant(): SpillwayError {
  return new SpillwayError(
    'unauthorized',
    'a conversation here belongs to a credential, and this request has none: send one, or have the operator set SPILLWAY_USER_HEADER or SPILLWAY_TENANTS=single',
    'authorization',
  );
}

/** A thin client that appends after HEAD holds it until its turn ends (SPEC 1.6). */
function claimFor({ options, tenant, dialect }: Incoming, deps: ProxyDeps): Release | null {
  if (!options.append || options.predecessor !== null || options.conversation === null) return null;
  return deps.running.claimHead({ tenant, id: namedId(deps.hash, tenant, dialect.name, options.conversation) });
}

/**
 * What a request refers to (SPEC 1.7), or why it goes on without a turn: the ledger does not hold all of it, or failed. A thin client
 * says in another way what it follows.
 */
async function heldOrWhyNot(
  tenant: string,
  read: ReadRequest,
  options: SpillwayHeaders,
  deps: ProxyDeps,
): Promise<HeldHistory | 'unknown' | 'store_unavailable'> {
  if (options.append) {
    const reason = 'x-spillway-append and a reference to an earlier reply both say what comes before; send one of them';
    throw new SpillwayError('invalid_header', reason, 'x-spillway-append');
  }
  try {
    const held = await heldHistory(tenant, read, policyFor(options.conversation, deps.policy), deps);
    if (held !== null) return held;
  } catch (error) {
    const storeFailed = error instanceof SpillwayError && error.code === 'store_unavailable';
    const passes = deps.storeFailure === 'pass' && !needsLedger(options, read, deps);
    if (storeFailed && passes) return 'store_unavailable';
    throw error;
  }
  if (!needsLedger(options, read, deps)) return 'unknown';
  throw new SpillwayError('not_found', 'there is no record of what this request refers to', 'previous_response_id');
}

/** The turn, or why the request goes on without one: the store failed, or a message nests too deep to be stored. */
async function openOrWhyNot(incoming: Incoming, deps: ProxyDeps): Promise<Turn | 'store_unavailable' | 'too_deep'> {
  try {
    return await openTurn(incoming, deps);
  } catch (error) {
    if (needsLedger(incoming.options, incoming.read, deps)) throw error;
    if (error instanceof RangeError) return 'too_deep';
    const storeFailed = error instanceof SpillwayError && error.code === 'store_unavailable';
    if (storeFailed && deps.storeFailure === 'pass') return 'store_unavailable';
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
