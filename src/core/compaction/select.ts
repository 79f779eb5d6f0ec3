import type { Message } from '../message.js';
import { turnsOf } from '../spine.js';

/** A message that could be covered: everything behind the active summary but commands. */
export interface Selectable {
  readonly message: Message;
  readonly tokens: number;
}

export type Selection =
  /** Cover `[0, cut)`, keep `[cut, …)`. */
  { readonly kind: 'cut'; readonly cut: number } | { readonly kind: 'no_op'; readonly reason: NoOpReason };

export type NoOpReason = 'below_target' | 'one_turn' | 'incomplete_unit';

/**
 * Where to cut, SPEC 5.3: only before a typed user message, so that whole turns are covered and at least one typed user
 * message stays. The largest tail within `keepTokens` wins, so four messages or more stay wherever they fit; where not
 * even the latest turn fits, that turn stays whole. Nothing at or behind a turn with an open call is covered.
 */
export function selectCut(history: readonly Selectable[], keepTokens: number): Selection {
  const messages = history.map((item) => item.message);
  const tokensFrom = suffixSums(history.map((item) => item.tokens));
  if ((tokensFrom[0] ?? 0) <= keepTokens) return { kind: 'no_op', reason: 'below_target' };

  const turns = turnsOf(messages);
  const cuts = turns.slice(1).map((turn) => turn.from);
  if (cuts.length === 0) return { kind: 'no_op', reason: 'one_turn' };
  const firstOpen = turns.find((turn) => !turn.complete)?.from ?? messages.length;
  const allowed = cuts.filter((cut) => cut <= firstOpen);
  const latest = allowed.at(-1);
  if (latest === undefined) return { kind: 'no_op', reason: 'incomplete_unit' };
  return { kind: 'cut', cut: allowed.find((cut) => (tokensFrom[cut] ?? 0) <= keepTokens) ?? latest };
}

function suffixSums(tokens: readonly number[]): readonly number[] {
  const sums = Array.from({ length: tokens.length + 1 }, () => 0);
  for (let index = tokens.length - 1; index >= 0; index--) sums[index] = (sums[index + 1] ?? 0) + (tokens[index] ?? 0);
  return sums;
}
