import { isTextOnly } from '../message.js';
import type { ToolCall } from '../message.js';
import type { Entry, SpineNode, View } from '../render.js';
import { unitsOf } from '../spine.js';

/** Results below this are not worth a call or a notice. */
const SMALLEST_RESULT_TOKENS = 128;

/** A tool result that may be sent in fewer words. */
export interface ResultCandidate {
  readonly node: string;
  readonly call: ToolCall;
  readonly text: string;
  /** Of the text alone. */
  readonly tokens: number;
  /** Of the newest group: no model has read it yet. */
  readonly unread: boolean;
}

/**
 * The results that may be shortened, in the order in which they should be: the oldest group first, the largest within it
 * (SPEC 7.3). Only text-only results of completed groups, so never one beside a call that is still open.
 */
export function resultCandidates(
  spine: readonly SpineNode[],
  view: View,
  count: (text: string) => number,
): readonly ResultCandidate[] {
  const nodes = view.tail.flatMap((entry) => nodeOf(spine, entry) ?? []);
  const units = unitsOf(nodes.map(({ node }) => node.message));
  return units
    .filter((unit) => unit.complete)
    .flatMap((unit) => {
      const group = nodes.slice(unit.from, unit.to);
      const calls = group.flatMap(({ node }) => node.message.calls);
      const unread = unit.to === nodes.length;
      return group
        .flatMap(({ node, reduced }) =>
          node.message.results.flatMap((result): readonly ResultCandidate[] => {
            const call = calls.find(({ id }) => id === result.callId);
            if (call === undefined || reduced.has(result.callId) || !isTextOnly(node.message)) return [];
            return [{ node: node.id, call, text: result.text, tokens: count(result.text), unread }];
          }),
        )
        .filter(({ tokens }) => tokens >= SMALLEST_RESULT_TOKENS)
        .toSorted((a, b) => b.tokens - a.tokens);
    });
}

function nodeOf(
  spine: readonly SpineNode[],
  entry: Entry,
): { readonly node: SpineNode; readonly reduced: ReadonlySet<string> } | null {
  if (entry.kind === 'checkpoint') return null;
  const node = spine[entry.index];
  const results = entry.kind === 'reduced' ? entry.results.map(({ callId }) => callId) : [];
  return node === undefined ? null : { node, reduced: new Set(results) };
}
