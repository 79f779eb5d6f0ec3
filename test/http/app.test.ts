import { Agent } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import { startApp, type RunningApp } from './start-app.js';

let app: RunningApp;
afterEach(() => app.stop());

const error = (type: string, code: string, param: string | null, message: unknown = expect.any(String)) => ({
  error: { message, type, param, code },
});

describe('a request under an API root', () => {
  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'goes to the proxy with the method %s',
    async (method) => {
      app = await startApp();
      const answer = await app.send('/v1/files/a%20b%2Fc?x=1&y=%20', { method, headers: { 'X-Thing': 'a' } });
      expect(answer).toMatchObject({ status: 200, text: 'proxied', headers: { 'x-from': 'proxy' } });
      expect(app.proxied).toMatchObject([
        { method, path: '/v1/files/a%20b%2Fc', query: '?x=1&y=%20', dialect: null, body: null },
      ]);
      expect(app.proxied[0]?.headers).toMatchObject({ 'x-thing': 'a' });
      expect(app.proxied[0]?.arrivedAt).toBeTypeOf('number');
      expect(app.defects).toEqual([]);
    },
  );

  it('answers HEAD with the headers and no body', async () => {
    app = await startApp();
    const complaints = vi.spyOn(console, 'error');
    const answer = await app.send('/v1/models', { method: 'HEAD' });
    expect(answer).toMatchObject({ status: 200, text: '', headers: { 'x-from': 'proxy' } });
    expect(app.proxied).toMatchObject([{ method: 'HEAD', path: '/v1/models' }]);
    expect(complaints).not.toHaveBeenCalled();
    expect(app.defects).toEqual([]);
  });

  it('arrives unread: neither JSON nor an encoding nor a length is looked at', async () => {
    app = await startApp();
    const body = '{"messages": [ not json';
    const headers = {
      'content-type': 'application/json',
      'content-encoding': 'x-unheard-of',
      'transfer-encoding': 'chunked',
    };
    await app.send('/v1/chat/completions', { method: 'POST', headers, body });
    expect(app.proxied).toMatchObject([{ body, dialect: 'chat-completions', headers }]);
  });

  it('is streamed both ways: the first chunk is answered before the second is sent', async () => {
    app = await startApp({
      proxy: async (request, sink) => {
        sink.start(200, []);
        for await (const chunk of request.body ?? []) await sink.write(chunk);
        await sink.end();
      },
    });
    const head = `POST /v1/audio HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const received = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(app.port, '127.0.0.1', () => socket.write(`${head}5\r\nfirst\r\n`));
      socket.setEncoding('utf8');
      socket.on('data', (data: string) => {
        if (!text.includes('first') && `${text}${data}`.includes('first')) socket.write('6\r\nsecond\r\n0\r\n\r\n');
        text += data;
      });
      socket.on('end', () => resolve(text));
      socket.on('error', reject);
    });
    expect(received).toContain('second');
  });

  it('can be answered before its body was read to the end', async () => {
    app = await startApp({
      proxy: async (request, sink) => {
        for await (const chunk of request.body ?? []) if (chunk.byteLength > 0) break;
        sink.start(413, []);
        await sink.end();
      },
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const upload = await app.send('/v1/files', { method: 'POST', body: Buffer.alloc(8 << 20), agent });
    expect(upload.status).toBe(413);
    // The rest of the upload is taken in, and the connection serves on.
    expect((await app.send('/health', { agent })).status).toBe(200);
    agent.destroy();
  });

  it('is refused with 426 when it asks for a websocket', async () => {
    app = await startApp();
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAA',
    };
    const { status, body } = await app.json('/v1/responses', { headers });
    expect(status).toBe(426);
    expect(body).toEqual(error('invalid_request_error', 'websocket_unsupported', 'upgrade'));
    expect(app.proxied).toEqual([]);
  });

  it('goes through when it offers another protocol, as HTTP lets a server ignore that', async () => {
    app = await startApp();
    const answer = await app.send('/v1/models', { headers: { connection: 'Upgrade', upgrade: 'h2c' } });
    expect(answer.status).toBe(200);
  });

  it('loses its prefix on the way to the upstream of that prefix', async () => {
    const groq = { prefix: '/groq', baseUrl: 'https://groq.example/openai/v1', apiKey: null };
    const main = { prefix: '', baseUrl: 'https://main.example/v1', apiKey: null };
    app = await startApp({ upstreams: { main, byPrefix: new Map([['/groq', groq]]), byDialect: new Map() } });
    await app.send('/groq/v1/chat/completions?a=b', { method: 'POST', body: '{}' });
    expect(app.proxied).toMatchObject([
      { path: '/v1/chat/completions', query: '?a=b', dialect: 'chat-completions', upstream: groq },
    ]);
  });

  it('cannot climb out of its root', async () => {
    app = await startApp();
    for (const path of ['/v1/../spillway/v1/nothing', '/v1/%2e%2e/admin', '/v1/..\\admin']) {
      expect((await app.send(path)).status).toBeGreaterThanOrEqual(400);
    }
    expect(app.proxied).toEqual([]);
  });
});

describe('everything else', () => {
  it.each(['/', '/v1', '/chat/completions', '/unknown/v1/models', '/spillway', '/spillway/v1/nothing', '/health/x'])(
    'is 404 in the OpenAI error form and names %s',
    async (path) => {
      app = await startApp();
      const { status, body } = await app.json(path, { method: 'POST', body: '{}' });
      expect(status).toBe(404);
      expect(body).toEqual(
        error('invalid_request_error', 'not_found', 'path', expect.stringContaining(`There is no POST ${path} here.`)),
      );
    },
  );

  it('says how a base URL ends to a client that left /v1 out', async () => {
    app = await startApp();
    const { text } = await app.send('/chat/completions', { method: 'POST', body: '{}' });
    expect(text).toContain("A client's base URL ends in /v1.");
  });

  it('tells health to anyone, and that it stops', async () => {
    let stopping = false;
    app = await startApp({ isStopping: () => stopping });
    const headers = { host: 'anything.example' };
    expect(await app.json('/health', { headers })).toEqual({ status: 200, body: { status: 'ok' } });
    stopping = true;
    expect(await app.json('/health', { headers })).toEqual({
      status: 503,
      body: error('server_error', 'shutting_down', null),
    });
    expect((await app.send('/v1/models')).status).toBe(503);
    expect(app.proxied).toEqual([]);
  });

  it('answers a request line that is none of HTTP in the same form', async () => {
    app = await startApp();
    const { status, body } = await app.json('/v1/models', { headers: { host: 'a@b' } });
    expect(status).toBe(400);
    expect(body).toEqual(error('invalid_request_error', 'invalid_request', null));
  });
});

describe('a failure', () => {
  const secret = 'the text of a message';

  it('of our own tells the client nothing and the log its place without its message', async () => {
    app = await startApp({ proxy: () => Promise.reject(new TypeError(`${secret}\n    at ${secret}`)) });
    const { status, body } = await app.json('/v1/models');
    expect(status).toBe(500);
    expect(body).toEqual(error('server_error', 'internal_error', null, expect.not.stringContaining(secret)));
    expect(app.defects).toMatchObject([
      { kind: 'TypeError', frames: expect.arrayContaining([expect.stringContaining('app.test')]) },
    ]);
    expect(JSON.stringify(app.defects)).not.toContain(secret);
  });

  it('after the first byte breaks the response off and is reported', async () => {
    app = await startApp({
      proxy: async (_, sink) => {
        sink.start(200, []);
        await sink.write(Buffer.from('begun'));
        throw new RangeError(secret);
      },
    });
    await expect(app.send('/v1/models')).rejects.toThrow();
    expect(app.defects).toMatchObject([{ kind: 'RangeError' }]);
    expect(JSON.stringify(app.defects)).not.toContain(secret);
  });

  it('that the proxy names before it begins to answer has its status', async () => {
    app = await startApp({
      proxy: () =>
        Promise.reject(
          new SpillwayError('invalid_header', 'x-spillway-append must be true or false', 'x-spillway-append'),
        ),
    });
    expect(await app.json('/v1/models')).toEqual({
      status: 400,
      body: error(
        'invalid_request_error',
        'invalid_header',
        'x-spillway-append',
        'x-spillway-append must be true or false',
      ),
    });
    expect(app.defects).toEqual([]);
  });
});
