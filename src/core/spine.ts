import { isTypedUserMessage } from './message.js';
import type { Message } from './message.js';

/**
 * What the assistant said in one go, with all its calls and all their results, or one other message (SPEC, Words). Some wire
 * formats say it in several messages in a row, one a call. Indices `[from, to)` into the list it was made from.
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

/**
 * Groups a message list into units, in order. Of assistant messages in a row those are one unit whose calls pair up with the results
 * behind them; one before these stands for itself, so that a fault stays where it is.
 */
export function unitsOf(messages: readonly Message[]): readonly Unit[] {
  const units: Unit[] = [];
  const add = (from: number, to: number): void => {
    units.push({ from, to, complete: isPaired(messages.slice(from, to)) });
  };
  let from = 0;
  while (from < messages.length) {
    let run = from + 1;
    if (messages[from]?.role === 'llm') while (messages[run]?.role === 'llm') run++;
    let to = run;
    while ((messages[to]?.results.length ?? 0) > 0) to++;
    const joined = startOfGroup(messages, from, run, to);
    for (; from < joined; from++) add(from, from + 1);
    add(from, to);
    from = to;
  }
  return units;
}

/** Where the unit begins that ends with the results `[run, to)`, in the run of messages that begins at `from`. */
function startOfGroup(messages: readonly Message[], from: number, run: number, to: number): number {
  const results = messages.slice(run, to).reduce((sum, message) => sum + message.results.length, 0);
  let start = run - 1;
  let calls = messages[start]?.calls.length ?? 0;
  for (; start > from; start--) {
    calls += messages[start - 1]?.calls.length ?? 0;
    if (calls > results) break;
  }
  return isPaired(messages.slice(start, to)) ? start : run - 1;
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
