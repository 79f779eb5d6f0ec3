import { describe, expect, test } from 'vitest';
import { createPrefixCache } from '../../src/simulator/prefix-cache.js';
import type { PromptPart } from '../../src/simulator/prompt-tokens.js';
import { say } from '../../src/simulator/reply-plan.js';
import { exactCounter, jsonOf, postChat, simulate } from './simulate.js';

/** A token a character: plain enough to reckon with. */
const letters = { tokenizer: 'letters', count: (text: string) => text.length, countMedia: () => 0 };

const prompt = (...texts: readonly string[]): readonly PromptPart[] =>
  texts.map((text) => ({ text, tokens: text.length }));

const long = (letter: string, length = 2_000): string => letter.repeat(length);

describe('a prompt cache', () => {
  test('has nothing of a first prompt, which breaks nothing', () => {
    expect(createPrefixCache(letters).meet('m', prompt(long('a')))).toEqual({ cachedTokens: 0, broken: false });
  });

  test('has whole blocks of 128 tokens, from 1,024 on', () => {
    const cache = createPrefixCache(letters);
    cache.meet('m', prompt(long('a', 1_023)));
    expect(cache.meet('m', prompt(long('a', 1_023), 'b')).cachedTokens).toBe(0);
    cache.meet('other', prompt(long('a', 1_300)));
    expect(cache.meet('other', prompt(long('a', 1_300), 'b')).cachedTokens).toBe(1_280);
  });

  test('has the beginning of a part that changed behind it, by the count of what is shared', () => {
    const cache = createPrefixCache(letters);
    cache.meet('m', prompt(long('a'), `${long('b', 1_000)}x`));
    expect(cache.meet('m', prompt(long('a'), `${long('b', 1_000)}y`))).toEqual({ cachedTokens: 2_944, broken: true });
  });

  test('never reports more of a changed part than the part itself counts', () => {
    const cache = createPrefixCache(letters);
    cache.meet('m', prompt(long('a')));
    expect(cache.meet('m', [{ text: `${long('a', 1_999)}b`, tokens: 1_200 }]).cachedTokens).toBe(1_152);
  });

  test('shares nothing between models', () => {
    const cache = createPrefixCache(letters);
    cache.meet('m', prompt(long('a')));
    expect(cache.meet('other', prompt(long('a')))).toEqual({ cachedTokens: 0, broken: false });
  });

  test('is not broken by a prompt that goes on, or by the same once more', () => {
    const cache = createPrefixCache(letters);
    cache.meet('m', prompt(long('a')));
    expect(cache.meet('m', prompt(long('a'), 'b', 'c'))).toEqual({ cachedTokens: 1_920, broken: false });
    expect(cache.meet('m', prompt(long('a'), 'b', 'c')).broken).toBe(false);
    expect(cache.meet('m', prompt(long('a'), 'b', 'c', 'd')).broken).toBe(false);
  });

  test('is broken by what changes before the end of the newest prompt, though an old one ended there', () => {
    const cache = createPrefixCache(letters);
    cache.meet('m', prompt('user'));
    cache.meet('m', prompt('user', 'call', 'result'));
    cache.meet('m', prompt('user', 'call', 'result', 'more'));
    expect(cache.meet('m', prompt('user', 'call', 'short', 'more')).broken).toBe(true);
    expect(cache.meet('m', prompt('user', 'call', 'short', 'more', 'end')).broken).toBe(false);
    expect(cache.meet('m', prompt('user', 'checkpoint')).broken).toBe(true);
    expect(cache.meet('m', prompt('summary', 'end')).broken).toBe(true);
  });

  test('is broken by a prompt that stops in the middle of the newest', () => {
    const cache = createPrefixCache(letters);
    cache.meet('m', prompt('a', 'b', 'c'));
    expect(cache.meet('m', prompt('a', 'b')).broken).toBe(true);
    expect(cache.meet('m', prompt('a', 'b', 'd')).broken).toBe(false);
  });

  test('looks into no text that it knows whole, however many long prompts it remembers', () => {
    let counted = 0;
    const cache = createPrefixCache({ ...letters, count: (text) => (counted += text.length) });
    for (let index = 0; index < 64; index++) cache.meet('m', prompt(long('a', 1_000_000), `end ${index}`));
    expect(counted).toBeLessThan(1_000);
  });
});

describe('usage of a chat', () => {
  const chat = (model: string, ...contents: readonly string[]) => ({
    model,
    messages: contents.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content })),
  });

  test('reports what the cache had, as OpenAI does, and the record tells of it', async () => {
    const simulator = await simulate({ script: () => say('Yes.') });
    const words = 'some words of a long beginning '.repeat(300);
    const first = await jsonOf(await postChat(simulator, chat('m', words)));
    expect(first.usage.prompt_tokens_details.cached_tokens).toBe(0);
    const second = await jsonOf(await postChat(simulator, chat('m', words, 'Yes.', 'And now?')));
    const cached = second.usage.prompt_tokens_details.cached_tokens;
    expect(cached % 128).toBe(0);
    expect(cached).toBeGreaterThanOrEqual((await exactCounter()).count(words) - 128);
    expect(cached).toBeLessThanOrEqual(second.usage.prompt_tokens);
    expect(simulator.requests.map(({ prefix }) => prefix)).toEqual([
      { cachedTokens: 0, broken: false },
      { cachedTokens: cached, broken: false },
    ]);
    await postChat(simulator, { ...chat('m', words, 'No.', 'And now?'), tools: [] });
    expect(simulator.requests.at(-1)?.prefix?.broken).toBe(true);
  });

  test('reads tools before messages: other tools leave nothing of the prompt in the cache', async () => {
    const simulator = await simulate();
    const words = 'some words of a long beginning '.repeat(300);
    const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
    await postChat(simulator, { ...chat('m', words), tools: [tool('look')] });
    await postChat(simulator, { ...chat('m', words), tools: [tool('see')] });
    expect(simulator.requests.at(-1)?.prefix).toEqual({ cachedTokens: 0, broken: true });
  });

  test('reports what a plan says instead, and nothing is met by a request that is refused', async () => {
    const simulator = await simulate({
      windows: { small: 20 },
      script: () => ({ ...say('Yes.'), cachedTokens: 7 }),
    });
    const reply = await jsonOf(await postChat(simulator, chat('m', 'a question of many words')));
    expect(reply.usage.prompt_tokens_details.cached_tokens).toBe(7);
    await postChat(simulator, chat('small', 'word '.repeat(40)));
    expect(simulator.requests.at(-1)).toMatchObject({ status: 400, prefix: null });
  });
});
