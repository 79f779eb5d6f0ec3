import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { Tiktoken } from 'js-tiktoken/lite';
import { describe, expect, it } from 'vitest';
import { BpeEncoder } from '../../src/tokens/bpe-encoder.js';
import { ENCODINGS, type Encoding } from '../../src/tokens/encoding.js';
import { packRanks } from '../../src/tokens/packed-ranks.js';
import { hostileText, numbers } from './hostile-text.js';
import { PUBLISHED, readRanks } from './ranks.js';
import { createReference } from './reference-merge.js';

const MEGABYTE = 1 << 20;

/** A text of so many bytes, its characters drawn from `alphabet`. */
function drawn(alphabet: string, bytes: number): string {
  const chars = Array.from(alphabet);
  const next = numbers(alphabet.length);
  const count = Math.floor(bytes / Buffer.byteLength(chars[0] ?? ''));
  return Array.from({ length: count }, () => chars[next(chars.length)]).join('');
}

/** Bytes without a pattern, as a compressed attachment would be. */
function base64(bytes: number): string {
  const blocks = Array.from({ length: Math.ceil(((bytes / 4) * 3) / 32) }, (_, index) =>
    createHash('sha256').update(String(index)).digest(),
  );
  return Buffer.concat(blocks).toString('base64').slice(0, bytes);
}

const chinese =
  '的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家';

/** Each is a single piece, and made of so few different pairs that the reference can follow at any length. */
const longPieces: readonly (readonly [string, string])[] = [
  ['one letter', 'a'],
  ['spaces', ' '],
  ['line ends', '\n'],
  ['mixed white space', '\n \t\r'],
  ['Chinese without punctuation', chinese],
  ['base64 without digits and capitals', 'aqzlfxvn'],
];

/** The one that current models use at full length; the other runs the same code on other ranks. */
const LONG_BYTES: Record<Encoding, number> = { o200k_base: MEGABYTE, cl100k_base: MEGABYTE / 8 };

describe.each(ENCODINGS)('the tokens of %s', (encoding: Encoding) => {
  const oracle = new Tiktoken(PUBLISHED[encoding]);
  const encoder = new BpeEncoder(encoding, packRanks(PUBLISHED[encoding].bpe_ranks));
  const ranks = readRanks(encoding);
  const reference = createReference(ranks);
  const longBytes = LONG_BYTES[encoding];

  function agrees(text: string): boolean {
    const expected = oracle.encode(text, [], []);
    const found = encoder.encode(text);
    const isSame = found.length === expected.length && found.every((rank, index) => rank === expected[index]);
    return isSame && encoder.count(text) === expected.length;
  }

  it('are the published ones, id for id, for hostile text', () => {
    fc.assert(fc.property(hostileText, agrees), { numRuns: 3_000 });
  });

  it('are the published ones for text of any characters', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), agrees), { numRuns: 500 });
  });

  it('are the published ones for long pieces, up to where the published implementation can go', () => {
    const texts = longPieces.flatMap(([, alphabet]) => [3, 17, 60, 129, 300].map((bytes) => drawn(alphabet, bytes)));
    expect(texts.filter((text) => !agrees(text))).toEqual([]);
  });

  it('are the published ones for the text of every twentieth token', () => {
    const texts = Array.from(ranks.keys(), (token) => Buffer.from(token, 'latin1').toString());
    expect(texts.filter((text, rank) => rank % 20 === 0 && !agrees(text))).toEqual([]);
  });

  it('count a special token written in text as text', () => {
    expect(encoder.count('<|endoftext|>')).toBeGreaterThan(1);
    expect(encoder.encode('<|endoftext|>')).toEqual(oracle.encode('<|endoftext|>', [], []));
  });

  it('read a lone surrogate as U+FFFD', () => {
    expect(encoder.encode('a\ud800b\udc00')).toEqual(encoder.encode('a\ufffdb\ufffd'));
  });

  it('of nothing are none', () => {
    expect(encoder.encode('')).toEqual([]);
    expect(encoder.count('')).toBe(0);
  });

  it('are never more than the bytes of the text, SPEC 7.9', () => {
    fc.assert(
      fc.property(hostileText, (text) => encoder.count(text) <= Buffer.byteLength(text)),
      { numRuns: 1_000 },
    );
  });

  it('are counted by the reference as by the published implementation', () => {
    for (const [, alphabet] of longPieces) {
      const text = drawn(alphabet, 300);
      expect(reference(text)).toBe(oracle.encode(text).length);
    }
  });

  it.each(longPieces)(`in ${longBytes} bytes of %s are exact, in at most 4 n log n steps`, (_, alphabet) => {
    const text = drawn(alphabet, longBytes);
    const stepsBefore = encoder.steps;
    const count = encoder.count(text);
    const steps = encoder.steps - stepsBefore;
    expect(count).toBe(reference(text));
    const bytes = Buffer.byteLength(text);
    expect(steps).toBeGreaterThan(bytes);
    expect(steps).toBeLessThanOrEqual(4 * bytes * Math.log2(bytes));
  });

  it(`in ${longBytes} bytes of base64 are exact, in at most 4 n log n steps`, () => {
    const text = base64(longBytes);
    const stepsBefore = encoder.steps;
    const count = encoder.count(text);
    expect(encoder.steps - stepsBefore).toBeLessThanOrEqual(4 * longBytes * Math.log2(longBytes));
    // Digits and signs cut it into pieces short enough for the published implementation.
    expect(count).toBe(oracle.encode(text).length);
  });

  /** The count of a text that is counted in runs, and the most steps of one. `between` is done where it rests. */
  function inRuns(text: string, sliceSteps: number, between: () => void = () => undefined) {
    let restedAt = encoder.steps;
    let most = 0;
    const work = encoder.countInRuns(text, () => encoder.steps - restedAt >= sliceSteps);
    for (;;) {
      const slice = work.next();
      most = Math.max(most, encoder.steps - restedAt);
      if (slice.done === true) return { count: slice.value, most };
      between();
      restedAt = encoder.steps;
    }
  }

  it.each([...longPieces.map(([name, alphabet]) => [name, drawn(alphabet, longBytes)]), ['base64', base64(longBytes)]])(
    `in ${longBytes} bytes of %s are the same counted in runs, each of a bounded number of steps`,
    (_, text = '') => {
      const { count, most } = inRuns(text, 100_000);
      expect(count).toBe(encoder.count(text));
      expect(most).toBeLessThan(500_000);
    },
  );

  it('counted in runs are the same whatever is counted between them', () => {
    const text = `${'b'.repeat(50_000)} and ${drawn('aqzlfxvn', 40_000)}`;
    const other = 'z'.repeat(20_000);
    const [expected, otherCount] = [encoder.count(text), encoder.count(other)];
    const others = new Set<number>();
    const { count } = inRuns(text, 10_000, () => {
      others.add(encoder.count(other));
      others.add(inRuns(other, 50_000).count);
    });
    expect(count).toBe(expected);
    expect([...others]).toEqual([otherCount]);
  });

  it('after a long piece are still exact for a short one', () => {
    encoder.count('a'.repeat(100_000));
    expect(agrees('antidisestablishmentarianismus')).toBe(true);
  });
});
