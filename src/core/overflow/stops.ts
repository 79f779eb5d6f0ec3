import { isContextCode } from './codes.js';
import { NO_COUNTS, type Overflow } from './verdict.js';

/** Stop reasons that say in other words that the window was full. */
const FULL_WINDOW: ReadonlySet<string> = new Set([
  'model_length',
  'error_limit',
  'context_length',
  'context_window',
  'context_limit',
  'contextlengthreached',
]);

/** Stop reasons of a reply that was cut at some limit: the requested output, or what the window had left. */
const CUT: ReadonlySet<string> = new Set([
  'length',
  'max_tokens',
  'max_output_tokens',
  'max_completion_tokens',
  'token_limit',
]);

/**
 * The overflow that a stop reason tells of by itself (`model_context_window_exceeded` and its like, SPEC 6.2), or null.
 * The reply may have content: then it is relayed as it is and the next turn compacts first (SPEC 6.3).
 */
export function overflowFromStop(stopReason: string | null): Overflow | null {
  if (stopReason === null) return null;
  if (!isContextCode(stopReason) && !FULL_WINDOW.has(stopReason.toLowerCase())) return null;
  return { ...NO_COUNTS, kind: 'context', reason: 'stop-reason' };
}

/** Whether a stop reason says that the reply was cut at a limit of tokens. */
export function isCut(stopReason: string | null): boolean {
  return stopReason !== null && CUT.has(stopReason.toLowerCase());
}
