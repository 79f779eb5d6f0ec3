import { describe, expect, it } from 'vitest';
import { isUpgrade, requestHeaders, responseHeaders } from '../../src/upstream/headers.js';

const plain = { apiKey: null, readsReply: false, rewritten: false };

describe('requestHeaders', () => {
  it('passes end-to-end headers on as they are', () => {
    const headers = {
      authorization: 'Bearer client',
      'content-type': 'application/json',
      'content-length': '12',
      'content-encoding': 'gzip',
      'accept-encoding': 'gzip, br',
      'openai-organization': 'org',
      forwarded: 'for=192.0.2.1',
      'x-forwarded-for': '192.0.2.1',
      'user-agent': 'test',
    };
    expect(requestHeaders(headers, plain)).toEqual(headers);
  });

  it('drops hop-by-hop headers, those that connection names, and what our own server answered', () => {
    const headers = {
      connection: 'close, X-Hop , keep-alive',
      'x-hop': '1',
      'keep-alive': 'timeout=5',
      'proxy-authorization': 'Basic secret',
      'proxy-connection': 'keep-alive',
      te: 'trailers',
      trailer: 'x-sum',
      'transfer-encoding': 'chunked',
      upgrade: 'h2c',
      'http2-settings': 'AAMAAABk',
      host: 'spillway.example',
      expect: '100-continue',
      accept: '*/*',
    };
    expect(requestHeaders(headers, plain)).toEqual({ accept: '*/*' });
  });

  it('sends no x-spillway header upstream, known or not', () => {
    expect(requestHeaders({ 'x-spillway-conversation': 'c', 'x-spillway-anything': '1', a: 'b' }, plain)).toEqual({
      a: 'b',
    });
  });

  it('asks for an unencoded reply where the reply is read', () => {
    const options = { ...plain, readsReply: true };
    expect(requestHeaders({ 'accept-encoding': 'gzip' }, options)).toEqual({ 'accept-encoding': 'identity' });
    expect(requestHeaders({}, options)).toEqual({ 'accept-encoding': 'identity' });
  });

  it('drops what described the bytes of a body that was rewritten', () => {
    const headers = { 'content-length': '9', 'content-encoding': 'gzip', 'content-digest': 'x', 'content-type': 'a/b' };
    expect(requestHeaders(headers, { ...plain, rewritten: true })).toEqual({ 'content-type': 'a/b' });
  });

  it("puts the route's own key in every place where the client put one", () => {
    const send = (headers: Record<string, string>) => requestHeaders(headers, { ...plain, apiKey: 'own' });
    expect(send({ authorization: 'Bearer client' })).toEqual({ authorization: 'Bearer own' });
    expect(send({ 'api-key': 'client' })).toEqual({ 'api-key': 'own' });
    expect(send({ authorization: 'Bearer client', 'x-api-key': 'client' })).toEqual({
      authorization: 'Bearer own',
      'x-api-key': 'own',
    });
  });

  it("puts the route's own key where the API expects it when the client sent none", () => {
    expect(requestHeaders({}, { ...plain, apiKey: 'own' })).toEqual({ authorization: 'Bearer own' });
    expect(requestHeaders({ 'anthropic-version': '2023-06-01' }, { ...plain, apiKey: 'own' })).toEqual({
      'anthropic-version': '2023-06-01',
      'x-api-key': 'own',
    });
  });
});

describe('responseHeaders', () => {
  it('keeps order and repeated names', () => {
    const headers = [
      ['set-cookie', 'a=1'],
      ['content-length', '3'],
      ['set-cookie', 'b=2'],
      ['content-encoding', 'gzip'],
    ] as const;
    expect(responseHeaders(headers, { rewritten: false })).toEqual(headers);
  });

  it('drops hop-by-hop headers, those that any connection header names, and those of another Spillway', () => {
    const headers = [
      ['connection', 'x-a'],
      ['connection', 'X-B'],
      ['x-a', '1'],
      ['x-b', '2'],
      ['transfer-encoding', 'chunked'],
      ['keep-alive', 'timeout=5'],
      ['proxy-authenticate', 'Basic'],
      ['x-spillway-action', 'auto'],
      ['x-request-id', 'r'],
    ] as const;
    expect(responseHeaders(headers, { rewritten: false })).toEqual([['x-request-id', 'r']]);
  });

  it('drops what described the bytes of a body that was rewritten', () => {
    const headers = [
      ['content-length', '3'],
      ['content-encoding', 'br'],
      ['content-type', 'text/plain'],
    ] as const;
    expect(responseHeaders(headers, { rewritten: true })).toEqual([['content-type', 'text/plain']]);
  });
});

describe('isUpgrade', () => {
  it('tells a websocket handshake from an ordinary request', () => {
    expect(isUpgrade({ connection: 'keep-alive, Upgrade', upgrade: 'websocket' })).toBe(true);
    expect(isUpgrade({ connection: 'keep-alive' })).toBe(false);
    expect(isUpgrade({ upgrade: 'h2c' })).toBe(false);
  });
});
