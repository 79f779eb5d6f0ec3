import { assumedWindow, calibrationOf, reserveTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import type { Overflow } from '../core/overflow/verdict.js';
import { SMALLEST_WINDOW } from '../core/windows.js';
import { spineOfTurn } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { dispatchOf } from './dispatch.js';
import type { Dispatch } from './dispatch.js';
import { actionText } from './prepare.js';
import type { PrepareDeps } from './prepare.js';
import { limitTokens } from './reduce.js';
import type { Turn } from './turn.js';

export interface Retry {
  readonly dispatch: Dispatch;
  readonly action: string;
  /** Local estimate of what is dispatched. */
  readonly tokens: number;
}

/**
 * One recovery from an overflow (SPEC 6.4): the refused view is compacted to the limit that the provider stated, or to one
 * drawn from the refusal itself, and reduced for this request where that does not do. `retry` is null if nothing could be
 * taken away; then the provider's error stands.
 */
export async function recover(
  turn: Turn,
  refused: Dispatch,
  overflow: Overflow,
  deps: Pick<PrepareDeps, 'compactSpine' | 'reducer'>,
): Promise<{ readonly retry: Retry | null; readonly report: CompactionReport }> {
  const estimate = estimateView(refused.view, await turn.measure.ruler());
  const limits = limitsAfter(turn, estimate, overflow);
  const report = await deps.compactSpine.run(spineOfTurn(turn), {
    active: refused.view.summary,
    reduction: refused.view.reduction,
    trigger: 'reactive',
    waits: true,
    aim: 'window',
    limits,
    userWish: null,
  });
  const active = report.summary ?? refused.view.summary;
  const compacted = dispatchOf(turn, active, refused.view.reduction);
  const tokens = estimateView(compacted.view, await turn.measure.ruler());
  const done = report.summary === null ? [] : (['reactive'] as const);
  if (done.length > 0 && tokens <= limitTokens(limits)) {
    return { retry: { dispatch: compacted, action: actionText(done), tokens }, report };
  }
  const reduced = await deps.reducer.reduce(turn, active, limits, tokens);
  const isSmaller = reduced.tokens < estimate;
  const action = actionText([...done, ...reduced.steps]);
  return { retry: isSmaller ? { dispatch: reduced.dispatch, action, tokens: reduced.tokens } : null, report };
}

/** Limits for this recovery only (SPEC 5.1, 6.5); `estimate` is what was refused, by the local count. */
function limitsAfter(turn: Turn, estimate: number, overflow: Overflow): Limits {
  const calibration = calibrationAfter(overflow, estimate, calibrationOf(turn.opened.match));
  const refused = estimate * calibration;
  const { outputCap } = turn.read;
  const { windowTokens, capability } = turn.belief;
  // A provider that counts the output counts it as it was asked for, whatever the model can give, and the client's cap is
  // never changed (SPEC 6.4, 7.2): where it fills the window, no room is left to compact to.
  const most = overflow.kind === 'fit' ? null : capability;
  const reserveFor = (window: number): number =>
    Math.max(reserveTokens(window, outputCap, most), overflow.usedOutput ?? 0);
  const assumed = Math.min(windowTokens ?? Number.POSITIVE_INFINITY, assumedWindow(refused, reserveFor(refused)));
  const window = statedWindow(overflow, refused, reserveFor) ?? windowByExcess(overflow, refused) ?? assumed;
  // Far off the estimate, the window is told in estimated tokens: bounds in tokens would mean nothing in the provider's.
  const scale = calibration > MOST_CALIBRATION ? calibration : 1;
  return {
    windowTokens: Math.floor(window / scale),
    reserveTokens: Math.floor(reserveFor(window) / scale),
    calibration: calibration / scale,
  };
}

/** As far as one tokenizer's count lies above another's. */
const MOST_CALIBRATION = 2;

/**
 * Provider tokens per estimated token. What the provider said of the input wins, however far above the estimate: it refused
 * this very request, so there was more in it than is counted here. A floor only raises what was believed before.
 */
function calibrationAfter(overflow: Overflow, estimate: number, believed: number): number {
  const input = overflow.usedInput ?? (overflow.kind === 'context' ? overflow.used : null);
  if (input === null || estimate <= 0 || input < estimate / 2) return believed;
  return overflow.usedIsFloor ? Math.max(input / estimate, believed) : input / estimate;
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

/** The window that is left where only the excess over it was stated. */
function windowByExcess({ excess }: Overflow, refusedTokens: number): number | null {
  const window = Math.floor(refusedTokens - (excess ?? 0));
  return excess !== null && excess > 0 && window >= SMALLEST_WINDOW ? window : null;
}
