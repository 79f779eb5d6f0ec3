import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ENCODINGS, type Encoding } from '../../src/tokens/encoding.js';
import { PieceSplitter } from '../../src/tokens/piece-splitter.js';
import { hostileText } from './hostile-text.js';
import { PUBLISHED } from './ranks.js';

function ends(splitter: PieceSplitter, bytes: Uint8Array): number[] {
  const found: number[] = [];
  for (let start = 0; start < bytes.length; start = found.at(-1) ?? NaN) found.push(splitter.pieceEnd(bytes, start));
  return found;
}

/** Where the published pattern cuts, in bytes of UTF-8. */
function publishedEnds(pattern: RegExp, text: string): number[] {
  let end = 0;
  return Array.from(text.matchAll(pattern), ([piece]) => (end += Buffer.byteLength(piece)));
}

describe.each(ENCODINGS)('the pieces of %s', (encoding: Encoding) => {
  const pattern = new RegExp(PUBLISHED[encoding].pat_str, 'gu');
  const splitter = new PieceSplitter(encoding);

  function agrees(text: string): boolean {
    const found = ends(splitter, Buffer.from(text));
    const expected = publishedEnds(pattern, text);
    return found.length === expected.length && found.every((end, index) => end === expected[index]);
  }

  it('are those of the published pattern, for hostile text', () => {
    fc.assert(fc.property(hostileText, agrees), { numRuns: 5_000 });
  });

  it('are those of the published pattern, for every string of up to four characters of different classes', () => {
    let texts = [''];
    for (let length = 1; length <= 4; length++) {
      texts = texts.flatMap((text) => Array.from("Aa中\u03011 \t\n'!/", (char) => text + char));
      expect(texts.filter((text) => !agrees(text))).toEqual([]);
    }
  });

  it('are those of the published pattern, for contractions in every position and case', () => {
    const letters = ['', ...Array.from('sStTmMdDrRvVlLeExſ')];
    const contractions = letters.flatMap((first) => letters.map((second) => `'${first}${second}Aa`));
    const texts = ['', 'a', 'A', '中', ' ', '1', '!', "'"].flatMap((before) =>
      contractions.map((text) => before + text),
    );
    expect(texts.filter((text) => !agrees(text))).toEqual([]);
  });

  it('are those of the published pattern, for every code point of the planes that hold characters', () => {
    const planes = [0x00000, 0x10000, 0x20000, 0x30000, 0xe0000];
    const pages = planes.flatMap((plane) => Array.from({ length: 0x40 }, (_, index) => plane + index * 0x400));
    const disagreeing = pages.filter((page) => {
      const chars = Array.from({ length: 0x400 }, (_, index) => String.fromCodePoint(page + index));
      return !agrees(chars.map((char) => `a${char}A ${char}1!${char}\n`).join(''));
    });
    expect(disagreeing).toEqual([]);
  });

  it.each([
    ['capitals', 'A', 1],
    ['small letters', 'a', 1],
    ['letters without case', '中', 1],
    ['marks', '\u0301', 1],
    ['digits', '7', 3],
    ['spaces', ' ', 1],
    ['line ends', '\n', 1],
    ['symbols', '!', 1],
    ['slashes', '/', 1],
  ])('four million %s are found without a stack to overflow', (_, char, maxChars) => {
    const chars = 4_000_000;
    const bytes = Buffer.from(char.repeat(chars));
    const found = ends(splitter, bytes);
    expect(found.length).toBe(maxChars === 1 ? 1 : Math.ceil(chars / maxChars));
    expect(found.at(-1)).toBe(bytes.length);
  });

  it.each([
    ['capitals', 'A'],
    ['capitals behind caseless letters', '中A'],
    ['capitals that end in one small letter', `${'A'.repeat(999)}a`],
    ['caseless letters before long runs of capitals', `中${'A'.repeat(999)} `],
    ['marks and capitals', `\u0301${'A'.repeat(50)}`],
    ['blanks behind a line end', `\n${' '.repeat(999)}`],
    ['blanks before a word', `${' '.repeat(999)}x`],
    ['line ends and blanks', ' \n'],
    ['symbols and slashes', '!\n/'],
    ['apostrophes', "'"],
    ['half contractions', "'l"],
  ])('of %s are found by looking at each byte a bounded number of times', (_, unit) => {
    const bytes = Buffer.from(unit.repeat(Math.ceil(30_000 / unit.length)));
    let reads = 0;
    const counted = new Proxy<Uint8Array>(bytes, {
      get(target, key) {
        if (key !== 'length') reads++;
        return Reflect.get(target, key);
      },
    });
    ends(splitter, counted);
    expect(reads).toBeLessThanOrEqual(8 * bytes.length);
  });
});
