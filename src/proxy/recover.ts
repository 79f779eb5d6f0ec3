import { assumedWindow, reserveTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import { recogniseOverflow } from '../core/overflow/recognise.js';
import { overflowFromStop } from '../core/overflow/stops.js';
import type { Overflow } from '../core/overflow/verdict.js';
import { spineOfTurn } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { dispatchOf } from './dispatch.js';
import type { Dispatch } from './dispatch.js';
import type { Answer } from './exchange.js';
import type { Turn } from './turn.js';

/** No model that anybody talks to has a smaller window (SPEC 6.5). */
const SMALLEST_WINDOW = 1_024;

/** The overflow that an answer tells of, while nothing of it has reached the client; null if there is none. */
export async function overflowOf(turn: Turn, dispatch: Dispatch, answer: Answer): Promise<Overflow | null> {
  if (answer.kind === 'long') return null;
  const evidence = answer.kind === 'whole' ? refusalOf(answer) : answer.earlyError;
  if (evidence === null) return stoppedEmpty(answer);
  const { status } = answer.response;
  // An error that gives no reason is judged by how full the window must have been.
  const counts = turn.limits !== null && (status === 400 || status === 413);
  const estimate = counts ? estimateView(dispatch.view, await turn.measure.ruler()) * turn.limits.calibration : null;
  return recognise(turn, evidence, status, estimate);
}

/** True if an error that came inside a stream tells of an overflow. */
export function isOverflowError(turn: Turn, error: string): boolean {
  return recognise(turn, error, null, null) !== null;
}

function recognise(turn: Turn, body: string, status: number | null, estimatedTokens: number | null): Overflow | null {
  const verdict = recogniseOverflow({
    status,
    body,
    upstreamHost: new URL(turn.request.upstream.baseUrl).hostname,
    clientWrote: (text) => wroteText(turn, text),
    estimatedTokens,
    windowTokens: turn.belief.windowTokens,
  });
  return verdict.kind === 'none' ? null : verdict;
}

/** The text of an error, in a body of any status; null for an ordinary reply. */
function refusalOf(answer: Extract<Answer, { kind: 'whole' }>): string | null {
  return answer.reply?.error === null ? null : answer.text;
}

/** A reply that ended at a full window before it said anything. */
function stoppedEmpty(answer: Exclude<Answer, { kind: 'long' }>): Overflow | null {
  const reply = answer.kind === 'whole' ? answer.reply : answer.reader.reply();
  const said = reply?.messages.some((message) => message.text !== '' || message.calls.length > 0) ?? false;
  const stopReason = reply?.stopReason ?? null;
  return said || stopReason === null ? null : overflowFromStop(stopReason);
}

/** Text that the client wrote is never evidence (SPEC 6.1). */
function wroteText(turn: Turn, text: string): boolean {
  return [...turn.read.instructions, ...turn.spine.map((node) => node.message)].some(
    (message) =>
      message.text.includes(text) ||
      message.results.some((result) => result.text.includes(text)) ||
      message.calls.some((call) => call.name.includes(text) || call.arguments.includes(text)) ||
      message.media.some(
        (media) => media.name?.includes(text) === true || (!media.inline && media.data.includes(text)),
      ),
  );
}

/**
 * One recovery from an overflow (SPEC 6.4): the refused view is compacted to the limit that the provider stated, or to one
 * drawn from the refusal itself. `dispatch` is null if there was nothing to compact; then the provider's error stands.
 */
export async function recover(
  turn: Turn,
  refused: Dispatch,
  overflow: Overflow,
  compactSpine: CompactSpine,
): Promise<{ readonly dispatch: Dispatch | null; readonly report: CompactionReport }> {
  const estimate = estimateView(refused.view, await turn.measure.ruler());
  const report = await compactSpine.run(spineOfTurn(turn), {
    active: refused.view.summary,
    trigger: 'reactive',
    aim: 'window',
    limits: limitsAfter(turn, estimate, overflow),
    userWish: null,
  });
  if (report.summary === null) return { dispatch: null, report };
  const dispatch = dispatchOf(turn, report.summary);
  const changed = dispatch.view.summary?.id !== refused.view.summary?.id;
  return { dispatch: changed ? dispatch : null, report };
}

/** Limits for this recovery only (SPEC 5.1, 6.5); `estimate` is what was refused, by the local count. */
function limitsAfter(turn: Turn, estimate: number, overflow: Overflow): Limits {
  const calibration = statedCalibration(overflow, estimate) ?? turn.limits?.calibration ?? 1;
  const refused = estimate * calibration;
  const { outputCap } = turn.read;
  const { windowTokens, capability } = turn.belief;
  const reserveFor = (window: number): number =>
    Math.max(reserveTokens(window, outputCap, capability), overflow.usedOutput ?? 0);

  const stated = statedWindow(overflow, refused, reserveFor);
  const assumed = assumedWindow(refused, reserveFor(refused));
  const window = stated ?? Math.min(windowTokens ?? Number.POSITIVE_INFINITY, assumed);
  return { windowTokens: window, reserveTokens: reserveFor(window), calibration };
}

/** Provider tokens per estimated token, where the provider said how long the input was. */
function statedCalibration(overflow: Overflow, estimate: number): number | null {
  const input = overflow.usedInput ?? (overflow.kind === 'context' ? overflow.used : null);
  if (input === null || overflow.usedIsFloor || estimate <= 0) return null;
  const ratio = input / estimate;
  return ratio >= 0.5 && ratio <= 2 ? ratio : null;
}

/** The window that a stated limit means, if it is one and can be true. */
function statedWindow(
  overflow: Overflow,
  refusedTokens: number,
  reserveFor: (window: number) => number,
): number | null {
  const { limit } = overflow;
  if (limit === null || limit < SMALLEST_WINDOW) return null;
  switch (overflow.limitTrust) {
    case 'window':
    case 'tier':
      return limit < Math.max(refusedTokens + reserveFor(limit), overflow.used ?? 0) ? limit : null;
    case 'input':
      return limit < Math.max(refusedTokens, overflow.usedInput ?? overflow.used ?? 0)
        ? limit + reserveFor(limit)
        : null;
    case 'other':
    case null:
      return null;
  }
}
