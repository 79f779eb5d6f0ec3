import type { Call, Match } from '../core/ports.js';

/**
 * What a call teaches about the estimator, or null: it must have finished, and both numbers must be there. Zero usage is
 * unknown usage, and usage without its matching estimate calibrates nothing (SPEC 9.4).
 */
export function matchOfCall(call: Call): Match | null {
  const estimatedTokens = call.estimatedTokens ?? 0;
  const measuredTokens = call.usage?.inputTokens ?? 0;
  if (call.outcome !== 'complete' || estimatedTokens <= 0 || measuredTokens <= 0) return null;
  return { estimatedTokens, measuredTokens };
}
