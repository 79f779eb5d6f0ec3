import { isTypedUserMessage } from '../message.js';
import type { ToolResult } from '../message.js';
import type { SpineNode } from '../render.js';
import { maskLine } from './mask.js';
import type { ReducedResult } from './reduction.js';

/** How tool results are rendered whatever the window holds, SPEC 4.6. Both move the provider's prompt cache, so both are off. */
export interface ViewPolicies {
  /** Results older than so many turns become one line; null never. */
  readonly agingTurns: number | null;
  /** Longer results are rendered as their head, a pointer to the whole, and their tail, within so many tokens; null never. */
  readonly spillTokens: number | null;
}

/** What is shown at the ends of a spilled result: the larger part at its head. */
const HEAD_SHARE = 2 / 3;

/** So much less is shown at each try, until head, pointer and tail are within the bound together. */
const NEXT_TRY = 0.8;

/** A shorter result is no longer than the line it would become. */
const SMALLEST_AGED_TOKENS = 128;

/** The results that the policies render in other words. The same spine and policies give the same texts. */
export function policyResults(
  spine: readonly SpineNode[],
  policies: ViewPolicies,
  count: (text: string) => number,
): readonly ReducedResult[] {
  if (policies.agingTurns === null && policies.spillTokens === null) return [];
  const boundary = agingBoundary(spine, policies.agingTurns);
  return spine.flatMap((node, index) =>
    node.message.results.flatMap((result): readonly ReducedResult[] => {
      const text =
        index < boundary
          ? aged(spine, index, result, count)
          : spilled(node.id, result.text, policies.spillTokens, count);
      const savedTokens = text === null ? 0 : count(result.text) - count(text);
      return text === null || savedTokens <= 0 ? [] : [{ node: node.id, callId: result.callId, text, savedTokens }];
    }),
  );
}

/** The place of the typed user message before which results are old. */
function agingBoundary(spine: readonly SpineNode[], agingTurns: number | null): number {
  if (agingTurns === null) return 0;
  const turns = spine.flatMap((node, index) => (!node.command && isTypedUserMessage(node.message) ? [index] : []));
  return turns.at(-agingTurns) ?? 0;
}

function aged(
  spine: readonly SpineNode[],
  index: number,
  result: ToolResult,
  count: (text: string) => number,
): string | null {
  if (count(result.text) < SMALLEST_AGED_TOKENS) return null;
  const call = spine
    .slice(0, index)
    .findLast((node) => node.message.calls.some(({ id }) => id === result.callId))
    ?.message.calls.find(({ id }) => id === result.callId);
  return call === undefined ? null : maskLine(call, spine[index]?.id ?? '', result.text);
}

function spilled(
  nodeId: string,
  text: string,
  spillTokens: number | null,
  count: (text: string) => number,
): string | null {
  // No character has more than three tokens.
  if (spillTokens === null || text.length * 3 <= spillTokens) return null;
  const tokens = count(text);
  if (tokens <= spillTokens) return null;
  for (let shown = (text.length * spillTokens) / tokens; shown >= 1; shown *= NEXT_TRY) {
    const shorter = endsOf(nodeId, text, shown);
    if (count(shorter) <= spillTokens) return shorter;
  }
  return null;
}

function endsOf(nodeId: string, text: string, shown: number): string {
  const headLength = Math.floor(shown * HEAD_SHARE);
  const head = wellCut(text.slice(0, headLength));
  const tail = wellCut(text.slice(text.length - Math.floor(shown - headLength)));
  const left = text.length - head.length - tail.length;
  return `${head}\n[… ${left} characters left out; the whole result is in node ${nodeId} …]\n${tail}`;
}

/** Without half a surrogate pair at the cut. */
function wellCut(text: string): string {
  return text.replace(/^[\udc00-\udfff]/, '').replace(/[\ud800-\udbff]$/, '');
}
