import { describe, expect, test } from 'vitest';
import { createMarkedCache } from '../../src/simulator/marked-cache.js';
import type { PromptPart } from '../../src/simulator/prompt-tokens.js';
import { jsonOf, post, simulate } from './simulate.js';

/** A token a character: plain enough to reckon with. */
const letters = { tokenizer: 'letters', count: (text: string) => text.length, countMedia: () => 0 };

/** Parts of so many tokens each; those in upper case are marked. */
const prompt = (...parts: readonly (readonly [letter: string, tokens: number])[]): readonly PromptPart[] =>
  parts.map(([letter, tokens]) => ({ text: letter.toLowerCase(), tokens, isMarked: letter !== letter.toLowerCase() }));

describe('a cache of what is marked', () => {
  test('keeps what goes up to a mark, and has all of it or nothing', () => {
    const cache = createMarkedCache(letters);
    const first = prompt(['a', 1_000], ['B', 500], ['c', 300]);
    expect(cache.meet('m', first)).toMatchObject({ cachedTokens: 0, writtenTokens: 1_500, broken: false });
    expect(cache.meet('m', first)).toMatchObject({ cachedTokens: 1_500, writtenTokens: 0 });
    const changed = prompt(['a', 1_000], ['X', 500], ['c', 300]);
    expect(cache.meet('m', changed)).toMatchObject({ cachedTokens: 0, writtenTokens: 1_500, broken: true });
  });

  test('finds an earlier mark where the request has moved its own on', () => {
    const cache = createMarkedCache(letters);
    cache.meet('m', prompt(['a', 1_000], ['B', 500]));
    const next = prompt(['a', 1_000], ['b', 500], ['c', 300], ['D', 200]);
    expect(cache.meet('m', next)).toMatchObject({ cachedTokens: 1_500, writtenTokens: 500, broken: false });
  });

  test('looks back 20 parts from a mark and no further', () => {
    const steps = (count: number) => Array.from({ length: count }, () => ['s', 1] as const);
    for (const [count, cachedTokens] of [
      [18, 1_100],
      [19, 0],
    ] as const) {
      const cache = createMarkedCache(letters);
      cache.meet('m', prompt(['A', 1_100]));
      expect(cache.meet('m', prompt(['a', 1_100], ...steps(count), ['E', 1]))).toMatchObject({ cachedTokens });
    }
  });

  test('keeps nothing without a mark, nothing below 1,024 tokens, and nothing of another model', () => {
    const cache = createMarkedCache(letters);
    for (const parts of [prompt(['a', 2_000]), prompt(['A', 1_023])]) {
      expect(cache.meet('m', parts)).toMatchObject({ cachedTokens: 0, writtenTokens: 0 });
    }
    cache.meet('m', prompt(['A', 2_000]));
    expect(cache.meet('other', prompt(['A', 2_000])).cachedTokens).toBe(0);
  });
});

describe('usage of a message', () => {
  const words = 'some words of a long beginning '.repeat(300);
  const text = (mark: boolean, said = words) => ({
    type: 'text',
    text: said,
    ...(mark ? { cache_control: { type: 'ephemeral' } } : {}),
  });

  test('counts what was read from the cache, what was written, and the rest apart', async () => {
    const simulator = await simulate();
    const usageOf = async (more: object) => {
      const response = await post(simulator, '/messages', { model: 'm', max_tokens: 50, ...more });
      const { usage } = await jsonOf(response);
      return [usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.input_tokens];
    };
    const first = { messages: [{ role: 'user', content: [text(true)] }] };
    const [read, written, plain] = await usageOf(first);
    expect([read, plain]).toEqual([0, 3]);
    expect(written).toBeGreaterThan(1_024);
    // The mark has moved on, and what it left is a plain text.
    const messages = [
      { role: 'user', content: words },
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: [text(true, 'Go on.')] },
    ];
    const [readNow, writtenNow] = await usageOf({ messages });
    expect(readNow).toBe(written);
    expect(writtenNow).toBeGreaterThan(0);
    expect(
      await usageOf({ messages: [{ role: 'user', content: words }], cache_control: { type: 'ephemeral' } }),
    ).toEqual([written, 0, 3]);
    expect(simulator.requests.map(({ prefix }) => prefix?.broken)).toEqual([false, false, true]);
    const total = simulator.requests.map(({ reply, promptTokens }) => [reply?.usage.promptTokens, promptTokens]);
    for (const [reported, counted] of total) expect(reported).toBe(counted);
  });

  test('knows of no cache where nothing is marked', async () => {
    const simulator = await simulate();
    const body = { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: words }] };
    await post(simulator, '/messages', body);
    const { usage } = await jsonOf(await post(simulator, '/messages', body));
    expect(usage).toMatchObject({ cache_read_input_tokens: 0, cache_creation_input_tokens: 0 });
    expect(usage.input_tokens).toBe(simulator.requests[1]?.promptTokens);
  });
});
