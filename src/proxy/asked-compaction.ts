import type { CompactionForm } from '../dialects/dialect.js';
import { answerCompaction } from './answer-compaction.js';
import type { AnswerCompactionDeps } from './answer-compaction.js';
import { refusesCompaction } from './compaction-support.js';
import type { CompactionPlace, CompactionSupport } from './compaction-support.js';
import type { PatientSink } from './keep-alive.js';
import { passThrough } from './pass-through.js';
import type { PassThroughOptions } from './pass-through.js';
import type { RequestLog } from './request-log.js';
import type { ProxyRequest } from './request.js';
import { serveTurn } from './serve-turn.js';
import type { ServeTurnDeps } from './serve-turn.js';
import type { Turn } from './turn.js';

export interface AskedCompactionDeps extends ServeTurnDeps, AnswerCompactionDeps {
  readonly compactionSupport: CompactionSupport;
}

/** Whether a request asks for a compaction by its path. */
export function asksByPath(request: ProxyRequest, form: CompactionForm | null): boolean {
  return form !== null && request.path === `/v1${form.path}`;
}

/**
 * Has the upstream compact that is asked by a path of its own, and passes its answer on. False if it does not serve that: then nothing
 * was sent to the client.
 */
export async function compactUpstream(
  request: ProxyRequest,
  tenant: string,
  form: CompactionForm,
  sink: PatientSink,
  log: RequestLog,
  how: PassThroughOptions,
  deps: AskedCompactionDeps,
): Promise<boolean> {
  const place: CompactionPlace = { tenant, upstream: request.upstream.baseUrl, way: 'path' };
  if (deps.compactionSupport.isMissing(place)) return false;
  const passed = await passThrough(request, sink, log, deps.send, {
    ...how,
    declines: (status, body) => refusesCompaction('path', form.trigger, status, body),
  });
  if (!passed) deps.compactionSupport.miss(place);
  return passed;
}

/** A turn whose request asks to compact: served by the upstream where it knows how, by Spillway otherwise. */
export async function serveAskedCompaction(
  turn: Turn,
  form: CompactionForm,
  sink: PatientSink,
  log: RequestLog,
  deps: AskedCompactionDeps,
): Promise<void> {
  const { tenant } = turn.conversation;
  const alone = asksByPath(turn.request, form);
  const place: CompactionPlace = { tenant, upstream: turn.request.upstream.baseUrl, way: 'trigger' };
  if (!alone && !deps.compactionSupport.isMissing(place)) {
    const declines = (status: number, body: string): boolean =>
      refusesCompaction('trigger', form.trigger, status, body);
    if (await serveTurn(turn, sink, log, deps, declines)) return;
    deps.compactionSupport.miss(place);
  }
  await answerCompaction(turn, form, alone, sink, log, deps);
}
