import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestUrl } from '../../src/upstream/request-url.js';

describe('requestUrl', () => {
  it("lets a base path stand for the client's /v1", () => {
    expect(requestUrl('https://api.openai.com/v1', '/v1/chat/completions', '')).toBe(
      'https://api.openai.com/v1/chat/completions',
    );
    expect(requestUrl('http://localhost:11434/v1/', '/v1/models', '')).toBe('http://localhost:11434/v1/models');
    expect(requestUrl('https://openrouter.ai/api/v1', '/v1/models', '')).toBe('https://openrouter.ai/api/v1/models');
    expect(requestUrl('https://host/v1beta/openai', '/v1', '')).toBe('https://host/v1beta/openai');
    expect(requestUrl('https://host/api', '/v1beta/models', '')).toBe('https://host/api/v1beta/models');
  });

  it('appends the whole path to a base without one', () => {
    expect(requestUrl('https://api.anthropic.com', '/v1/messages', '')).toBe('https://api.anthropic.com/v1/messages');
    expect(requestUrl('https://api.anthropic.com/', '/v1/messages', '')).toBe('https://api.anthropic.com/v1/messages');
  });

  it('keeps the characters of path and query', () => {
    const query = '?a=%20b+c&d=[1]|\'"&e=?/../#é';
    const path = '/v1/models/org%2Fname:tag@1;x=%C3%A9//%252e%252e/a..b/...';
    expect(requestUrl('https://host/v1', path, query)).toBe(`https://host/v1${path.slice(3)}${query}`);
  });

  it("adds the client's query to one that the base has", () => {
    expect(requestUrl('https://host/v1?api-version=1', '/v1/models', '?a=b')).toBe(
      'https://host/v1/models?api-version=1&a=b',
    );
    expect(requestUrl('https://host/v1?api-version=1', '/v1/models', '')).toBe('https://host/v1/models?api-version=1');
  });

  it('leaves the credentials of a base out', () => {
    expect(requestUrl('https://user:word@host/v1', '/v1/models', '')).toBe('https://host/v1/models');
  });

  it.each([
    '/v1/..',
    '/v1/../admin',
    '/v1/./models',
    '/v1/%2e%2E/admin',
    '/v1/.%2e/admin',
    '/v1/files/..%2f..%2Fadmin',
    '/v1/files%2f..%5cadmin',
    '/v1/..\\admin',
    '/v1/.\t./admin',
    '/v1/models#x',
    '/v1/models?x',
    '/v1/a b',
  ])('refuses %j, which could lead elsewhere', (path) => {
    expect(() => requestUrl('https://host/v1', path, '')).toThrow(
      expect.objectContaining({ code: 'invalid_request', field: 'path' }),
    );
  });

  it('never leaves the base path, as a URL parser and as a server that decodes the path read it', () => {
    const piece = fc.constantFrom(
      '/',
      '//',
      '.',
      '..',
      '%2e',
      '%2E',
      '%2f',
      '%5C',
      '\\',
      '\t',
      'a',
      '%25',
      '@',
      ':',
      'evil.example',
      '#',
      '?',
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        let url: URL;
        try {
          url = new URL(requestUrl('https://host/base/v1', `/v1/${pieces.join('')}`, ''));
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_request' });
          return;
        }
        expect(url.origin).toBe('https://host');
        const decoded = new URL(
          `https://host${decodeURIComponent(url.pathname).replaceAll('?', '').replaceAll('#', '')}`,
        );
        expect(url.pathname.startsWith('/base/v1/')).toBe(true);
        expect(decoded.pathname.startsWith('/base/v1/')).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
