import type { Usage } from '../message.js';
import { judgeLimit } from './limits.js';
import { isCut, overflowFromStop } from './stops.js';
import { NO_COUNTS, type Overflow } from './verdict.js';

/** A reply that came with a success, once it has ended. */
export interface UsageEvidence {
  /** Calibrated estimate of the dispatched request, in tokens; null if it was not counted. */
  readonly estimatedTokens: number | null;
  /** The model's window as believed, in tokens; null if unknown. */
  readonly windowTokens: number | null;
  readonly usage: Usage | null;
  /** As the provider sent it; null if it sent none. */
  readonly stopReason: string | null;
  /** Whether the reply has any text, reasoning, refusal, tool call or media. */
  readonly hasContent: boolean;
  /** The output cap that was dispatched, in tokens; null if there was none. */
  readonly requestedOutputTokens: number | null;
  /** Host of the upstream, with its port if it has one. */
  readonly upstreamHost: string | null;
}

/**
 * `now`: the reply is none, and the request may be retried if nothing of it was relayed (SPEC 6.3).
 * `next-turn`: the reply stands, or nothing better is to be had; the next turn compacts first.
 */
export type UsageVerdict = (Overflow & { readonly when: 'now' | 'next-turn' }) | { readonly kind: 'none' };

/** The rule by which a prompt was cut in silence: its reported input is of what was left of it, so nothing is to be measured by it. */
export const CUT_PROMPT = 'cut-prompt';

/** How full a window is when only the rounding of two tokenizers is left in it. */
const FULL = 0.98;
/** A reply that used less of its cap than this was cut by something else. */
const FAR_BELOW_CAP = 0.5;
/** Reported input below this share of the estimate means that the prompt was cut; tokenizers differ by less. */
const CUT_SHARE = 0.6;
/** Prompts up to this size are not judged: their estimates are mostly overhead. */
const LEAST_JUDGED_TOKENS = 2_000;

/** What the end of a successful reply tells of an overflow that nobody reported (SPEC 6.2). */
export function overflowFromUsage(evidence: UsageEvidence): UsageVerdict {
  const { estimatedTokens: estimate, windowTokens: window, hasContent } = evidence;
  // Zero is how some servers say that they did not count (SPEC 9.4).
  const input = evidence.usage?.inputTokens || null;
  const output = evidence.usage?.outputTokens ?? null;

  const stop = overflowFromStop(evidence.stopReason);
  if (stop !== null) return { ...stop, used: input, when: hasContent ? 'next-turn' : 'now' };

  if (isCut(evidence.stopReason) && window !== null && input !== null && input + (output ?? 0) >= FULL * window) {
    const cap = evidence.requestedOutputTokens;
    if (!hasContent || cap === null || (output !== null && output < FAR_BELOW_CAP * cap)) {
      return verdict('full-window', input, hasContent ? 'next-turn' : 'now');
    }
  }
  if (!hasContent && estimate !== null && window !== null && estimate > window)
    return verdict('empty-reply', input, 'now');
  if (input !== null && window !== null && input > window) return verdict('above-window', input, 'next-turn');
  if (input !== null && estimate !== null && estimate > LEAST_JUDGED_TOKENS && input < CUT_SHARE * estimate) {
    // What was reported is what was left of the prompt: the use is not known.
    const limit = cutsToHalf(evidence.upstreamHost) ? windowOfHalf(input) : null;
    return {
      ...judgeLimit({ ...NO_COUNTS, limit, limitTrust: 'window' }, estimate),
      kind: 'context',
      reason: CUT_PROMPT,
      when: 'next-turn',
    };
  }
  return { kind: 'none' };
}

function verdict(reason: string, used: number | null, when: 'now' | 'next-turn'): UsageVerdict {
  return { ...NO_COUNTS, kind: 'context', used, reason, when };
}

/** Ollama cuts a prompt that is too long to half of its window and two tokens. */
function cutsToHalf(host: string | null): boolean {
  return host !== null && (/(?:^|[.-])ollama(?:[.:-]|$)/i.test(host) || host.endsWith(':11434'));
}

/** The window behind such a cut; windows are set in whole multiples of 1,024. */
function windowOfHalf(reported: number): number {
  return Math.max(1, Math.round((2 * (reported - 2)) / 1_024)) * 1_024;
}
