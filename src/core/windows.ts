import type { Overflow } from './overflow/verdict.js';

/** Where a window holds: nothing learned for one tenant or upstream is believed of another (SPEC 1.1, 6.5). */
export interface WindowScope {
  readonly tenant: string;
  /** Base URL of the upstream, without credentials. */
  readonly upstream: string;
}

export interface WindowKey extends WindowScope {
  readonly model: string;
}

/** A window that a provider's answers gave away, in tokens of its own count (SPEC 6.5). */
export interface LearnedWindow extends WindowKey {
  readonly tokens: number;
  /** `stated` in an error, drawn from the `usage` of a prompt that was cut, or raised by a larger `success`. */
  readonly source: 'stated' | 'usage' | 'success';
  /** The rule of recognition that saw the overflow. */
  readonly rule: string;
  readonly learnedAt: number;
  /** From this moment on it is as if it had never been learned. */
  readonly expiresAt: number;
}

/** What each source says of one model's window, in tokens; null where it says nothing. */
export interface WindowOpinions {
  readonly configured: number | null;
  readonly learned: number | null;
  readonly discovered: number | null;
  readonly catalogue: number | null;
}

export type WindowSource = keyof WindowOpinions | 'unknown';

/** The sources, the one that is believed before all others first (SPEC 6.5). */
const ORDER: readonly (keyof WindowOpinions)[] = ['configured', 'learned', 'discovered', 'catalogue'];

/** No model that anybody talks to has a smaller window (SPEC 6.5). */
export const SMALLEST_WINDOW = 1_024;

/** A catalogue may lag behind a model's growth, but not by more than this. */
const MOST_TIMES_CATALOGUE = 2;

export interface BelievedWindow {
  readonly tokens: number | null;
  readonly source: WindowSource;
}

export function believe(opinions: WindowOpinions): BelievedWindow {
  for (const source of ORDER) {
    const tokens = opinions[source];
    if (tokens !== null) return { tokens, source };
  }
  return { tokens: null, source: 'unknown' };
}

/**
 * The window that an overflow proves, or null: only a limit on input and output together, plausible, and below what was
 * refused, by the provider's own count or else by `estimatedTokens`, the calibrated estimate (SPEC 6.5).
 */
export function windowFrom(
  overflow: Overflow,
  estimatedTokens: number | null,
  catalogueTokens: number | null,
): number | null {
  const { limit, limitTrust, used } = overflow;
  const refused = used ?? estimatedTokens;
  if (overflow.kind === 'bytes' || limitTrust !== 'window' || limit === null || refused === null) return null;
  return limit < refused && isPlausible(limit, catalogueTokens) ? limit : null;
}

/** Whether a number can be a model's window at all, whoever says so. */
export function isPlausible(tokens: number, catalogueTokens: number | null): boolean {
  const most = catalogueTokens === null ? Number.MAX_SAFE_INTEGER : catalogueTokens * MOST_TIMES_CATALOGUE;
  return Number.isSafeInteger(tokens) && tokens >= SMALLEST_WINDOW && tokens <= most;
}

/** Which of two for the same key holds: the smaller, while it has not expired (SPEC 6.5). */
export function narrower(known: LearnedWindow | null, fresh: LearnedWindow, now: number): LearnedWindow {
  return known !== null && known.expiresAt > now && known.tokens < fresh.tokens ? known : fresh;
}

/** The window after a request and its reply took `tokens` of it: never less than that. Its expiry stays. */
export function widened(known: LearnedWindow, tokens: number, now: number): LearnedWindow {
  return tokens > known.tokens ? { ...known, tokens, source: 'success', learnedAt: now } : known;
}
