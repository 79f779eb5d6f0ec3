import { isTextOnly } from '../message.js';
import type { Message } from '../message.js';
import { entryMessage } from '../render.js';
import type { Entry, SpineNode, SubstituteForms, View } from '../render.js';
import { unitsOf } from '../spine.js';
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
  const latest = view.tail.findLastIndex((entry) => entryMessage(spine, entry, forms)?.role === 'llm');
  const older = view.tail.slice(0, Math.max(0, latest));
  const runs: Entry[][] = [[]];
  for (const unit of entryUnits(spine, older, forms)) {
    if (unit.eligible) runs.at(-1)?.push(...unit.entries);
    else runs.push([]);
  }
  return runs.flatMap((entries): readonly ExecutionRun[] => {
    const first = entries[0];
    const last = entries.at(-1);
    if (first === undefined || last === undefined || (entries.length === 1 && first.kind === 'checkpoint')) return [];
    return [{ from: placeOf(ids, first).from, to: placeOf(ids, last).to, entries }];
  });
}

interface EntryUnit {
  readonly entries: readonly Entry[];
  readonly eligible: boolean;
}

function entryUnits(
  spine: readonly SpineNode[],
  entries: readonly Entry[],
  forms: SubstituteForms,
): readonly EntryUnit[] {
  const messages = entries.map((entry) => entryMessage(spine, entry, forms)).filter((message) => message !== null);
  return unitsOf(messages).map((unit) => {
    const own = entries.slice(unit.from, unit.to);
    const isCheckpoint = own[0]?.kind === 'checkpoint';
    return {
      entries: own,
      eligible: isCheckpoint || (unit.complete && isExecution(messages.slice(unit.from, unit.to))),
    };
  });
}

/** An assistant's message and its results, with nothing in it that has to stay as it is. */
function isExecution(unit: readonly Message[]): boolean {
  const [first, ...rest] = unit;
  return (
    first?.role === 'llm' &&
    unit.every((message) => isTextOnly(message) && !message.signed) &&
    // Text beside a tool result is the user's.
    rest.every((message) => message.role === 'tool' || message.text === '')
  );
}

function placeOf(ids: readonly string[], entry: Entry): { readonly from: number; readonly to: number } {
  if (entry.kind !== 'checkpoint') return { from: entry.index, to: entry.index + 1 };
  return segmentOn(ids, entry.checkpoint) ?? { from: 0, to: 0 };
}
