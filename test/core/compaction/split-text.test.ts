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

  it('never split a fenced block that fits a piece, and end before it instead', () => {
    const block = '```ts\nconst a = 1;\n```\n';
    expect(splitText(`one two three\n${block}four`, 30)).toEqual(['one two three\n', `${block}four`]);
    expect(splitText(`one\n${block}${block}`, 30)).toEqual([`one\n${block}`, block]);
    expect(splitText(`[assistant] ${block}${block}`, 40)).toEqual([`[assistant] ${block}`, block]);
    expect(splitText('one\n~~~~\n```\n~~~\n~~~~\ntwo', 20)).toEqual(['one\n', '~~~~\n```\n~~~\n~~~~\n', 'two']);
    expect(splitText('see ```x``` and\nthe rest of it', 20)).toEqual(['see ```x``` and\n', 'the rest of it']);
  });

  it('end at a line’s end inside a fenced block that is longer than a piece', () => {
    expect(splitText('```\nab\nanother line\nc\n```\n', 10)).toEqual(['```\nab\n', 'another li', 'ne\nc\n```\n']);
    expect(splitText('```\nab\n'.concat('never closed '.repeat(2)), 16)).toEqual([
      '```\nab\n',
      'never closed nev',
      'er closed ',
    ]);
  });

  it('hold every block that fits in one of them, whatever stands between the blocks', () => {
    const line = fc.string({ unit: fc.constantFrom('a', '📥', ' ', '[', '`'), maxLength: 12 });
    const plain = line
      .filter((text) => !/^\s*`{3}|\] *`{3}/.test(text))
      .map((text) => ({ kind: 'plain' as const, text: `${text}\n` }));
    const block = fc
      .record({
        fence: fc.constantFrom('```', '~~~~', '`````'),
        info: fc.constantFrom('', 'ts'),
        lines: fc.array(line, { maxLength: 6 }),
      })
      .map(({ fence, info, lines }) => ({
        kind: 'block' as const,
        // Indented content would close nothing; a line of ticks alone might.
        text: `${fence}${info}\n${lines.map((text) => `x${text}\n`).join('')}${fence}\n`,
      }));
    fc.assert(
      fc.property(
        fc.array(fc.oneof(plain, block), { maxLength: 12 }),
        fc.integer({ min: 2, max: 60 }),
        (parts, maxLength) => {
          const pieces = splitText(parts.map(({ text }) => text).join(''), maxLength);
          const cuts = new Set<number>();
          pieces.reduce((offset, piece) => {
            cuts.add(offset + piece.length);
            return offset + piece.length;
          }, 0);
          let from = 0;
          for (const { kind, text } of parts) {
            const inside = [...cuts].filter((cut) => cut > from && cut < from + text.length);
            const isShort = text.split('\n').every((one) => one.length < maxLength);
            if (kind === 'block' && text.length <= maxLength) expect(inside).toEqual([]);
            if (kind === 'block' && isShort) expect(inside.every((cut) => text[cut - from - 1] === '\n')).toBe(true);
            from += text.length;
          }
          expect(pieces.join('')).toBe(parts.map(({ text }) => text).join(''));
          expect(pieces.every((piece) => piece.length <= maxLength && isWhole(piece))).toBe(true);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('join to exactly the text, are well-formed where it is, and as long as asked for at most', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\n', '📥', 'é', ' ', '```\n', '~~~\n'), maxLength: 200 });
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
