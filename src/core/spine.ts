import { isTypedUserMessage } from './message.js';
import type { Message } from './message.js';

/**
 * One assistant message with all its calls and all their results, or one other message (SPEC, Words). Indices `[from, to)`
 * into the list it was made from.
 */
export interface Unit {
  readonly from: number;
  readonly to: number;
  /** Every call has exactly one result and every result its call. */
  readonly complete: boolean;
}

/** A typed user message and every unit up to the next one; the first may begin without one. */
export interface Turn {
  readonly from: number;
  readonly to: number;
  readonly complete: boolean;
}

/** Groups a message list into units, in order. */
export function unitsOf(messages: readonly Message[]): readonly Unit[] {
  const units: Unit[] = [];
  let from = 0;
  while (from < messages.length) {
    let to = from + 1;
    while (to < messages.length && (messages[to]?.results.length ?? 0) > 0) to++;
    units.push({ from, to, complete: isPaired(messages.slice(from, to)) });
    from = to;
  }
  return units;
}

/** Groups a message list into turns, in order. */
export function turnsOf(messages: readonly Message[]): readonly Turn[] {
  const turns: { from: number; to: number; complete: boolean }[] = [];
  for (const unit of unitsOf(messages)) {
    const first = messages[unit.from];
    const current = turns.at(-1);
    if (current === undefined || (first !== undefined && isTypedUserMessage(first))) turns.push({ ...unit });
    else {
      current.to = unit.to;
      current.complete &&= unit.complete;
    }
  }
  return turns;
}

function isPaired(unit: readonly Message[]): boolean {
  const calls = unit.flatMap((message) => message.calls.map((call) => call.id)).toSorted();
  const results = unit.flatMap((message) => message.results.map((result) => result.callId)).toSorted();
  return (
    new Set(calls).size === calls.length && calls.length === results.length && calls.every((id, i) => id === results[i])
  );
}
