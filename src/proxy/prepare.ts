import { assumedWindow, budgetShare, calibrationOf, latchGrowthTokens, reserveTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import { isTypedUserMessage } from '../core/message.js';
import type { Mark } from '../core/ports.js';
import { spineOfTurn } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { dispatchOf } from './dispatch.js';
import type { Dispatch } from './dispatch.js';
import type { Turn } from './turn.js';

/** What Spillway did to a request before it left. */
export type Action = 'none' | 'auto' | 'reactive' | 'manual';

/** A count of tokens and how it was come by: never mixed without the label (SPEC 9.4). */
export interface TokenFigure {
  readonly tokens: number;
  readonly kind: 'estimate' | 'bound';
}

export interface Prepared {
  readonly dispatch: Dispatch;
  readonly action: Action;
  /** Of the view before anything was done, and of what is dispatched; null where nothing had to be known. */
  readonly before: TokenFigure | null;
  readonly after: TokenFigure | null;
  /** The compaction that was tried, whatever came of it. */
  readonly report: CompactionReport | null;
}

export interface PrepareSettings {
  /** Share of the window at which a turn compacts first (SPEC 5). */
  readonly trigger: number;
}

/**
 * The request as it should leave, SPEC 5 and 5.1: rendered, and compacted first where the budget has reached the trigger
 * and the request ends in a typed user message, or where an overflow came too late to be retried (SPEC 6.3). While the
 * bytes fit, nothing is counted (SPEC 7.9).
 */
export async function prepare(turn: Turn, compactSpine: CompactSpine, settings: PrepareSettings): Promise<Prepared> {
  const { active } = turn.opened;
  const dispatch = dispatchOf(turn, active);
  const late = turn.opened.marks.find((mark) => mark.kind === 'overflowed' && mark.scope === (active?.id ?? ''));
  const overflowed = late !== undefined;
  if (!overflowed && (turn.limits === null || !startsTurn(turn))) return unchanged(dispatch, boundOf(turn, dispatch));

  const bound = boundOf(turn, dispatch);
  if (
    !overflowed &&
    bound !== null &&
    turn.limits !== null &&
    budgetShare(bound.tokens, turn.limits) < settings.trigger
  ) {
    return unchanged(dispatch, bound);
  }
  const tokens = estimateView(dispatch.view, await turn.measure.ruler());
  const before: TokenFigure = { tokens, kind: 'estimate' };
  const limits = turn.limits ?? limitsWithoutWindow(turn, tokens);
  if (!overflowed && budgetShare(tokens, limits) < settings.trigger) return unchanged(dispatch, before);
  const scope = compactSpine.latchScope(turn.read.model, turn.belief.windowTokens);
  if (isLatched(marksBehind(turn, late), scope, tokens, limits)) return unchanged(dispatch, before);

  const report = await compactSpine.run(spineOfTurn(turn), {
    active,
    trigger: overflowed ? 'reactive' : 'auto',
    aim: overflowed ? 'window' : { trigger: settings.trigger },
    limits,
    userWish: null,
  });
  if (report.summary === null) {
    if (report.outcome !== 'stale') await latch(turn, scope, tokens);
    return { ...unchanged(dispatch, before), report };
  }
  const compacted = dispatchOf(turn, report.summary);
  const after: TokenFigure = { tokens: estimateView(compacted.view, await turn.measure.ruler()), kind: 'estimate' };
  return { dispatch: compacted, action: overflowed ? 'reactive' : 'auto', before, after, report };
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

function startsTurn(turn: Turn): boolean {
  const last = turn.spine.at(-1);
  return last !== undefined && !last.command && isTypedUserMessage(last.message);
}

/** By the bytes of the text: a body that leaves as it came may be compressed. */
function boundOf(turn: Turn, dispatch: Dispatch): TokenFigure | null {
  const tokens = turn.measure.bound(dispatch.rewritten ? dispatch.body.byteLength : turn.body.textBytes);
  return tokens === null ? null : { tokens, kind: 'bound' };
}

function unchanged(dispatch: Dispatch, figure: TokenFigure | null): Prepared {
  return { dispatch, action: 'none', before: figure, after: figure, report: null };
}

/**
 * SPEC 5.11: what did not help here is not tried again by itself on this spine until it has grown or something else
 * changed.
 */
function isLatched(marks: readonly Mark[], scope: string, tokens: number, limits: Limits): boolean {
  return marks.some(
    (mark) =>
      mark.kind === 'latched' && mark.scope === scope && tokens < mark.tokens + latchGrowthTokens(limits.windowTokens),
  );
}

/** An overflow that came too late is tried whatever failed before it, and once: what fails after it latches again. */
function marksBehind(turn: Turn, late: Mark | undefined): readonly Mark[] {
  const place = (mark: Mark): number => turn.spine.findIndex((node) => node.id === mark.head);
  return late === undefined ? turn.opened.marks : turn.opened.marks.filter((mark) => place(mark) > place(late));
}

/** A mark that cannot be written costs a repeated attempt, never the request. */
async function latch(turn: Turn, scope: string, tokens: number): Promise<void> {
  const head = turn.spine.at(-1)?.id;
  if (head === undefined) return;
  await turn.writer.setMark({ kind: 'latched', head, tokens, scope }).catch(() => undefined);
}
