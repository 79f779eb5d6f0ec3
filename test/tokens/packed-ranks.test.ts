import { describe, expect, it } from 'vitest';
import { packRanks, unpackRanks } from '../../src/tokens/packed-ranks.js';

const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');
const lines = `! 0 ${base64('a')} ${base64('\xff\x00b')} ${base64('four')}\n! 5 ${base64('gap')}\n`;

describe('packed ranks', () => {
  it('hold every token at its rank, and nothing at a rank that has none', () => {
    const { lengths, bytes } = unpackRanks(packRanks(lines));
    expect([...lengths]).toEqual([1, 3, 4, 0, 0, 3]);
    expect(Buffer.from(bytes).toString('latin1')).toBe('a\xff\x00bfourgap');
  });

  it('are read where they lie in a larger buffer', () => {
    const packed = packRanks(lines);
    const buffer = new Uint8Array(packed.length + 10);
    buffer.set(packed, 3);
    expect(unpackRanks(buffer.subarray(3, 3 + packed.length))).toEqual(unpackRanks(packed));
  });

  it('are refused when cut off, padded or something else', () => {
    const packed = packRanks(lines);
    expect(() => unpackRanks(packed.subarray(0, -1))).toThrow('damaged');
    expect(() => unpackRanks(Uint8Array.of(...packed, 0))).toThrow('damaged');
    expect(() => unpackRanks(packed.subarray(1))).toThrow('not packed ranks');
    expect(() => unpackRanks(packed.subarray(0, 5))).toThrow('not packed ranks');
    expect(() => unpackRanks(new Uint8Array(0))).toThrow('not packed ranks');
  });

  it('cannot hold a token of more than 255 bytes', () => {
    expect(() => packRanks(`! 0 ${base64('x'.repeat(256))}`)).toThrow('256 bytes');
  });
});
