import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createNodeServer } from '../../src/http/node-server.js';

async function serve() {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.get('/', (c) =>
    c.json({ headers: Object.keys(c.env.incoming.headers).length, key: c.req.header('authorization') }),
  );
  app.post('/', async (c) => c.text(await c.req.text()));
  app.onError((_, c) => c.text('', 500));
  const defects: unknown[] = [];
  const server = createNodeServer(app, (defect) => defects.push(defect));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  /** What comes back for these bytes, until the connection closes. */
  const say = async (text: string): Promise<{ head: string; body: string }> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(text);
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    return { head, body };
  };
  return { say, defects };
}

const request = (headers: readonly string[]): string =>
  ['GET / HTTP/1.1', 'host: a', 'connection: close', ...headers, '', ''].join('\r\n');

describe('a request too broken for the app', () => {
  it.each([
    [431, 'headers_too_large', request(Array.from({ length: 2_000 }, (_, index) => `x-${index}: some value`))],
    [431, 'headers_too_large', request([`x-a: ${'a'.repeat(70_000)}`])],
    [431, 'headers_too_large', `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nhost: a\r\n\r\n`],
    [400, 'invalid_request', 'this is no HTTP\r\n\r\n'],
    [400, 'invalid_request', request(['content-length: seven'])],
    [
      413,
      'body_too_large',
      `POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5;${'e'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`,
    ],
  ])('is told so in the form of every other error: %s %s', async (status, code, text) => {
    const { say, defects } = await serve();
    const { head, body } = await say(text);
    expect(head.split('\r\n')[0]).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(head).toContain('content-type: application/json');
    expect(JSON.parse(body)).toEqual({
      error: { message: expect.any(String), type: 'invalid_request_error', param: null, code },
    });
    expect(defects).toEqual([]);
  });
});

describe('very many headers', () => {
  it('are all read: none is left away in silence', async () => {
    const { say } = await serve();
    const many = Array.from({ length: 1_500 }, (_, index) => `${index.toString(36)}:`);
    const { head, body } = await say(request([...many, 'authorization: Bearer last']));
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    expect(JSON.parse(body)).toEqual({ headers: 1_503, key: 'Bearer last' });
  });
});
