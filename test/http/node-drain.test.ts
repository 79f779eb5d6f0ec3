import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { watchRequests } from '../../src/http/node-drain.js';

const never = new AbortController().signal;

/** A server that leaves its answers to the test. */
async function serve(graceMs: number) {
  const server = createServer();
  const drain = watchRequests(server, graceMs);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const next = async (): Promise<ServerResponse> => ((await once(server, 'request')) as [unknown, ServerResponse])[1];
  const send = (text: string): Socket => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(text);
    return socket;
  };
  return { drain, next, send, port };
}

const HALF = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf';

describe('draining a server', () => {
  it('is over at once where nothing is being answered', async () => {
    const { drain } = await serve(60_000);
    await drain(never);
  });

  it('waits for an answer that is under way', async () => {
    const { drain, next, port } = await serve(0);
    const answered = once(get({ port, host: '127.0.0.1' }), 'response');
    const response = await next();
    let over = false;
    const drained = drain(never).then(() => (over = true));
    response.write('first');
    const [incoming] = (await answered) as [NodeJS.ReadableStream];
    expect(over).toBe(false);
    response.end();
    incoming.resume();
    await drained;
  });

  it('drops a request that has not come in full after the grace, and nothing else', async () => {
    const { drain, next, send } = await serve(0);
    const whole = next();
    send('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    const response = await whole;
    const arrived = next();
    const half = send(HALF);
    const halfResponse = await arrived;
    const drained = drain(never);
    await once(half, 'close');
    expect(halfResponse.req.socket.destroyed).toBe(true);
    expect(response.req.socket.destroyed).toBe(false);
    response.end();
    await drained;
  });

  it('spares one whose answer has begun before its end, until the limit', async () => {
    const { drain, next, send } = await serve(0);
    const arrived = next();
    const half = send(HALF);
    const response = await arrived;
    response.write('early');
    await once(half, 'data');
    const limit = new AbortController();
    const drained = drain(limit.signal);
    // The grace is over when a timer set after it is.
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(response.req.socket.destroyed).toBe(false);
    limit.abort();
    await drained;
    expect(response.req.socket.destroyed).toBe(true);
  });

  it.each(['before', 'after'])('ends every connection at the limit, aborted %s', async (when) => {
    const { drain, next, send } = await serve(60_000);
    const arrived = next();
    const socket = send('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await arrived;
    const limit = new AbortController();
    if (when === 'before') limit.abort();
    const drained = drain(limit.signal);
    limit.abort();
    await drained;
    await once(socket, 'close');
  });

  it('does not wait for the second of two requests on a connection that closes during the first', async () => {
    const { drain, next, send } = await serve(60_000);
    const first = next();
    const socket = send('GET /1 HTTP/1.1\r\nhost: a\r\n\r\n');
    await first;
    const second = next();
    socket.write('GET /2 HTTP/1.1\r\nhost: a\r\n\r\n');
    await second;
    socket.destroy();
    await drain(never);
  });
});
