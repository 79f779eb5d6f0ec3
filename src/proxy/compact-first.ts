import { budgetShare, latchGrowthTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import type { Mark, Summary } from '../core/ports.js';
import { render } from '../core/render.js';
import type { Reduction } from '../core/request/reduction.js';
import { spineOfTurn } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import type { CompactionReport } from './compactor.js';
import { limitTokens } from './reduce.js';
import { openerOf, startsTurn } from './turn.js';
import type { Turn } from './turn.js';

/** A turn that should be compacted before it leaves. */
export interface Due {
  /** What its view substitutes already beside the active summary. */
  readonly reduction: Reduction;
  /** Local estimate of that view. */
  readonly tokens: number;
  readonly limits: Limits;
  /** The mark of an overflow that came too late to be retried (SPEC 6.3), if that is why. */
  readonly late: Mark | undefined;
}

export interface CompactFirstDeps {
  readonly compactSpine: CompactSpine;
  /** Share of the window at which a turn compacts first (SPEC 5). */
  readonly trigger: number;
}

/**
 * Durable compaction of the completed turns, unless it is known not to help here. What fails leaves a mark, and so does what leaves the
 * budget at the trigger or above, so that it is not tried again before the history has grown (SPEC 5.11). Report null: not tried.
 */
export async function compactFirst(
  turn: Turn,
  due: Due,
  deps: CompactFirstDeps,
): Promise<{ readonly report: CompactionReport | null; readonly summary: Summary | null }> {
  const { reduction, limits, late } = due;
  const { active } = turn.opened;
  const ruler = await turn.measure.ruler();
  // Growth is the history's: what a tool loop shortens for its requests plays no part in it.
  const historyTokens = (summary: Summary | null): number => estimateView(render(turn.spine, summary), ruler);
  const scopeOf = (loop: string | null): string =>
    deps.compactSpine.latchScope(turn.read.model, turn.belief.windowTokens, loop);
  const everywhere = scopeOf(null);
  const inThisLoop = scopeOf(openerOf(turn)?.id ?? null);
  if (isLatched(marksBehind(turn, late), [everywhere, inThisLoop], historyTokens(active), limits)) {
    return { report: null, summary: null };
  }
  const report = await deps.compactSpine.run(spineOfTurn(turn), {
    active,
    reduction,
    trigger: late === undefined ? 'auto' : 'reactive',
    waits: late !== undefined || due.tokens > limitTokens(limits),
    aim: late === undefined && startsTurn(turn) ? { trigger: deps.trigger } : 'window',
    limits,
    userWish: null,
  });
  const { summary } = report;
  if (summary === null) {
    if (saysItCannotHelp(report, turn, late)) await latch(turn, everywhere, historyTokens(active));
  } else if (budgetShare(estimateView(render(turn.spine, summary, reduction), ruler), limits) >= deps.trigger) {
    // What is left of an open loop says nothing of the next turn, which can cover it whole.
    await latch(turn, startsTurn(turn) ? everywhere : inThisLoop, historyTokens(summary));
  }
  return { report, summary };
}

function saysItCannotHelp(report: CompactionReport, turn: Turn, late: Mark | undefined): boolean {
  switch (report.outcome) {
    case 'no_op':
      // In the middle of a tool loop it costs nothing, and would hold back the next turn, which makes this one coverable.
      return late !== undefined || startsTurn(turn);
    case 'failed':
      return report.reason !== 'busy';
    case 'rejected':
    case 'fixed_overhead':
      return true;
    case 'compacted':
    case 'stale':
      return false;
  }
}

/**
 * SPEC 5.11: what did not help here is not tried again by itself on this spine until it has grown or something else
 * changed.
 */
function isLatched(marks: readonly Mark[], scopes: readonly string[], tokens: number, limits: Limits): boolean {
  return marks.some(
    (mark) =>
      mark.kind === 'latched' &&
      scopes.includes(mark.scope) &&
      tokens < mark.tokens + latchGrowthTokens(limits.windowTokens),
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
