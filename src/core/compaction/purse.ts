import type { Clock } from '../ports.js';

/** What everything done for one client request may cost together (SPEC 5.6). */
export interface Purse {
  /** Takes one call out; false when calls or time are used up. */
  take(): boolean;
  readonly callsMade: number;
  readonly callsLeft: number;
  /** Milliseconds left, never below zero. */
  remainingMs(): number;
}

export function createPurse(limits: { readonly calls: number; readonly durationMs: number }, clock: Clock): Purse {
  // Time runs from the first use: what a provider takes to answer is not spent on summaries.
  let deadline: number | null = null;
  let callsMade = 0;
  const remainingMs = (): number => {
    deadline ??= clock() + limits.durationMs;
    return Math.max(0, deadline - clock());
  };
  return {
    take() {
      if (callsMade >= limits.calls || remainingMs() === 0) return false;
      callsMade++;
      return true;
    },
    get callsMade() {
      return callsMade;
    },
    get callsLeft() {
      return limits.calls - callsMade;
    },
    remainingMs,
  };
}
