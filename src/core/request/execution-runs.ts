import { isTextOnly } from '../message.js';
import type { Message } from '../message.js';
import { entryMessage } from '../render.js';
import type { Entry, SpineNode, SubstituteForms, View } from '../render.js';
import { unitsOf } from '../spine.js';
import type { Unit } from '../spine.js';
import { segmentOn } from '../summary.js';

/** A run of older execution history that one checkpoint may stand for. Indices `[from, to)` into the spine. */
export interface ExecutionRun {
  readonly from: number;
  readonly to: number;
  /** In order; the first may be an earlier checkpoint. */
  readonly entries: readonly Entry[];
}

/**
 * The runs that may become checkpoints, oldest first (SPEC 7.4): whole, text-only, unsigned units of the assistant's, older than its
 * latest segment. User messages, open groups, media and signed reasoning split the history into runs. A lone checkpoint is
 * none.
 */
export function executionRuns(
  spine: readonly SpineNode[],
  view: View,
  forms: SubstituteForms,
): readonly ExecutionRun[] {
  const ids = spine.map((node) => node.id);
  const messages = view.tail.map((entry) => entryMessage(spine, entry, forms)).filter((message) => message !== null);
  const runs: Entry[][] = [[]];
  for (const unit of unitsOf(messages.slice(0, latestSegment(messages)))) {
    const entries = view.tail.slice(unit.from, unit.to);
    const isEligible = entries[0]?.kind === 'checkpoint' || isExecution(unit, messages);
    if (isEligible) runs.at(-1)?.push(...entries);
    else runs.push([]);
  }
  return runs.flatMap((entries): readonly ExecutionRun[] => {
    const first = entries[0];
    const last = entries.at(-1);
    if (first === undefined || last === undefined || (entries.length === 1 && first.kind === 'checkpoint')) return [];
    return [{ from: placeOf(ids, first).from, to: placeOf(ids, last).to, entries }];
  });
}

/** Where the latest assistant segment begins: at its unit's first message (SPEC 7.4). Behind the end where there is none. */
export function latestSegment(messages: readonly Message[]): number {
  const units = unitsOf(messages);
  const latest = units.findLast(({ from, to }) => messages.slice(from, to).some(({ role }) => role === 'llm'));
  return latest?.from ?? messages.length;
}

/** What the assistant said with all its calls and their results, and nothing in it that has to stay as it is. */
function isExecution({ from, to, complete }: Unit, messages: readonly Message[]): boolean {
  const unit = messages.slice(from, to);
  return (
    complete &&
    unit[0]?.role === 'llm' &&
    // Text beside a tool result is the user's.
    unit.every((message) => isTextOnly(message) && !message.signed && (message.role !== 'user' || message.text === ''))
  );
}

function placeOf(ids: readonly string[], entry: Entry): { readonly from: number; readonly to: number } {
  if (entry.kind !== 'checkpoint') return { from: entry.index, to: entry.index + 1 };
  return segmentOn(ids, entry.checkpoint) ?? { from: 0, to: 0 };
}
