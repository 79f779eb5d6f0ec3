import { describe, expect, it } from 'vitest';
import { BpeEncoder } from '../../src/tokens/bpe-encoder.js';
import { CountCache } from '../../src/tokens/count-cache.js';
import { createCounterLoader } from '../../src/tokens/counter.js';
import type { Encoding } from '../../src/tokens/encoding.js';
import { packRanks } from '../../src/tokens/packed-ranks.js';
import { PUBLISHED } from './ranks.js';

const packed = packRanks(PUBLISHED.cl100k_base.bpe_ranks);

describe('a counter loader', () => {
  it('reads nothing until asked, then each encoding once', async () => {
    const asked: Encoding[] = [];
    const load = createCounterLoader(async (encoding) => {
      asked.push(encoding);
      return packed;
    });
    expect(asked).toEqual([]);
    const [first, second] = await Promise.all([load('cl100k_base'), load('cl100k_base')]);
    expect(await load('cl100k_base')).toBe(first);
    expect(second).toBe(first);
    expect(asked).toEqual(['cl100k_base']);
    await load('o200k_base');
    expect(asked).toEqual(['cl100k_base', 'o200k_base']);
  });

  it('tries again after ranks could not be read', async () => {
    let attempts = 0;
    const load = createCounterLoader(async () => {
      attempts++;
      return attempts === 1 ? Promise.reject(new Error('no disk')) : packed;
    });
    await expect(load('cl100k_base')).rejects.toThrow('no disk');
    expect((await load('cl100k_base')).count('hello world')).toBe(2);
  });

  it('shares no state with another one', async () => {
    const counters = [createCounterLoader(async () => packed), createCounterLoader(async () => packed)];
    const [first, second] = await Promise.all(counters.map((load) => load('cl100k_base')));
    expect(first).not.toBe(second);
  });
});

describe('a counter', () => {
  const load = createCounterLoader(async () => packed);
  const encoder = new BpeEncoder('cl100k_base', packed);

  it('names its tokenizer', async () => {
    expect((await load('cl100k_base')).tokenizer).toBe('cl100k_base');
  });

  it.each([
    ['short', 'hello world'],
    ['long', 'hello world '.repeat(1_000)],
    ['long and begun by a byte order mark', `\ufeff${'hello world '.repeat(1_000)}`],
    ['long with a lone surrogate', `\ud800${'hello world '.repeat(1_000)}`],
    ['too long to remember', 'hello world '.repeat(50_000)],
  ])('counts a %s text the same every time', async (_, text) => {
    const counter = await load('cl100k_base');
    const expected = encoder.count(text);
    expect([counter.count(text), counter.count(text), counter.count(text)]).toEqual([expected, expected, expected]);
  });

  it('prices media by its kind and never as text', async () => {
    const counter = await load('cl100k_base');
    const image = {
      kind: 'image',
      inline: true,
      data: 'A'.repeat(100_000),
      mimeType: null,
      name: null,
      detail: 'low',
    } as const;
    expect(counter.countMedia(image)).toBe(85);
  });
});

describe('a count cache', () => {
  it('forgets the longest unused when its characters run over', () => {
    const cache = new CountCache(10);
    cache.add('aaaa', 1);
    cache.add('bbbb', 2);
    expect(cache.get('aaaa')).toBe(1);
    cache.add('cccc', 3);
    expect([cache.get('aaaa'), cache.get('bbbb'), cache.get('cccc')]).toEqual([1, undefined, 3]);
  });

  it('holds nothing larger than itself', () => {
    const cache = new CountCache(3);
    cache.add('aaaa', 1);
    expect(cache.get('aaaa')).toBeUndefined();
    cache.add('bbb', 2);
    expect(cache.get('bbb')).toBe(2);
  });

  it('tells a text from the same text behind a byte order mark', () => {
    const cache = new CountCache(10);
    cache.add('\ufeffa', 2);
    expect(cache.get('a')).toBeUndefined();
    expect(cache.get('\ufeffa')).toBe(2);
  });
});
