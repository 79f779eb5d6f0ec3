import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discoverWindows } from '../../src/upstream/discover-windows.js';

const one = (entry: object): number | undefined =>
  discoverWindows({ object: 'list', data: [{ id: 'm', object: 'model', ...entry }] }).get('m');

describe('the list of models', () => {
  it.each([
    ['vLLM', { max_model_len: 32_768, root: 'm', permission: [] }, 32_768],
    ['OpenRouter', { context_length: 1_000_000, top_provider: { context_length: 200_000 } }, 200_000],
    ['OpenRouter without a top provider', { context_length: 8_192, top_provider: null }, 8_192],
    ['llama.cpp', { meta: { n_vocab: 151_936, n_ctx_train: 131_072, n_ctx: 16_384 } }, 16_384],
    ['llama.cpp, older', { meta: { n_vocab: 151_936, n_ctx_train: 131_072 } }, 131_072],
    ['a llama.cpp router', { status: { value: 'loaded', args: ['llama-server', '--ctx-size', '32768'] } }, 32_768],
    ['LM Studio, loaded', { max_context_length: 131_072, loaded_context_length: 4_096 }, 4_096],
    ['LM Studio, not loaded', { state: 'not-loaded', max_context_length: 32_768 }, 32_768],
    ['Groq', { context_window: 131_072, max_completion_tokens: 32_768, active: true }, 131_072],
    ['Mistral', { max_context_length: 32_768, capabilities: { completion_chat: true } }, 32_768],
    [
      'Copilot',
      { capabilities: { limits: { max_context_window_tokens: 128_000, max_output_tokens: 4_096 } } },
      128_000,
    ],
    ['LiteLLM', { max_input_tokens: 262_144, max_output_tokens: 262_144 }, 262_144],
    ['digits in a string', { context_length: '200000' }, 200_000],
    ['several providers', { providers: [{ context_length: 131_072 }, { context_length: 32_768 }, {}] }, 32_768],
    ['a list without windows, as OpenAI has it', { owned_by: 'openai' }, undefined],
    ['only a cap on the output', { max_completion_tokens: 8_192, max_tokens: 4_096 }, undefined],
    ['a window that is none', { max_model_len: 3, context_length: 0, context_window: -1, n_ctx: 1e12 / 7 }, undefined],
  ])('of %s is read, SPEC 6.5', (_, entry, expected) => {
    expect(one(entry)).toBe(expected);
  });

  it('may be an object with data or models, or a bare array; ids as clients send them', () => {
    const entries = [{ id: 'a/b', context_length: 4_096 }, { name: 'c', context_length: 8_192 }, { context_length: 1 }];
    const expected = new Map([
      ['a/b', 4_096],
      ['c', 8_192],
    ]);
    expect(discoverWindows({ data: entries })).toEqual(expected);
    expect(discoverWindows({ models: entries })).toEqual(expected);
    expect(discoverWindows(entries)).toEqual(expected);
  });

  it('that names a model twice means the smaller window', () => {
    const entries = [8_192, 4_096, 16_384].map((context_length) => ({ id: 'm', context_length }));
    expect(discoverWindows(entries)).toEqual(new Map([['m', 4_096]]));
  });

  it('keeps a bounded number of models and depth', () => {
    const many = Array.from({ length: 20_000 }, (_, index) => ({ id: `m${index}`, context_length: 4_096 }));
    expect(discoverWindows(many).size).toBe(5_000);
    let deep: object = { n_ctx: 4_096 };
    for (let level = 0; level < 10_000; level += 1) deep = { meta: deep };
    expect(one(deep)).toBeUndefined();
  });

  it('of any other shape tells nothing and throws nothing', () => {
    for (const body of [null, 'list', 7, {}, { data: null }, { data: [null, 1, 'm', []] }]) {
      expect(discoverWindows(body).size).toBe(0);
    }
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        for (const found of discoverWindows(body).values()) expect(found).toBeGreaterThanOrEqual(1_024);
      }),
    );
  });
});
