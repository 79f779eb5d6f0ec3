import { describe, expect, it } from 'vitest';
import { isDialectName, targetOf, type Upstreams } from '../../src/http/upstreams.js';
import type { UpstreamRoute } from '../../src/proxy/request.js';

const route = (name: string, prefix = ''): UpstreamRoute => ({
  prefix,
  baseUrl: `https://${name}.example/v1`,
  apiKey: null,
});
const main = route('main');
const groq = route('groq', '/groq');
const responses = route('responses');
const anthropic = route('anthropic');
const upstreams: Upstreams = {
  main,
  byPrefix: new Map([['/groq', groq]]),
  byDialect: new Map([
    ['responses', responses],
    ['anthropic-messages', anthropic],
  ]),
};
const target = (method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  targetOf(method, path, headers, upstreams);

describe('the upstream of a request', () => {
  it.each([
    ['POST', '/v1/chat/completions', 'chat-completions', main],
    ['GET', '/v1/chat/completions', null, main],
    ['POST', '/v1/responses', 'responses', responses],
    ['POST', '/v1/responses/compact', 'responses', responses],
    ['GET', '/v1/responses/compact', null, responses],
    ['GET', '/v1/responses/resp_1', null, responses],
    ['POST', '/v1/responses/resp_1/cancel', null, responses],
    ['POST', '/v1/messages', 'anthropic-messages', anthropic],
    ['POST', '/v1/messages/count_tokens', null, anthropic],
    ['GET', '/v1/responsesx', null, main],
    ['POST', '/v1/embeddings', null, main],
    ['POST', '/v1/', null, main],
  ] as const)('of %s %s is its dialect’s or the main one', (method, path, dialect, upstream) => {
    expect(target(method, path)).toEqual({ path, dialect, upstream });
  });

  it('is decided by the prefix alone where there is one', () => {
    expect(target('POST', '/groq/v1/responses')).toEqual({
      path: '/v1/responses',
      dialect: 'responses',
      upstream: groq,
    });
  });

  it('of an Anthropic client’s other requests is Anthropic’s, so that its key reaches no one else', () => {
    const headers = { 'anthropic-version': '2023-06-01' };
    expect(target('GET', '/v1/models', headers)?.upstream).toBe(anthropic);
    expect(target('GET', '/v1/responses/a', headers)?.upstream).toBe(responses);
    expect(target('GET', '/groq/v1/models', headers)?.upstream).toBe(groq);
  });

  it.each([
    '/v1',
    '/',
    '',
    '/groq',
    '/groq/v1',
    '/GROQ/v1/models',
    '/other/v1/models',
    '//v1/models',
    '/groq/x/v1/models',
    '/x/groq/v1/models',
  ])('is none for %s', (path) => expect(target('GET', path)).toBeNull());

  it('knows a dialect by its own name only', () => {
    expect(['responses', 'toString', '__proto__', ''].map(isDialectName)).toEqual([true, false, false, false]);
  });
});
