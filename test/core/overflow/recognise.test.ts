import { describe, expect, it } from 'vitest';
import { overflow, recognise } from './evidence.js';

const nearlyFull = { estimatedTokens: 118_000, windowTokens: 131_072 };

describe('an error without a reason is an overflow only beside a nearly full window (SPEC 6.1)', () => {
  it.each([
    ['', 400],
    ['', 413],
    ['Bad Request', 400],
    ['{"error":{"message":"Invalid request","type":"invalid_request_error","code":"bad_response_status_code"}}', 400],
    ['{"model":"deepseek-v4.1-flash"}', 400],
    ['400 status code (no body)', 400],
    ['{"error":{"message":"Provider returned error","code":400}}', 400],
  ])('%s with %i', (body, status) => {
    expect(overflow(body, { status, ...nearlyFull })).toMatchObject({
      kind: 'context',
      reason: 'unexplained',
      limit: null,
    });
    expect(recognise(body, { status, ...nearlyFull, estimatedTokens: 117_000 }).kind).toBe(
      status === 413 ? 'bytes' : 'none',
    );
    expect(recognise(body, { status, ...nearlyFull, windowTokens: null }).kind).toBe(status === 413 ? 'bytes' : 'none');
  });

  it.each([
    ['tools is not supported by this model', 400],
    ['{"error":{"message":"Bad request","code":"unsupported_parameter"}}', 400],
    ['', 500],
    ['', 401],
    ['Internal server error', 500],
  ])('an error with a reason, or with another status, is none: %s with %i', (body, status) => {
    expect(recognise(body, { status, ...nearlyFull }).kind).toBe('none');
  });
});

describe('codes (SPEC 6.1)', () => {
  it.each([
    'context_length_exceeded',
    'CONTEXT_LENGTH_EXCEEDED',
    'model_context_window_exceeded',
    'exceed_context_size_error',
    'context_exceeded',
    'tokens_limit_reached',
    'model_max_prompt_tokens_exceeded',
    'token_quantity_exceeded',
    'ContextWindowExceededError',
    'prompt_too_long',
    'urn:problem:context-length-exceeded',
  ])('%s is a context overflow by itself', (code) => {
    expect(overflow({ error: { code, message: 'no' } })).toMatchObject({ kind: 'context', reason: 'code' });
    expect(overflow({ error: { type: code } }, { status: 200 }).kind).toBe('context');
  });

  it.each([
    'TOO_MANY_TOKENS',
    'invalid_request_error',
    'InvalidParameter',
    'token_quota_exceeded',
    'max_tokens_exceeded',
    'context_not_found',
    'string_above_max_length',
  ])('%s is no evidence', (code) => {
    expect(recognise({ error: { code, message: 'no' } }).kind).toBe('none');
  });

  it('1261 is an overflow at Zhipu alone', () => {
    const body = { error: { code: '1261', message: '...' } };
    for (const upstreamHost of ['open.bigmodel.cn', 'api.z.ai', 'api.z.ai:443'])
      expect(recognise(body, { upstreamHost }).kind).toBe('context');
    for (const upstreamHost of ['api.example.test', 'notz.ai', null])
      expect(recognise(body, { upstreamHost }).kind).toBe('none');
  });

  it('a code for bytes yields to words about tokens', () => {
    expect(
      overflow({ error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } }, { status: 413 })
        .kind,
    ).toBe('bytes');
    expect(
      overflow({ error: { type: 'request_too_large', message: 'Prompt is too long' } }, { status: 413 }).kind,
    ).toBe('context');
  });
});

describe('vetoes (SPEC 6.1)', () => {
  const overflowText = 'prompt is too long: 213462 tokens > 200000 maximum';

  it.each([
    'tokens per minute',
    'TPM: Limit 3',
    'rate limit reached',
    'please wait before the next one',
    'try again in 20s',
    'your quota',
    'can only afford 5',
    'monthly limit',
    'context deadline exceeded',
    'not enough memory',
    'increase the batch size',
    '2000 pixels',
    '每分钟限流',
  ])('%s makes it none', (words) => {
    expect(recognise({ error: { message: `${overflowText}. ${words}` } }).kind).toBe('none');
  });

  it('a link to a page on rate limits makes nothing of it', () => {
    expect(
      recognise({ error: { message: `${overflowText}. See https://example.test/docs/rate-limits?quota=1` } }).kind,
    ).toBe('context');
  });

  it('an advice to try again makes nothing of it', () => {
    expect(
      recognise({ error: { message: `${overflowText}. Shorten it and try again in a new conversation.` } }).kind,
    ).toBe('context');
  });

  it('the reason for the log holds nothing of the body', () => {
    const secret = 'sk-secret';
    for (const body of [
      { error: { message: `${overflowText} ${secret}` } },
      { error: { code: `rate_limit_${secret}` } },
      { error: { message: secret } },
    ]) {
      expect(recognise(body).reason).not.toContain(secret);
    }
  });
});
