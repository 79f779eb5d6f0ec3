import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTypedUserMessage } from '../../src/core/message.js';
import { turnsOf, unitsOf } from '../../src/core/spine.js';
import { assistant, calling, image, message, result, system, user } from './builders.js';

describe('units', () => {
  it('are an assistant message with all its calls and results, or one other message', () => {
    const list = [user('a'), calling('x', 'y'), result('x'), result('y'), assistant('b'), system('c')];
    expect(unitsOf(list)).toEqual([
      { from: 0, to: 1, complete: true },
      { from: 1, to: 4, complete: true },
      { from: 4, to: 5, complete: true },
      { from: 5, to: 6, complete: true },
    ]);
  });

  it.each([
    ['a result is missing', [calling('x', 'y'), result('x')]],
    ['no result came yet', [calling('x')]],
    ['a result has no call', [result('x')]],
    ['a result answers another call', [calling('x'), result('z')]],
    ['a result came twice', [calling('x', 'y'), result('x'), result('x')]],
    ['two results for one call', [calling('x'), result('x'), result('x')]],
    ['two calls share an id', [calling('x', 'x'), result('x'), result('x')]],
  ])('are not complete where %s', (_name, list) => {
    expect(unitsOf(list).every((unit) => unit.complete)).toBe(false);
  });

  it('are assistant messages in a row whose calls have their results behind them all', () => {
    const list = [assistant('let me look'), calling('x'), calling('y'), result('y'), result('x'), assistant('b')];
    expect(unitsOf(list)).toEqual([
      { from: 0, to: 5, complete: true },
      { from: 5, to: 6, complete: true },
    ]);
  });

  it('keep a call without its result to itself', () => {
    const list = [assistant('a'), calling('lost'), assistant('b'), calling('x'), result('x')];
    expect(unitsOf(list)).toEqual([
      { from: 0, to: 1, complete: true },
      { from: 1, to: 2, complete: false },
      { from: 2, to: 5, complete: true },
    ]);
    expect(unitsOf([calling('x'), calling('y'), result('y'), result('z')]).map((unit) => unit.complete)).toEqual([
      false,
      false,
    ]);
  });

  it('take results in any order', () => {
    expect(unitsOf([calling('x', 'y'), result('y'), result('x')])).toEqual([{ from: 0, to: 3, complete: true }]);
  });
});

describe('turns', () => {
  it('begin at typed user messages; what comes before the first is a turn of its own', () => {
    const list = [assistant('hello'), user('a'), calling('x'), result('x'), assistant('b'), user('c')];
    expect(turnsOf(list)).toEqual([
      { from: 0, to: 1, complete: true },
      { from: 1, to: 5, complete: true },
      { from: 5, to: 6, complete: true },
    ]);
  });

  it('a turn with one open call is not complete as a whole', () => {
    const list = [user('a'), calling('x'), user('b'), assistant('c')];
    expect(turnsOf(list).map((turn) => turn.complete)).toEqual([false, true]);
  });

  it('of any list are contiguous and hold all of it', () => {
    const any = fc.constantFrom(user('u'), assistant('a'), calling('x'), result('x'), system('s'));
    fc.assert(
      fc.property(fc.array(any, { maxLength: 20 }), (list) => {
        for (const parts of [unitsOf(list), turnsOf(list)]) {
          expect(parts.flatMap(({ from, to }) => list.slice(from, to))).toEqual(list);
          expect(parts.every(({ from, to }) => from < to)).toBe(true);
        }
      }),
    );
  });
});

describe('a typed user message', () => {
  it.each([
    ['has text', user('a'), true],
    ['has media alone', message({ role: 'user', media: [image('')] }), true],
    ['says nothing', user(''), false],
    ['carries a tool result, whatever stands beside it', { ...result('x'), role: 'user', text: 'and' } as const, false],
    ['is the user’s', assistant('a'), false],
  ])('%s', (_name, each, typed) => {
    expect(isTypedUserMessage(each)).toBe(typed);
  });
});
