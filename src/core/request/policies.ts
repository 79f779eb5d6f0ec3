import { isTypedUserMessage } from '../message.js';
import type { ToolResult } from '../message.js';
import type { SpineNode } from '../render.js';
import { maskLine } from './mask.js';
import type { ReducedResult } from './reduction.js';

/** How tool results are rendered whatever the window holds, SPEC 4.6. Both move the provider's prompt cache, so both are off. */
export interface ViewPolicies {
  /** Results older than so many turns become one line; null never. */
  readonly agingTurns: number | null;
  /** Longer results are rendered as their head, a pointer to the whole, and their tail; null never. */
  readonly spillTokens: number | null;
}

/** A spilled result shows so many characters for each token of its bound: about as many as a token of plain text has. */
const SHOWN_PER_TOKEN = 4;
const HEAD_SHARE = 2 / 3;

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
        index < boundary ? aged(spine, index, result) : spilled(node.id, result.text, policies.spillTokens, count);
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

function aged(spine: readonly SpineNode[], index: number, result: ToolResult): string | null {
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
  if (spillTokens === null || text.length <= spillTokens || count(text) <= spillTokens) return null;
  const shown = spillTokens * SHOWN_PER_TOKEN;
  const head = wellCut(text.slice(0, Math.floor(shown * HEAD_SHARE)));
  const tail = wellCut(text.slice(-Math.floor(shown * (1 - HEAD_SHARE))));
  const left = text.length - head.length - tail.length;
  return left <= 0
    ? null
    : `${head}\n[… ${left} characters left out; the whole result is in node ${nodeId} …]\n${tail}`;
}

/** Without half a surrogate pair at the cut. */
function wellCut(text: string): string {
  return text.replace(/^[\udc00-\udfff]/, '').replace(/[\ud800-\udbff]$/, '');
}
