import { assumedWindow, budgetShare, calibrationOf, reserveTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import type { Summary } from '../core/ports.js';
import type { Reduction } from '../core/request/reduction.js';
import { compactFirst } from './compact-first.js';
import type { CompactSpine } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { dispatchOf } from './dispatch.js';
import type { Dispatch } from './dispatch.js';
import { limitTokens, mayFit, refusalOf } from './reduce.js';
import type { Reducer } from './reduce.js';
import { startsTurn } from './turn.js';
import type { Turn } from './turn.js';

/** What Spillway did to a request before it left: SPEC 5 for the first two, 7.3 and 7.4 for the last two. */
type Action = 'auto' | 'reactive' | 'tool-results' | 'checkpoint';

/** The actions in the order done, as headers and records name them; `none` when nothing was. */
export function actionText(actions: readonly Action[]): string {
  return actions.length === 0 ? 'none' : actions.join(', ');
}

/** A count of tokens and how it was come by: never mixed without the label (SPEC 9.4). */
export interface TokenFigure {
  readonly tokens: number;
  readonly kind: 'estimate' | 'bound';
}

export interface Prepared {
  readonly dispatch: Dispatch;
  /** See `actionText`. */
  readonly action: string;
  /** Of the view before anything was done, and of what is dispatched; null where nothing had to be known. */
  readonly before: TokenFigure | null;
  readonly after: TokenFigure | null;
  /** The compaction that was tried, whatever came of it. */
  readonly report: CompactionReport | null;
}

export interface PrepareDeps {
  readonly compactSpine: CompactSpine;
  readonly reducer: Reducer;
  /** Share of the window at which a turn compacts first (SPEC 5). */
  readonly trigger: number;
}

/**
 * The request as it should leave. Rendered with what its tool loop substitutes already (SPEC 7.6). Compacted first where the budget
 * has reached the trigger and the request ends in a typed user message (SPEC 5), where it is past its limit (SPEC 7.3), or where an
 * overflow came too late to be retried (SPEC 6.3). Then reduced, for this request only, if it is past its limit still (SPEC 7). While
 * the bytes fit, nothing is counted (SPEC 7.9). Rejects with `context_length_exceeded` where it cannot fit (SPEC 7.7).
 */
export async function prepare(turn: Turn, deps: PrepareDeps): Promise<Prepared> {
  const { active, marks } = turn.opened;
  const reduction = await deps.reducer.current(turn);
  const dispatch = dispatchOf(turn, active, reduction);
  const late = marks.find((mark) => mark.kind === 'overflowed' && mark.scope === (active?.id ?? ''));
  const bound = boundOf(turn, dispatch);
  const fits = (tokens: number, limits: Limits): boolean =>
    tokens <= limitTokens(limits) && (!startsTurn(turn) || budgetShare(tokens, limits) < deps.trigger);
  if (late === undefined) {
    if (turn.limits === null || (bound !== null && fits(bound.tokens, turn.limits))) return unchanged(dispatch, bound);
  }

  const tokens = estimateView(dispatch.view, await turn.measure.ruler());
  const before: TokenFigure = { tokens, kind: 'estimate' };
  const limits = turn.limits ?? limitsWithoutWindow(turn, tokens);
  if (late === undefined && fits(tokens, limits)) return unchanged(dispatch, before);
  const compacted = await compactFirst(turn, { reduction, tokens, limits, late }, deps);
  const now = compacted.summary === null ? { dispatch, tokens } : await measured(turn, compacted.summary, reduction);
  const actions: readonly Action[] = compacted.summary === null ? [] : [late === undefined ? 'auto' : 'reactive'];
  // Without a window nobody knows what would have to fit.
  if (turn.limits === null || now.tokens <= limitTokens(limits))
    return { ...prepared(now, actions, before), ...compacted };

  const summary = compacted.summary ?? active;
  const reduced = await deps.reducer.reduce(turn, summary, limits, now.tokens);
  if (reduced.tokens > limitTokens(limits) && isCertain(turn) && !(await mayFit(turn, reduced, limits)))
    throw await refusalOf(turn, reduced, limits);
  return { ...prepared(reduced, [...actions, ...reduced.steps], before), ...compacted };
}

interface Measured {
  readonly dispatch: Dispatch;
  readonly tokens: number;
}

async function measured(turn: Turn, active: Summary, reduction: Reduction): Promise<Measured> {
  const dispatch = dispatchOf(turn, active, reduction);
  return { dispatch, tokens: estimateView(dispatch.view, await turn.measure.ruler()) };
}

function prepared(now: Measured, actions: readonly Action[], before: TokenFigure): Omit<Prepared, 'report'> {
  return {
    dispatch: now.dispatch,
    action: actionText(actions),
    before,
    after: { tokens: now.tokens, kind: 'estimate' },
  };
}

/** What is only believed of a window does not refuse a request: the provider is asked (SPEC 7.7). */
function isCertain(turn: Turn): boolean {
  return turn.belief.source === 'configured' || turn.belief.source === 'learned';
}

/**
 * Limits for a model whose window nobody knows, as if a request of this many tokens (the local estimate) had just been too
 * large for it (SPEC 5.1).
 */
export function assumedLimits(
  tokens: number,
  outputCap: number | null,
  capability: number | null,
  calibration = 1,
): Limits {
  const reserve = reserveTokens(tokens * calibration, outputCap, capability);
  return { windowTokens: assumedWindow(tokens * calibration, reserve), reserveTokens: reserve, calibration };
}

/** `assumedLimits` for a turn's own model and output cap. */
export function limitsWithoutWindow(turn: Turn, tokens: number): Limits {
  return assumedLimits(tokens, turn.read.outputCap, turn.belief.capability, calibrationOf(turn.opened.match));
}

/** By the bytes of the text: a body that leaves as it came may be compressed. */
function boundOf(turn: Turn, dispatch: Dispatch): TokenFigure | null {
  const tokens = turn.measure.bound(dispatch.rewritten ? dispatch.body.byteLength : turn.body.textBytes);
  return tokens === null ? null : { tokens, kind: 'bound' };
}

function unchanged(dispatch: Dispatch, figure: TokenFigure | null): Prepared {
  return { dispatch, action: 'none', before: figure, after: figure, report: null };
}
