import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readCounts } from '../../../src/core/overflow/limits.js';
import { errorBody, overflow, recognise } from './evidence.js';

describe('what a stated limit bounds (SPEC 6.5)', () => {
  it.each([
    [
      'window',
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 192041 tokens.",
    ],
    ['window', 'prompt is too long: 191989 tokens > 180000 maximum'],
    ['window', 'Your request exceeded model token limit: 262144 (requested: 269030)'],
    ['window', 'Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)'],
    [
      'window',
      '`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8204 `inputs` tokens and 2047 `max_new_tokens`',
    ],
    ['input', 'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens.'],
    ['input', 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).'],
    ['input', "This model's maximum prompt length is 131072 but the request contains 136973 tokens."],
    ['input', 'prompt token count of 65446 exceeds the limit of 64000'],
    ['tier', 'Please reduce the length of the messages or completion. Current length is 69553 while limit is 65536'],
    ['tier', 'Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).'],
    ['other', "This model's maximum context length is 3 tokens. However, your request has 8 input tokens."],
    ['other', 'Prompt length (200) exceeds maximum input length (1)'],
  ])('%s: %s', (trust, message) => {
    expect(overflow(errorBody(message)).limitTrust).toBe(trust);
  });

  it('a tier is known by its own words even beside a code', () => {
    const body = {
      error: {
        code: 'tokens_limit_reached',
        message: 'Request body too large for gpt-4o model. Max size: 8000 tokens.',
      },
    };
    expect(overflow(body, { status: 413, estimatedTokens: 20_000 })).toMatchObject({
      limit: 8_000,
      limitTrust: 'tier',
    });
  });

  it('a limit without a stated use is trusted only below the estimate of what was rejected', () => {
    const body = errorBody('Range of input length should be [1, 6000]');
    expect(overflow(body, { estimatedTokens: 7_000 })).toMatchObject({ limit: 6_000, limitTrust: 'input' });
    expect(overflow(body, { estimatedTokens: 5_000 })).toMatchObject({ limit: 6_000, limitTrust: 'other' });
    expect(overflow(body)).toMatchObject({ limit: 6_000, limitTrust: 'other' });
  });

  it('a limit above the stated use bounds something else', () => {
    expect(overflow(errorBody('prompt is too long: 1000 tokens > 200000 maximum')).limitTrust).toBe('other');
  });

  it('fields are read where the text states no limit, and only there', () => {
    const fields = { type: 'exceed_context_size_error', n_prompt_tokens: 14_429, n_ctx: 8_192 };
    expect(overflow(errorBody('the request exceeds the available context size', fields))).toMatchObject({
      limit: 8_192,
      used: 14_429,
      limitTrust: 'window',
    });
    expect(overflow(errorBody('prompt is too long: 191989 tokens > 180000 maximum', { n_ctx: 5 })).limit).toBe(180_000);
  });
});

describe('numbers that are no tokens are read as none', () => {
  it.each([
    ['an error code', 'invalid params, context window exceeds limit (2013)'],
    ['pages', 'context/cache: Job requires 1027 pages (only 1024 available)'],
    ['an excess', 'prompt too long; exceeded max context length by 100918 tokens'],
    ['a negative rest', 'max_tokens must be at least 1, got -186.'],
  ])('%s', (_, message) => {
    expect(overflow(errorBody(message))).toMatchObject({ limit: null, limitTrust: null, used: null });
  });

  it('a prompt counted in characters has no count in tokens', () => {
    const message =
      "This model's maximum context length is 32768 tokens. However, you requested 4096 output tokens and your prompt contains 240000 characters (more than 229376 characters, which is the upper bound for 28672 input tokens).";
    expect(overflow(errorBody(message))).toMatchObject({
      kind: 'context',
      limit: 32_768,
      used: null,
      usedInput: null,
      usedOutput: 4_096,
    });
  });

  it('a cap in characters is one of the body, and a short one is that of a label', () => {
    expect(overflow(errorBody('Prompt is too long: 1500000 characters, maximum 1000000 characters'))).toMatchObject({
      kind: 'bytes',
      limit: null,
      used: null,
    });
    expect(recognise(errorBody('input is too long, max 64 characters')).kind).toBe('none');
  });

  it('bytes have no numbers', () => {
    expect(overflow(errorBody('total message size 4194999 exceeds limit 2097152'))).toMatchObject({
      kind: 'bytes',
      limit: null,
      used: null,
      limitTrust: null,
    });
  });
});

describe('a fit is told from a context by the stated parts (SPEC 6.1)', () => {
  it.each([
    ['fit', 64, 8_192],
    ['fit', 8_191, 8_192],
    ['context', 8_192, 1],
    ['context', 9_000, 8_192],
    ['context', 9_000, 0],
  ])('%s with %i in and %i out of 8192', (kind, input, output) => {
    const message = `This model's maximum context length is 8192 tokens. However, you requested ${input + output} tokens (${input} in the messages, ${output} in the completion). Please reduce the length of the messages or completion.`;
    for (const code of ['context_length_exceeded', null]) {
      expect(overflow(errorBody(message, { code }))).toMatchObject({
        kind,
        limit: 8_192,
        used: input + output,
        usedInput: input,
        usedOutput: output,
      });
    }
  });
});

describe('counts are read however they are written', () => {
  const group = (count: number, separator: string): string => String(count).replace(/\B(?=(?:\d{3})+$)/g, separator);

  it('separators and none give the same numbers', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1_024, max: 2_000_000 }),
        fc.integer({ min: 1, max: 2_000_000 }),
        fc.constantFrom('', ',', '.', '_', ' '),
        (limit, more, separator) => {
          const used = limit + more;
          const counts = readCounts(
            `prompt is too long: ${group(used, separator)} tokens > ${group(limit, separator)} maximum`,
            null,
          );
          expect(counts).toMatchObject({ limit, used, limitTrust: 'window' });
        },
      ),
    );
  });

  it('k and M are thousands and millions', () => {
    expect(readCounts('the prompt has 212.5k tokens, but the context window is 200k tokens', null)).toMatchObject({
      limit: 200_000,
      used: 212_500,
    });
    expect(readCounts('context window of 1M', 2_000_000)).toMatchObject({ limit: 1_000_000 });
  });

  it('a count below which the provider did not look is marked as a floor', () => {
    expect(
      readCounts('maximum context length is 8192 tokens. your prompt contains at least 8193 input tokens', null),
    ).toMatchObject({ used: 8_193, usedIsFloor: true });
    expect(
      readCounts('maximum context length is 8192 tokens. your messages resulted in 8193 tokens', null),
    ).toMatchObject({ used: 8_193, usedIsFloor: false });
  });
});
