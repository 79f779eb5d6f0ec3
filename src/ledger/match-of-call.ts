import { CUT_PROMPT } from '../core/overflow/usage.js';
import type { Call, Match } from '../core/ports.js';

/**
 * What a call teaches about the estimator, or null: it must have finished, and both numbers must be there. Zero usage is
 * unknown usage, usage without its matching estimate calibrates nothing (SPEC 9.4), nor does that of a prompt that was cut.
 */
export function matchOfCall(call: Call): Match | null {
  const estimatedTokens = call.estimatedTokens ?? 0;
  const measuredTokens = call.usage?.inputTokens ?? 0;
  if (call.outcome !== 'complete' || call.overflow === CUT_PROMPT || estimatedTokens <= 0 || measuredTokens <= 0)
    return null;
  return { estimatedTokens, measuredTokens };
}
