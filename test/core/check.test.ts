import { describe, expect, it } from 'vitest';
import { faultsOf, newFaults } from '../../src/core/check.js';
import { assistant, calling, result, system, turn, user } from './builders.js';

describe('the faults of a list about to be sent, SPEC 4.7', () => {
  it.each([
    ['every call has its result', [user('a'), calling('x', 'y'), result('x'), result('y'), assistant('b')]],
    ['instructions come before the first user message', [system('s'), user('a')]],
    ['it is empty', []],
  ])('are none where %s', (_name, list) => {
    expect(faultsOf(list)).toEqual([]);
  });

  it.each([
    ['a result without its call', [user('a'), result('x'), assistant('b')]],
    ['a call without its result', [user('a'), calling('x'), user('b')]],
    ['half a batch', [user('a'), calling('x', 'y'), result('x'), user('b')]],
    ['a result twice', [user('a'), calling('x'), result('x'), result('x')]],
  ])('name the place of %s, from the end', (_name, list) => {
    expect(faultsOf(list)).toEqual([`unpaired calls at -${list.length - (list[1]?.results.length === 1 ? 0 : 1)}`]);
  });

  it('name a first message that is no user’s', () => {
    expect(faultsOf([system('s'), assistant('a')])).toEqual(['begins with llm']);
    expect(faultsOf([calling('x'), result('x'), user('a')])).toEqual(['begins with llm']);
  });
});

describe('the faults of a substitution, SPEC 4.7', () => {
  const broken = [calling('old'), user('a')];

  it('are those that the original lacks', () => {
    const original = [...turn('a'), calling('x'), result('x'), user('b')];
    expect(newFaults(original, [user('S'), result('x'), user('b')])).toEqual(['unpaired calls at -3']);
    expect(newFaults(original, [user('S'), calling('x'), result('x'), user('b')])).toEqual([]);
  });

  it('leave out what the client sent broken: it is not ours to repair', () => {
    const original = [...turn('a'), ...broken];
    expect(newFaults(original, [user('S'), ...broken])).toEqual([]);
  });

  it('hold a fault of the same kind in another place', () => {
    const original = [...turn('a'), user('b'), ...broken];
    expect(newFaults(original, [user('S'), calling('y'), ...turn('c'), ...broken])).toEqual(['unpaired calls at -5']);
  });
});
