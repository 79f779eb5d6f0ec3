import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createNodeSink } from '../../src/http/node-sink.js';
import type { Sink } from '../../src/proxy/sink.js';

interface Exchange {
  readonly sink: Sink;
  readonly response: ServerResponse;
}

/** A server whose next response is handed to the test. */
async function serveOne() {
  const server = createServer({ highWaterMark: 16 * 1024 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const exchange = new Promise<Exchange>((resolve) => {
    server.once('request', (_, response) => resolve({ sink: createNodeSink(response), response }));
  });
  return { port: (server.address() as AddressInfo).port, exchange, server };
}

/** A client that has received the headers of an answer begun with status 200. */
async function begun(headers: readonly (readonly [string, string])[] = []) {
  const { port, exchange } = await serveOne();
  const request = get({ port, host: '127.0.0.1', agent: false });
  request.on('error', () => undefined);
  const { sink, response } = await exchange;
  sink.start(200, headers);
  const [incoming] = (await once(request, 'response')) as [IncomingMessage];
  return { sink, response, incoming };
}

const piece = new Uint8Array(64 * 1024).fill(120);

describe('createNodeSink', () => {
  it('sends status and headers at once, in order, repeated names kept', async () => {
    const { incoming } = await begun([
      ['x-b', '1'],
      ['set-cookie', 'a=1'],
      ['x-a', 'caf\u00e9'],
      ['set-cookie', 'b=2'],
    ]);
    expect(incoming.statusCode).toBe(200);
    expect(incoming.rawHeaders.slice(0, 8)).toEqual([
      'x-b',
      '1',
      'set-cookie',
      'a=1',
      'x-a',
      'caf\u00e9',
      'set-cookie',
      'b=2',
    ]);
  });

  it('sends each piece as it is written, and tells an ordinary end from a departure', async () => {
    const { sink, response, incoming } = await begun();
    const closed = once(response, 'close');
    await sink.write(Buffer.from('one'));
    const [one] = (await once(incoming, 'data')) as [Buffer];
    expect(one.toString()).toBe('one');
    await sink.write(Buffer.from('two'));
    const ended = once(incoming, 'end');
    await sink.end();
    await closed;
    await ended;
    expect(incoming.complete).toBe(true);
    expect(sink.closed.aborted).toBe(false);
  });

  it("holds writes to the client's pace, and goes on when the client reads", async () => {
    const { sink, incoming } = await begun();
    let writtenBytes = 0;
    const totalBytes = 32 * 1024 * 1024;
    const writing = (async () => {
      for (; writtenBytes < totalBytes; writtenBytes += piece.length) await sink.write(piece);
      await sink.end();
    })();
    for (let last = -1; last !== writtenBytes;) {
      last = writtenBytes;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(writtenBytes).toBeLessThan(totalBytes / 2);
    let readBytes = 0;
    for await (const chunk of incoming) readBytes += (chunk as Buffer).length;
    await writing;
    expect(readBytes).toBe(totalBytes);
  });

  it('adds no listener per write', async () => {
    const { sink, response, incoming } = await begun();
    const count = (): number =>
      ['drain', 'close', 'error', 'finish'].reduce((sum, name) => sum + response.listenerCount(name), 0);
    const before = count();
    const writes = Array.from({ length: 100 }, () => sink.write(piece));
    expect(count()).toBe(before);
    incoming.resume();
    await Promise.all(writes);
    expect(count()).toBe(before);
  });

  it('aborts its signal when the client leaves, and lets a write that was held back go', async () => {
    const { sink, incoming } = await begun();
    const writes = Promise.all(Array.from({ length: 200 }, () => sink.write(piece)));
    const left = once(sink.closed, 'abort');
    incoming.destroy();
    await left;
    await writes;
  });

  it('does nothing once the client has left', async () => {
    const { sink, response, incoming } = await begun();
    const left = once(sink.closed, 'abort');
    incoming.destroy();
    await left;
    await sink.write(piece);
    await sink.end();
    sink.start(200, []);
    sink.abort();
    expect(response.writableEnded).toBe(false);
  });

  it('aborts its signal when the client leaves before the answer began', async () => {
    const { port, exchange } = await serveOne();
    const request = get({ port, host: '127.0.0.1', agent: false }).on('error', () => undefined);
    const { sink } = await exchange;
    const left = once(sink.closed, 'abort');
    request.destroy();
    await left;
    sink.start(200, []);
    await sink.write(piece);
  });

  it('knows of a client that had left before', async () => {
    const { port, exchange } = await serveOne();
    const request = get({ port, host: '127.0.0.1', agent: false }).on('error', () => undefined);
    const { response } = await exchange;
    const closed = once(response, 'close');
    request.destroy();
    await closed;
    expect(createNodeSink(response).closed.aborted).toBe(true);
  });

  it('aborts its signal when the connection closes while it waits for the answer before it', async () => {
    const { port, exchange, server } = await serveOne();
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write('GET /1 HTTP/1.1\r\nhost: a\r\n\r\n');
    await exchange;
    const second = once(server, 'request');
    socket.write('GET /2 HTTP/1.1\r\nhost: a\r\n\r\n');
    const [, response] = (await second) as [IncomingMessage, ServerResponse];
    const sink = createNodeSink(response);
    const left = once(sink.closed, 'abort');
    socket.destroy();
    await left;
  });

  it('leaves no listener on a connection that goes on to the next request', async () => {
    const { port, server } = await serveOne();
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const counts: number[] = [];
    for (let request = 0; request < 3; request++) {
      const arrived = once(server, 'request');
      socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
      const [incoming, response] = (await arrived) as [IncomingMessage, ServerResponse];
      counts.push(incoming.socket.listenerCount('close'));
      const sink = createNodeSink(response);
      const closed = once(response, 'close');
      sink.start(204, []);
      await sink.end();
      await closed;
    }
    // The first response of a connection comes before listeners of node's own.
    expect(counts[2]).toBe(counts[1]);
    socket.destroy();
  });

  it('aborts its signal when the client leaves after the end was written, but before it was sent', async () => {
    const { sink, incoming } = await begun();
    for (let index = 0; index < 500; index += 1) void sink.write(piece);
    const ended = sink.end();
    const left = once(sink.closed, 'abort');
    incoming.destroy();
    await left;
    await ended;
  });

  it.each([
    ['chunks', []],
    ['a length', [['content-length', '100']]],
  ] as const)(
    'breaks an answer in %s off so that the client can tell, and is not taken for a departure',
    async (_, headers) => {
      const { sink, response, incoming } = await begun(headers);
      await sink.write(Buffer.from('one'));
      const failed = once(incoming, 'error');
      incoming.resume();
      const closed = once(response, 'close');
      sink.abort();
      const [error] = (await failed) as [NodeJS.ErrnoException];
      expect([error.code, incoming.complete]).toEqual(['ECONNRESET', false]);
      await closed;
      await sink.write(Buffer.from('two'));
      await sink.end();
      expect(sink.closed.aborted).toBe(false);
    },
  );

  it('resets the connection of an HTTP/1.0 client, for which its end would be an ordinary end', async () => {
    const { port, exchange } = await serveOne();
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write('GET / HTTP/1.0\r\n\r\n');
    const { sink } = await exchange;
    sink.start(200, []);
    await once(socket, 'data');
    const failed = once(socket, 'error').catch((error: unknown) => [error]);
    sink.abort();
    expect(await failed).toMatchObject([{ code: 'ECONNRESET' }]);
  });
});
