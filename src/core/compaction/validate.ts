import type { SummaryResponse } from '../ports.js';
import { SUMMARY_HEADINGS } from './headings.js';

/** Why a summary was refused. The words are stable: they stand in reports and logs. */
export type RejectionReason =
  | 'empty'
  | 'stopped_early'
  | 'tool_call'
  | 'reasoning_only'
  | 'missing_headings'
  | 'over_cap'
  | 'not_smaller';

/** What a summariser said. */
export type SummaryText = Extract<SummaryResponse, { readonly kind: 'text' }>;

/** Text that begins like a call of a tool in one of the textual forms models fall into. */
const TOOL_CALL_TEXT =
  /^\s*(?:<(?:tool_call|function_call|invoke|function=)|\{\s*"(?:name|tool|function)"\s*:|\[TOOL_CALLS\])/;

/** Judges a summary's text before anything is rendered with it (SPEC 5.7); null when it is good. */
export function rejectionOf(response: SummaryText, tokens: number, capTokens: number): RejectionReason | null {
  return textRejectionOf(response, tokens, capTokens) ?? (hasAllHeadings(response.text) ? null : 'missing_headings');
}

/** The part of it that holds for every text a summariser writes, whatever its form. */
export function textRejectionOf(response: SummaryText, tokens: number, capTokens: number): RejectionReason | null {
  if (response.calledTool || TOOL_CALL_TEXT.test(response.text)) return 'tool_call';
  if (response.text.trim() === '') return response.reasoningOnly ? 'reasoning_only' : 'empty';
  if (!response.stopped) return 'stopped_early';
  return tokens > capTokens ? 'over_cap' : null;
}

/** Headings in their order, each at the start of a line. */
function hasAllHeadings(text: string): boolean {
  const lines = text.split('\n').map((line) => line.trim());
  let from = 0;
  return SUMMARY_HEADINGS.every((heading) => {
    const at = lines.indexOf(heading, from);
    from = at + 1;
    return at >= 0;
  });
}

/**
 * True if a summary saves enough: strictly smaller than what it replaces, and by at least `minimumGain` of it (SPEC 5.7).
 * Both in tokens of one estimator.
 */
export function savesEnough(replacedTokens: number, summaryTokens: number, minimumGain: number): boolean {
  return summaryTokens < replacedTokens && summaryTokens <= replacedTokens * (1 - minimumGain);
}
