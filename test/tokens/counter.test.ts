import { describe, expect, it } from 'vitest';
import { BpeEncoder } from '../../src/tokens/bpe-encoder.js';
import { CountCache, keyOf } from '../../src/tokens/count-cache.js';
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
    ['very long', 'hello world '.repeat(50_000)],
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

describe('counting ahead', () => {
  const load = createCounterLoader(async () => packed);
  const megabyte = 'Zm9vYmFy8/+q'.repeat(90_000);

  it('gives the very same counts, of texts that were asked for and of others', async () => {
    const counter = await load('cl100k_base');
    const texts = ['', 'hello world', 'hello world', 'plain words '.repeat(1_000), 'a'.repeat(40_000)];
    const ready = await counter.ahead(texts);
    expect(ready.tokenizer).toBe('cl100k_base');
    const others = ['more', 'of all '.repeat(2_000)];
    expect([...texts, ...others].map((text) => ready.count(text))).toEqual(
      [...texts, ...others].map((text) => counter.count(text)),
    );
  });

  it.each([
    ['one long text', [megabyte]],
    ['one long piece', ['z'.repeat(300_000)]],
    ['very many short texts', Array.from({ length: 40_000 }, (_, index) => `${index}: ${'x'.repeat(30)}qzjk`)],
  ])('lets the process serve others meanwhile: %s', async (_, texts) => {
    const counter = await load('cl100k_base');
    let served = 0;
    let isCounting = true;
    const serve = (): void => {
      if (!isCounting) return;
      served++;
      setTimeout(serve, 0);
    };
    setTimeout(serve, 0);
    await counter.ahead(texts);
    isCounting = false;
    expect(served).toBeGreaterThan(1);
  });

  it('counts what was counted before without another step, however long', async () => {
    const counter = await createCounterLoader(async () => packed)('cl100k_base');
    await counter.ahead([megabyte]);
    let served = 0;
    setTimeout(() => served++, 0);
    await counter.ahead([`${megabyte.slice(0, -1)}${megabyte.slice(-1)}`]);
    counter.count(megabyte);
    expect(served).toBe(0);
  });
});

describe('a count cache', () => {
  it('forgets the longest unused when it is full', () => {
    const cache = new CountCache(2);
    cache.set('a', 1);
    cache.set('b', 2);
    expect(cache.get('a')).toBe(1);
    cache.set('c', 3);
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 3]);
  });

  it('holds a count once, the latest', () => {
    const cache = new CountCache(2);
    for (const count of [1, 2, 3]) cache.set('a', count);
    cache.set('b', 4);
    expect([cache.get('a'), cache.get('b')]).toEqual([3, 4]);
  });

  it('knows texts by a digest, and tells one from the same behind a byte order mark', () => {
    expect(keyOf('a'.repeat(1_000_000))).toHaveLength(32);
    expect(keyOf('a')).toBe(keyOf('a'));
    expect(keyOf('\ufeffa')).not.toBe(keyOf('a'));
    expect(keyOf('\ud800')).toBe(keyOf('\ufffd'));
  });
});
