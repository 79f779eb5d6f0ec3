import type { Match } from './ports.js';

/** The founding output reserve, in tokens (SPEC 7.2). */
const STANDARD_RESERVE = 16_384;

/** Bounds of the kept-token target (SPEC 5.3). */
const KEEP_SHARE = 0.1;
const KEEP_MIN = 8_000;
const KEEP_MAX = 40_000;

/** What one request may use of a window. All in tokens of the provider's count. */
export interface Limits {
  readonly windowTokens: number;
  readonly reserveTokens: number;
  /** Provider tokens per locally estimated token (SPEC 5.1). */
  readonly calibration: number;
}

/** Tokens kept free for the reply (SPEC 7.2). `capability` is the model's largest output, null if unknown. */
export function reserveTokens(windowTokens: number, outputCap: number | null, capability: number | null): number {
  const most = capability ?? Number.POSITIVE_INFINITY;
  if (outputCap !== null) return Math.min(outputCap, most);
  return Math.min(most, STANDARD_RESERVE, Math.floor(windowTokens / 4));
}

/** Tokens of a window that no estimate may use (SPEC 7.1). */
export function marginTokens(windowTokens: number): number {
  return Math.max(256, Math.floor(windowTokens / 20));
}

/** The measured/estimated ratio of the latest matched call, within 0.5 to 2; 1 without one or out of range (SPEC 5.1). */
export function calibrationOf(match: Match | null): number {
  if (match === null || match.estimatedTokens <= 0 || match.measuredTokens <= 0) return 1;
  const ratio = match.measuredTokens / match.estimatedTokens;
  return ratio >= 0.5 && ratio <= 2 ? ratio : 1;
}

/** The share of the window that an input and the reserve take (SPEC 5.1). */
export function budgetShare(inputTokens: number, limits: Limits): number {
  return (inputTokens * limits.calibration + limits.reserveTokens) / limits.windowTokens;
}

/**
 * Tokens, by the local estimate, that summary and kept history may take beside the fixed part (SPEC 5.4). Automatic
 * compaction aims below its trigger; a reactive or manual one at all that the window holds.
 */
export function roomForHistory(
  limits: Limits,
  fixedTokens: number,
  aim: { readonly trigger: number } | 'window',
): number {
  const { windowTokens, reserveTokens: reserve, calibration } = limits;
  const most = aim === 'window' ? windowTokens - marginTokens(windowTokens) : windowTokens * aim.trigger;
  return Math.floor((most - reserve) / calibration - fixedTokens);
}

/** True if the fixed part leaves so little room that compaction cannot help (SPEC 5.4). */
export function isFixedOverhead(roomTokens: number, limits: Limits): boolean {
  return roomTokens * limits.calibration < limits.windowTokens * 0.05;
}

/** Most tokens of history to keep verbatim (SPEC 5.3); an explicit setting wins over all of it. */
export function keepTokens(windowTokens: number, roomTokens: number, setting: number | null): number {
  if (setting !== null) return setting;
  const share = Math.min(KEEP_MAX, Math.max(KEEP_MIN, Math.floor(windowTokens * KEEP_SHARE)));
  return Math.max(0, Math.min(share, Math.floor(roomTokens / 2)));
}

/** Most tokens of a summary (SPEC 5.6). */
export function summaryCapTokens(windowTokens: number, roomTokens: number): number {
  return Math.max(1, Math.min(4_096, Math.floor(windowTokens / 8), Math.floor(roomTokens / 4)));
}

/** The window to work with when none is known and the provider refused without naming one (SPEC 5.1). */
export function assumedWindow(rejectedTokens: number, reserve: number): number {
  return Math.floor(rejectedTokens * 0.8) + reserve;
}

/** How much a latched head must grow before compaction is tried again (SPEC 5.11). */
export function latchGrowthTokens(windowTokens: number): number {
  return Math.max(Math.floor(windowTokens * 0.05), Math.min(4_000, Math.floor(windowTokens / 8)));
}
