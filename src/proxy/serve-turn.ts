import { marginTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import type { Clock, UniqueId } from '../core/ports.js';
import { requestHeaders, responseHeaders } from '../upstream/headers.js';
import { requestUrl } from '../upstream/request-url.js';
import type { SendUpstream } from '../upstream/upstream.js';
import type { CompactSpine } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { dispatchOf, replacedIn } from './dispatch.js';
import type { Dispatch } from './dispatch.js';
import { exchange } from './exchange.js';
import type { Answer } from './exchange.js';
import { signsOfLife } from './keep-alive.js';
import type { PatientSink } from './keep-alive.js';
import type { ModelWindows } from './model-windows.js';
import { prepare } from './prepare.js';
import type { Prepared } from './prepare.js';
import type { RecordCall, Recorded } from './record-call.js';
import { recover } from './recover.js';
import type { Reducer } from './reduce.js';
import { relay } from './relay.js';
import type { LogFields, RequestLog } from './request-log.js';
import { infoHeaders } from './response-info.js';
import { overflowAfter, overflowBefore } from './see-overflow.js';
import type { SeenOverflow } from './see-overflow.js';
import type { Sink } from './sink.js';
import type { Turn } from './turn.js';

export interface ServeTurnDeps {
  readonly send: SendUpstream;
  readonly compactSpine: CompactSpine;
  readonly reducer: Reducer;
  readonly recordCall: RecordCall;
  readonly windows: Pick<ModelWindows, 'learn' | 'succeeded'>;
  readonly uniqueId: UniqueId;
  readonly clock: Clock;
  /** Monotonic milliseconds, the clock of `ProxyRequest.arrivedAt`. */
  now(): number;
  readonly trigger: number;
  /** False: nothing is ever rewritten or retried, only recorded. */
  readonly acts: boolean;
}

/** One upstream request of a turn. */
export interface Attempt {
  readonly prepared: Prepared;
  readonly callId: string;
  readonly startedAt: number;
  /** Milliseconds between the client's request and this one, summaries included. */
  readonly overheadMs: number;
}

/**
 * The life of a turn from its open ledger to the end of its response: prepared, sent, recovered from an overflow at most
 * once (SPEC 6.4), relayed and recorded. Rejects only while nothing was sent to the client. False: the upstream's error is one that
 * `declines` knows, it was recorded, and nothing was sent to the client.
 */
export async function serveTurn(
  turn: Turn,
  sink: PatientSink,
  log: RequestLog,
  deps: ServeTurnDeps,
  declines: Declines = () => false,
): Promise<boolean> {
  const signs = signsOfLife(turn, deps);
  const prepared = deps.acts ? await sink.waitFor(prepareFor(turn, deps), signs) : asItCame(turn);
  if (prepared.report !== null) log.add(reportFields(prepared.report));
  const first = attempt(turn, prepared, deps);
  const answer = await ask(turn, first, deps);
  if (isDeclined(answer, declines)) return decline(turn, first, answer, deps);
  const seen = await lookFor(turn, prepared.dispatch, answer, log, deps);
  const judged = { seen, recoveredFrom: null };
  if (seen === null || !seen.canRetry || !deps.acts) return pass(turn, first, answer, judged, sink, log, deps);

  const { overflow } = seen;
  const recordRefused = (): Promise<Recorded> => {
    const relayed = { outcome: 'failed', reply: null, lateError: null, unread: null } as const;
    return deps.recordCall(turn, first, { relayed, status: answer.response.status, overflow });
  };
  const recovery = sink.waitFor(recover(turn, prepared.dispatch, overflow, deps), signs);
  // The client may leave while it goes on.
  const { retry, report } = await recovery.catch(async (error: unknown) => {
    await recordRefused();
    throw error;
  });
  log.add(reportFields(report));
  if (retry === null) return pass(turn, first, answer, judged, sink, log, deps);
  await recordRefused();
  if (answer.kind === 'stream') await answer.reader.stop();
  const { dispatch, action } = retry;
  const ruler = await turn.measure.ruler();
  const estimate = (of: Dispatch) => ({ tokens: estimateView(of.view, ruler), kind: 'estimate' }) as const;
  const [before, after] = [estimate(prepared.dispatch), estimate(dispatch)];
  const second = attempt(turn, { dispatch, action, before, after, report }, deps);
  const again = await ask(turn, second, deps);
  if (isDeclined(again, declines)) return decline(turn, second, again, deps);
  const judgedAgain = { seen: await lookFor(turn, dispatch, again, log, deps), recoveredFrom: overflow.reason };
  return pass(turn, second, again, judgedAgain, sink, log, deps);
}

/** Whether an error of the upstream is not to be passed on. */
type Declines = (status: number, body: string) => boolean;

function isDeclined({ response, ...answer }: Answer, declines: Declines): boolean {
  return answer.kind === 'whole' && response.status >= 400 && declines(response.status, answer.text);
}

async function decline(turn: Turn, sent: Attempt, answer: Answer, deps: ServeTurnDeps): Promise<false> {
  const relayed = { outcome: 'failed', reply: null, lateError: null, unread: null } as const;
  await deps.recordCall(turn, sent, { relayed, status: answer.response.status, overflow: null });
  return false;
}

/** What is about to be compacted is not compacted first, and is not refused for its length. */
async function prepareFor(turn: Turn, deps: ServeTurnDeps): Promise<Prepared> {
  if (!turn.read.asksToCompact) return prepare(turn, deps);
  const dispatch = dispatchOf(turn, turn.opened.active, await deps.reducer.current(turn));
  return { dispatch, action: 'none', before: null, after: null, report: null };
}

/** An overflow seen before anything was relayed, and learned from whatever comes of it (SPEC 6.4). */
async function lookFor(
  turn: Turn,
  dispatch: Dispatch,
  answer: Answer,
  log: RequestLog,
  deps: ServeTurnDeps,
): Promise<SeenOverflow | null> {
  const seen = await orNull(overflowBefore(turn, dispatch, answer), log);
  if (seen !== null) await deps.windows.learn(turn, seen);
  return seen;
}

/** An answer that cannot be judged is passed on as it is. */
function orNull<T>(judging: Promise<T | null>, log: RequestLog): Promise<T | null> {
  return judging.catch((error: unknown) => {
    log.fail(error);
    return null;
  });
}

/** What became of the last compaction that was tried (SPEC 5.10). */
function reportFields({ outcome, reason }: CompactionReport): LogFields {
  return { compaction: outcome, compactionReason: reason };
}

/** Observe-only: measured as far as the bytes tell, and sent as it came. */
function asItCame(turn: Turn): Prepared {
  const dispatch = dispatchOf({ ...turn, spine: turn.spine.map((node) => ({ ...node, command: false })) }, null);
  return { dispatch, action: 'none', before: null, after: null, report: null };
}

function attempt(turn: Turn, prepared: Prepared, deps: ServeTurnDeps): Attempt {
  return {
    prepared,
    callId: `call_${deps.uniqueId()}`,
    startedAt: deps.clock(),
    overheadMs: deps.now() - turn.request.arrivedAt,
  };
}

/** Sends an attempt; one that gets no answer is recorded before it rejects. */
async function ask(turn: Turn, sent: Attempt, deps: ServeTurnDeps): Promise<Answer> {
  const { request, dialect, read } = turn;
  const { dispatch } = sent.prepared;
  const upstream = {
    method: request.method,
    url: requestUrl(request.upstream.baseUrl, request.path, request.query),
    headers: requestHeaders(request.headers, {
      apiKey: request.upstream.apiKey,
      readsReply: true,
      rewritten: dispatch.rewritten,
    }),
    body: dispatch.body,
    signal: turn.closed,
  };
  try {
    return await exchange(deps.send, upstream, dialect, read.choices);
  } catch (error) {
    const outcome = turn.closed.aborted ? 'cancelled' : 'failed';
    const relayed = { outcome, reply: null, lateError: null, unread: null } as const;
    await deps.recordCall(turn, sent, { relayed, status: null, overflow: null });
    throw error;
  }
}

/** What is known of an answer when it is passed on. */
interface Judged {
  /** The overflow that it tells of, or null. */
  readonly seen: SeenOverflow | null;
  /** The rule of the overflow that this attempt recovers from, or null. */
  readonly recoveredFrom: string | null;
}

async function pass(
  turn: Turn,
  sent: Attempt,
  answer: Answer,
  judged: Judged,
  sink: Sink,
  log: RequestLog,
  deps: ServeTurnDeps,
): Promise<true> {
  const { prepared } = sent;
  const { limits, spine } = turn;
  let head = spine.at(-1)?.id ?? null;
  const { status, headers } = answer.response;
  const { hidesUsage } = prepared.dispatch;
  let { seen } = judged;
  const start = (recorded: Recorded | null): void => {
    head = recorded?.reply ?? head;
    const info = infoHeaders({
      conversation: turn.conversation.id,
      head,
      call: sent.callId,
      action: prepared.action,
      prepared: { ...prepared, replaced: replacedIn(prepared.dispatch) },
      overflow: seen?.overflow.reason ?? judged.recoveredFrom,
      limitTokens: limits === null ? null : inputLimit(limits),
      overheadMs: sent.overheadMs,
      storeUnavailable: recorded?.isStored === false,
    });
    sink.start(status, [...responseHeaders(headers, { rewritten: hidesUsage }), ...info]);
  };
  const relayed = await relay(answer, sink, {
    hidesUsage,
    async record(result) {
      if (seen === null && answer.kind !== 'whole') {
        seen = await orNull(overflowAfter(turn, prepared.dispatch, result.reply, result.lateError), log);
        if (seen !== null) await deps.windows.learn(turn, seen);
      }
      return deps.recordCall(turn, sent, { relayed: result, status, overflow: seen?.overflow ?? null });
    },
    start,
  });
  if (relayed.outcome === 'complete' && relayed.reply !== null) {
    deps.windows.succeeded(turn, seen === null ? relayed.reply.usage : null);
    if (relayed.reply.messages.every((message) => message.calls.length === 0)) await deps.reducer.end(turn);
  }
  log.add({
    status,
    head,
    call: sent.callId,
    action: prepared.action,
    overflow: seen?.overflow.reason ?? judged.recoveredFrom,
    tokensBefore: prepared.before?.tokens ?? null,
    tokensAfter: prepared.after?.tokens ?? null,
    outcome: relayed.outcome,
    ...(relayed.unread === null ? {} : { unread: relayed.unread }),
    inputTokens: relayed.reply?.usage?.inputTokens ?? null,
    outputTokens: relayed.reply?.usage?.outputTokens ?? null,
    overheadMs: Math.round(sent.overheadMs * 10) / 10,
  });
  return true;
}

/** Most input tokens that fit beside the reserve and the margin; none where a client's output cap alone fills the window. */
function inputLimit({ windowTokens, reserveTokens }: Limits): number {
  return Math.max(0, windowTokens - reserveTokens - marginTokens(windowTokens));
}
