import { describe, expect, it } from 'vitest';
import { policyResults } from '../../../src/core/request/policies.js';
import { calls, result, spineOf, user, wordCounter, words } from './loop.js';

const count = (text: string): number => wordCounter.count(text);

const spine = spineOf([
  user('One.'),
  calls('a'),
  result('a', `begin ${words(300)} exit code 1`),
  user('Two.'),
  calls('b'),
  result('b', words(300)),
  user('Three.'),
  calls('c'),
  result('c', `${words(300, 'start')} ${words(300, 'middle')} ${words(300, 'end')}`),
]);

describe('the view policies, SPEC 4.6', () => {
  it('are off unless they are set', () => {
    expect(policyResults(spine, { agingTurns: null, spillTokens: null }, count)).toEqual([]);
  });

  it('render results older than the boundary as one line each, the same every time', () => {
    const policies = { agingTurns: 2, spillTokens: null };
    const aged = policyResults(spine, policies, count);
    expect(aged.map(({ callId }) => callId)).toEqual(['a']);
    expect(aged[0]?.text).toMatch(
      /^\[look result of \d+ characters, exit 1, left out: "begin .*"; whole in node [\w-]{32}\]$/,
    );
    expect(policyResults(spine, policies, count)).toEqual(aged);
    expect(policyResults(spine, { agingTurns: 1, spillTokens: null }, count).map(({ callId }) => callId)).toEqual([
      'a',
      'b',
    ]);
  });

  it('spill a long result into its head, a pointer to the whole, and its tail', () => {
    const [spilled] = policyResults(spine, { agingTurns: null, spillTokens: 400 }, count);
    expect(spilled?.callId).toBe('c');
    expect(spilled?.text).toMatch(
      /^start start [^]*\n\[… \d+ characters left out; the whole result is in node [\w-]{32} …\]\n[^]* end$/,
    );
    expect(count(spilled?.text ?? '')).toBeLessThanOrEqual(400);
    expect(count(spilled?.text ?? '')).toBeGreaterThan(250);
    expect(spilled?.savedTokens).toBe(900 - count(spilled?.text ?? ''));
  });

  it('spill within the bound whatever the tokens of the text, so that nothing is spilled twice', () => {
    const dense = (text: string): number => Math.ceil(text.length / 2);
    const whole = spineOf([user('One.'), calls('a'), result('a', '0123456789'.repeat(500))]);
    const [spilled] = policyResults(whole, { agingTurns: null, spillTokens: 400 }, dense);
    expect(dense(spilled?.text ?? '')).toBeLessThanOrEqual(400);
    const again = spineOf([user('One.'), calls('a'), result('a', spilled?.text ?? '')]);
    expect(policyResults(again, { agingTurns: null, spillTokens: 400 }, dense)).toEqual([]);
  });

  it('leave a result alone that would not become shorter', () => {
    expect(policyResults(spine, { agingTurns: null, spillTokens: 1_000 }, count)).toEqual([]);
  });
});
