import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectCut } from '../../../src/core/compaction/select.js';
import type { Selectable } from '../../../src/core/compaction/select.js';
import type { Message } from '../../../src/core/message.js';
import { isTypedUserMessage } from '../../../src/core/message.js';
import { unitsOf } from '../../../src/core/spine.js';
import { assistant, calling, result, turn, user } from '../builders.js';

/** Every message costs the same unless told otherwise. */
function history(messages: readonly Message[], tokens: (index: number) => number = () => 10): readonly Selectable[] {
  return messages.map((message, index) => ({ message, tokens: tokens(index) }));
}

const fiveTurns = ['a', 'b', 'c', 'd', 'e'].flatMap(turn);

describe('the cut, SPEC 5.3', () => {
  it('leaves the largest tail of whole turns within the target', () => {
    expect(selectCut(history(fiveTurns), 45)).toEqual({ kind: 'cut', cut: 6 });
    expect(selectCut(history(fiveTurns), 40)).toEqual({ kind: 'cut', cut: 6 });
    expect(selectCut(history(fiveTurns), 39)).toEqual({ kind: 'cut', cut: 8 });
  });

  it('keeps four user and assistant messages or more wherever they fit', () => {
    expect(selectCut(history(fiveTurns), 99)).toEqual({ kind: 'cut', cut: 2 });
  });

  it('advances to the latest typed user message where the last two turns exceed the target', () => {
    expect(selectCut(history(fiveTurns), 25)).toEqual({ kind: 'cut', cut: 8 });
  });

  it('leaves the latest turn whole even if it alone exceeds the target', () => {
    expect(selectCut(history(fiveTurns), 5)).toEqual({ kind: 'cut', cut: 8 });
    expect(selectCut(history(fiveTurns), 0)).toEqual({ kind: 'cut', cut: 8 });
  });

  it('never falls inside a tool batch, however large', () => {
    const list = [...turn('a'), user('b'), calling('x', 'y'), result('x'), result('y'), assistant('c'), user('d')];
    for (let keep = 0; keep < 80; keep++) {
      const selection = selectCut(history(list), keep);
      expect(selection.kind === 'cut' && [2, 7].includes(selection.cut)).toBe(true);
    }
  });

  it('takes text beside a tool result for no turn', () => {
    const beside: Message = { ...result('x'), role: 'user', text: 'and be quick' };
    expect(selectCut(history([user('a'), calling('x'), beside, assistant('b')]), 5)).toEqual({
      kind: 'no_op',
      reason: 'one_turn',
    });
  });
});

describe('there is nothing to cover, SPEC 5.3', () => {
  it.each<readonly [string, readonly Message[], number, string]>([
    ['below the target', fiveTurns, 100, 'below_target'],
    ['of a history without a message', [], 0, 'below_target'],
    ['where all is one turn', [user('a'), calling('x'), result('x'), calling('y'), result('y')], 5, 'one_turn'],
    ['behind a call without a result', [user('a'), calling('x'), ...turn('b'), ...turn('c')], 5, 'incomplete_unit'],
  ])('%s', (_name, list, keep, reason) => {
    expect(selectCut(history(list), keep)).toEqual({ kind: 'no_op', reason });
  });
});

it('what lies before a turn with an open call may be covered, that turn and all behind it not, SPEC 5.3', () => {
  const list = [...turn('a'), ...turn('b'), user('c'), calling('x', 'y'), result('x'), ...turn('d'), ...turn('e')];
  expect(selectCut(history(list), 5)).toEqual({ kind: 'cut', cut: 4 });
});

it('the cut falls before a typed user message, at least one of which stays, and covers whole units, for any history', () => {
  const piece = fc.oneof(
    fc.constant(turn('t')),
    fc.constant([user('u')]),
    fc.constant([calling('x', 'y'), result('x'), result('y')]),
    fc.constant([calling('x', 'y'), result('x')]),
    fc.constant([assistant('a')]),
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }),
      fc.nat(200),
      fc.infiniteStream(fc.nat(40)),
      (pieces, keep, costs) => {
        const list = pieces.flat();
        const tokens = list.map(() => costs.next().value ?? 0);
        const selection = selectCut(
          history(list, (index) => tokens[index] ?? 0),
          keep,
        );
        if (selection.kind === 'no_op') return;
        const { cut } = selection;
        const first = list[cut];
        expect(first !== undefined && isTypedUserMessage(first)).toBe(true);
        expect(cut).toBeGreaterThan(0);
        expect(unitsOf(list.slice(0, cut)).every((unit) => unit.complete)).toBe(true);
        expect(unitsOf(list).some((unit) => unit.from < cut && cut < unit.to)).toBe(false);
      },
    ),
    { numRuns: 1_000 },
  );
});
