import { marginTokens } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import type { Clock, UniqueId } from '../core/ports.js';
import { requestHeaders, responseHeaders } from '../upstream/headers.js';
import { requestUrl } from '../upstream/request-url.js';
import type { SendUpstream } from '../upstream/upstream.js';
import type { CompactSpine } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { dispatchOf } from './dispatch.js';
import { exchange } from './exchange.js';
import type { Answer } from './exchange.js';
import { prepare } from './prepare.js';
import type { Prepared } from './prepare.js';
import type { RecordCall } from './record-call.js';
import { overflowOf, recover } from './recover.js';
import { relay } from './relay.js';
import type { LogFields, RequestLog } from './request-log.js';
import { infoHeaders } from './response-info.js';
import type { Sink } from './sink.js';
import type { Turn } from './turn.js';

export interface ServeTurnDeps {
  readonly send: SendUpstream;
  readonly compactSpine: CompactSpine;
  readonly recordCall: RecordCall;
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
 * once (SPEC 6.4), relayed and recorded. Rejects only while nothing was sent to the client.
 */
export async function serveTurn(turn: Turn, sink: Sink, log: RequestLog, deps: ServeTurnDeps): Promise<void> {
  const prepared = deps.acts ? await prepare(turn, deps.compactSpine, { trigger: deps.trigger }) : asItCame(turn);
  if (prepared.report !== null) log.add(reportFields(prepared.report));
  const first = attempt(turn, prepared, deps);
  const answer = await ask(turn, first, deps);
  const overflow = deps.acts ? await overflowOf(turn, prepared.dispatch, answer) : null;
  if (overflow === null) return pass(turn, first, answer, sink, log, deps);

  const { dispatch, report } = await recover(turn, prepared.dispatch, overflow, deps.compactSpine);
  log.add({ overflow: overflow.reason, ...reportFields(report) });
  if (dispatch === null) return pass(turn, first, answer, sink, log, deps);
  if (answer.kind === 'stream') await answer.reader.stop();
  await deps.recordCall(turn, first, { outcome: 'failed', reply: null, lateError: null }, answer.response.status);
  const tokens = estimateView(dispatch.view, await turn.measure.ruler());
  const second = attempt(
    turn,
    { dispatch, action: 'reactive', before: prepared.before, after: { tokens, kind: 'estimate' }, report },
    deps,
  );
  return pass(turn, second, await ask(turn, second, deps), sink, log, deps);
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
    await deps.recordCall(turn, sent, { outcome, reply: null, lateError: null }, null);
    throw error;
  }
}

async function pass(
  turn: Turn,
  sent: Attempt,
  answer: Answer,
  sink: Sink,
  log: RequestLog,
  deps: ServeTurnDeps,
): Promise<void> {
  const { prepared } = sent;
  const { limits, spine } = turn;
  const head = spine.at(-1)?.id ?? null;
  const { status, headers } = answer.response;
  const { hidesUsage } = prepared.dispatch;
  const info = infoHeaders({
    conversation: turn.conversation.id,
    head,
    call: sent.callId,
    action: prepared.action,
    prepared,
    limitTokens:
      limits === null ? null : limits.windowTokens - limits.reserveTokens - marginTokens(limits.windowTokens),
    overheadMs: sent.overheadMs,
    storeUnavailable: false,
  });
  sink.start(status, [...responseHeaders(headers, { rewritten: hidesUsage }), ...info]);
  const relayed = await relay(answer, sink, {
    hidesUsage,
    record: (result) => deps.recordCall(turn, sent, result, status),
  });
  log.add({
    status,
    head,
    call: sent.callId,
    action: prepared.action,
    tokensBefore: prepared.before?.tokens ?? null,
    tokensAfter: prepared.after?.tokens ?? null,
    outcome: relayed.outcome,
    inputTokens: relayed.reply?.usage?.inputTokens ?? null,
    outputTokens: relayed.reply?.usage?.outputTokens ?? null,
    overheadMs: Math.round(sent.overheadMs * 10) / 10,
  });
}
