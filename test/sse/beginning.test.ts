import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBeginning } from '../../src/sse/beginning.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const beginningOf = (text: string) => createBeginning()(bytes(text));

describe('the beginning of a body', () => {
  it.each([
    'data: {}',
    'data:{}',
    'event: message_start',
    'id: 1',
    'retry: 10',
    ': a comment',
    ':',
    '\n\ndata: x',
    '\ufeffdata: x',
  ])('is that of an event stream: %j', (text) => {
    expect(beginningOf(text)).toBe('events');
  });

  it.each(['{', '[]', '<html>', 'database', 'identity', '{"data: ', 'eventually', '"data:'])(
    'is that of something else: %j',
    (text) => {
      expect(beginningOf(text)).toBe('other');
    },
  );

  it('is white space, or too short to tell, until more has come', () => {
    const judge = createBeginning();
    const told = ['', ' \n', '\r\n\t', 'da', 'ta', ':'].map((piece) => judge(bytes(piece)));
    expect(told).toEqual(['space', 'space', 'space', 'open', 'open', 'events']);
  });

  it('is the same however it is cut', () => {
    const text = fc
      .tuple(
        fc.stringMatching(/^[ \r\n]{0,3}$/),
        fc.constantFrom('data: x', 'event:', ': hi', '{"a":1}', 'dat', 'retry'),
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat(12)), (whole, cuts) => {
        const judge = createBeginning();
        const ends = [...cuts.map((at) => Math.min(at, whole.length)), whole.length].toSorted((a, b) => a - b);
        let from = 0;
        let last = judge(bytes(''));
        for (const end of ends) {
          last = judge(bytes(whole.slice(from, end)));
          from = end;
        }
        expect(last).toBe(beginningOf(whole));
      }),
    );
  });
});
