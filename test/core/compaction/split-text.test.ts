import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitText } from '../../../src/core/compaction/split-text.js';

const isWhole = (text: string): boolean => !/\p{Surrogate}/u.test(text);

describe('the pieces of a text, SPEC 5.6', () => {
  it('end at a line’s end where there is one in their second half', () => {
    expect(splitText('one\ntwo\nthree', 8)).toEqual(['one\ntwo\n', 'three']);
    expect(splitText('one two three', 8)).toEqual(['one two ', 'three']);
    expect(splitText('a\nlong line', 8)).toEqual(['a\nlong l', 'ine']);
  });

  it('never split a surrogate pair', () => {
    const text = `${'x'.repeat(1_999)}📥 and the tail`;
    expect(splitText(text, 2_000)).toEqual(['x'.repeat(1_999), '📥 and the tail']);
    expect(splitText('📥📥📥', 3)).toEqual(['📥', '📥', '📥']);
    expect(splitText('📥📥', 1)).toEqual(['📥', '📥']);
  });

  it('join to exactly the text, are well-formed where it is, and as long as asked for at most', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\n', '📥', 'é', ' '), maxLength: 200 });
    fc.assert(
      fc.property(text, fc.integer({ min: -1, max: 50 }), (whole, maxLength) => {
        const pieces = splitText(whole, maxLength);
        expect(pieces.join('')).toBe(whole);
        expect(pieces.every(isWhole)).toBe(true);
        expect(pieces.every((piece) => piece.length <= Math.max(2, maxLength))).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});
