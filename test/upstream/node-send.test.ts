import { once } from 'node:events';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { createNodeSend, type NodeSendOptions } from '../../src/upstream/node-send.js';
import type { UpstreamRequest, UpstreamResponse } from '../../src/upstream/upstream.js';
import { deferred, listen, readText, serve } from './loopback.js';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function sender(options: NodeSendOptions = { timeoutMs: null }) {
  const { send, close } = createNodeSend(options);
  closers.push(close);
  return (url: string, request: Partial<UpstreamRequest> = {}): Promise<UpstreamResponse> =>
    send({ method: 'GET', url, headers: {}, body: null, signal: new AbortController().signal, ...request });
}

/** A TCP server for what node:http does not let a test do. */
async function serveRaw(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

function first(body: AsyncIterable<Uint8Array>): Promise<IteratorResult<Uint8Array, unknown>> {
  return body[Symbol.asyncIterator]().next();
}

describe('createNodeSend', () => {
  it('passes a 304 that states the length of what it does not send, as RFC 9110 8.6 allows', async () => {
    const url = await serveRaw((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 304 Not Modified\r\ncontent-length: 120\r\n\r\n'));
    });
    const { status, body } = await sender()(`${url}/`);
    expect(status).toBe(304);
    expect(await readText(body)).toBe('');
  });

  it('sends method, path, query, headers and body as they are', async () => {
    const url = await serve((request, response) => {
      void readText(request).then((body) => {
        const { method, url: target, headers } = request;
        response.end(JSON.stringify({ method, target, headers, body }));
      });
    });
    const send = sender();
    for (const body of ['höhe', new TextEncoder().encode('höhe')]) {
      const reply = await send(`${url}/v1/a%2Fb?q='%20|"`, { method: 'POST', headers: { 'x-a': '1' }, body });
      expect(reply.status).toBe(200);
      expect(JSON.parse(await readText(reply.body))).toEqual({
        method: 'POST',
        target: `/v1/a%2Fb?q='%20|"`,
        headers: { 'x-a': '1', host: new URL(url).host, connection: 'keep-alive', 'content-length': '5' },
        body: 'höhe',
      });
    }
    const bare = await send(url);
    expect(JSON.parse(await readText(bare.body))).toMatchObject({ method: 'GET', target: '/', body: '' });
  });

  it('yields response headers in order, lower case, repeated names and Latin-1 kept', async () => {
    const url = await serve((_, response) => {
      response.sendDate = false;
      response.writeHead(200, [
        'X-B',
        '1',
        'Set-Cookie',
        'a=1',
        'X-A',
        'caf\u00e9',
        'Set-Cookie',
        'b=2',
        'Content-Length',
        '0',
      ]);
      response.end();
    });
    const { headers } = await sender()(url);
    expect(headers.filter(([name]) => !['connection', 'keep-alive'].includes(name))).toEqual([
      ['x-b', '1'],
      ['set-cookie', 'a=1'],
      ['x-a', 'caf\u00e9'],
      ['set-cookie', 'b=2'],
      ['content-length', '0'],
    ]);
  });

  it('leaves an encoded body encoded', async () => {
    const encoded = gzipSync('hello');
    const url = await serve((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(encoded));
    const { body } = await sender()(url);
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    expect(Buffer.concat(chunks)).toEqual(encoded);
  });

  it('passes each piece on as it arrives', async () => {
    const goOn = deferred();
    const url = await serve((_, response) => {
      response.write('one');
      void goOn.promise.then(() => response.end('two'));
    });
    const iterator = (await sender()(url)).body[Symbol.asyncIterator]();
    const one = await iterator.next();
    expect(Buffer.from(one.value as Uint8Array).toString()).toBe('one');
    goOn.resolve();
    const two = await iterator.next();
    expect(Buffer.from(two.value as Uint8Array).toString()).toBe('two');
    expect((await iterator.next()).done).toBe(true);
  });

  it('streams a request body through without waiting for its end', async () => {
    const arrived = deferred<string>();
    const url = await serve((request, response) => {
      request.once('data', (chunk: Buffer) => arrived.resolve(chunk.toString()));
      request.on('end', () => response.end(request.headers['transfer-encoding']));
    });
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('first');
      // Goes on only once the server has the first piece: a sender that collects the body would never get here.
      yield Buffer.from(await arrived.promise);
    }
    const reply = await sender()(url, { method: 'POST', body: body() });
    expect(await readText(reply.body)).toBe('chunked');
  });

  it('keeps the length that a streamed body was announced with', async () => {
    const url = await serve((request, response) => {
      request.resume().on('end', () => response.end(request.headers['content-length']));
    });
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('abc');
    }
    const reply = await sender()(url, { method: 'POST', headers: { 'content-length': '3' }, body: body() });
    expect(await readText(reply.body)).toBe('3');
  });

  it("rejects with the request body's own error, and ends the upstream request", async () => {
    const closed = deferred();
    const url = await serve((request) => void request.resume().on('close', () => closed.resolve()));
    const failure = new Error('the client broke off');
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('abc');
      throw failure;
    }
    await expect(sender()(url, { method: 'POST', body: body() })).rejects.toBe(failure);
    await closed.promise;
  });

  it('hands on an answer that comes before the upload has ended', async () => {
    const url = await serve((_, response) => response.writeHead(413).end('too large'));
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('abc');
      await new Promise(() => undefined);
    }
    const reply = await sender()(url, { method: 'POST', body: body() });
    expect([reply.status, await readText(reply.body)]).toEqual([413, 'too large']);
  });

  it('does not close a request body that the upstream did not take', async () => {
    let isClosed = false;
    const url = await serve((request) => request.socket.destroy());
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          yield Buffer.alloc(1024);
          await new Promise((resolve) => setImmediate(resolve));
        }
      } finally {
        isClosed = true;
      }
    }
    await expect(sender()(url, { method: 'POST', body: body() })).rejects.toMatchObject({
      code: 'upstream_unreachable',
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
  });

  it('uses connections again', async () => {
    const ports = new Set<number | undefined>();
    const url = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('ok');
    });
    const send = sender();
    for (let index = 0; index < 20; index += 1) await readText((await send(url)).body);
    expect(ports.size).toBeLessThan(5);
  });

  it('hands a redirect on instead of following it', async () => {
    let requests = 0;
    const url = await serve((_, response) => {
      requests += 1;
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    const reply = await sender()(url, { method: 'POST', body: 'x' });
    expect(reply.status).toBe(307);
    expect(reply.headers).toContainEqual(['location', '/elsewhere']);
    await readText(reply.body);
    expect(requests).toBe(1);
  });

  it('ignores informational responses', async () => {
    const url = await serve((_, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.end('real');
    });
    const reply = await sender()(url);
    expect([reply.status, await readText(reply.body)]).toEqual([200, 'real']);
  });

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('ends the body at once for %s with status %i', async (method, status) => {
    const url = await serve((_, response) => response.writeHead(status).end());
    const reply = await sender()(url, { method });
    expect([reply.status, await readText(reply.body)]).toEqual([status, '']);
  });

  it("holds the upstream to the reader's pace, and still yields every byte", async () => {
    const totalBytes = 32 * 1024 * 1024;
    const piece = Buffer.alloc(64 * 1024, 'x');
    let writtenBytes = 0;
    const url = await serve((_, response) => {
      const more = (): void => {
        while (writtenBytes < totalBytes) {
          writtenBytes += piece.length;
          if (!response.write(piece)) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    });
    const { body } = await sender()(url);
    await settled(() => writtenBytes);
    expect(writtenBytes).toBeLessThan(totalBytes / 2);
    let readBytes = 0;
    for await (const chunk of body) readBytes += chunk.length;
    expect(readBytes).toBe(totalBytes);
  });

  describe('when aborted', () => {
    it('rejects with the reason before it sends anything', async () => {
      const reason = new Error('gone');
      await expect(sender()('http://127.0.0.1:1', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });

    it('rejects while it connects, and sends nothing afterwards', async () => {
      const connected = deferred<Socket>();
      const url = await serveRaw((socket) => connected.resolve(socket));
      const controller = new AbortController();
      // The server never answers the TLS handshake, so the connection is never made.
      const reply = sender()(url.replace('http:', 'https:'), { signal: controller.signal });
      reply.catch(() => undefined);
      await connected.promise;
      const reason = new Error('gone');
      controller.abort(reason);
      await expect(reply).rejects.toBe(reason);
    });

    it('sends no request when the abort came before the connection was made', async () => {
      let requests = 0;
      const url = await serve((_, response) => {
        requests += 1;
        response.end('ok');
      });
      const send = sender();
      const controller = new AbortController();
      const reply = send(url, { signal: controller.signal });
      controller.abort(new Error('gone'));
      await expect(reply).rejects.toThrow('gone');
      await readText((await send(url)).body);
      expect(requests).toBe(1);
    });

    it('rejects while it waits for the headers, and the socket is gone', async () => {
      const received = deferred();
      const closed = deferred();
      const url = await serve((request) => {
        request.socket.once('close', () => closed.resolve());
        received.resolve();
      });
      const controller = new AbortController();
      const reply = sender()(url, { method: 'POST', body: '{}', signal: controller.signal });
      reply.catch(() => undefined);
      await received.promise;
      const reason = new Error('gone');
      controller.abort(reason);
      await expect(reply).rejects.toBe(reason);
      await closed.promise;
    });

    it('rejects in the middle of an upload, and the socket is gone', async () => {
      const received = deferred();
      const closed = deferred();
      const url = await serve((request) => {
        request.once('data', () => received.resolve());
        request.socket.once('close', () => closed.resolve());
      });
      async function* body(): AsyncGenerator<Uint8Array> {
        yield Buffer.from('abc');
        await new Promise(() => undefined);
      }
      const controller = new AbortController();
      const reply = sender()(url, { method: 'POST', body: body(), signal: controller.signal });
      reply.catch(() => undefined);
      await received.promise;
      controller.abort(new Error('gone'));
      await expect(reply).rejects.toThrow('gone');
      await closed.promise;
    });

    it('takes no harm from a request body that fails afterwards', async () => {
      const url = await serve(() => undefined);
      const controller = new AbortController();
      const asked = deferred();
      const fails = deferred();
      async function* body(): AsyncGenerator<Uint8Array> {
        yield Buffer.from('abc');
        asked.resolve();
        await fails.promise;
        throw new Error('the client broke off');
      }
      const reply = sender()(url, { method: 'POST', body: body(), signal: controller.signal });
      reply.catch(() => undefined);
      await asked.promise;
      controller.abort(new Error('gone'));
      await expect(reply).rejects.toThrow('gone');
      // An error that nobody handles fails the whole run.
      fails.resolve();
      await new Promise((resolve) => setImmediate(resolve));
    });

    it.each(['before the first read', 'while a read is pending'])(
      'rejects in mid body, %s, and the socket is gone',
      async (when) => {
        const closed = deferred();
        const url = await serve((request, response) => {
          request.socket.once('close', () => closed.resolve());
          response.write('one');
        });
        const controller = new AbortController();
        const { body } = await sender()(url, { signal: controller.signal });
        const iterator = body[Symbol.asyncIterator]();
        const pending = when === 'while a read is pending' ? iterator.next().then(() => iterator.next()) : null;
        pending?.catch(() => undefined);
        await new Promise((resolve) => setImmediate(resolve));
        const reason = new Error('gone');
        controller.abort(reason);
        await expect(pending ?? iterator.next()).rejects.toBe(reason);
        await closed.promise;
      },
    );

    it('rejects while the reader holds the upstream back, and the socket is gone', async () => {
      const closed = deferred();
      const url = await serve((request, response) => {
        request.socket.once('close', () => closed.resolve());
        for (let index = 0; index < 512; index += 1) response.write(Buffer.alloc(64 * 1024));
      });
      const controller = new AbortController();
      const { body } = await sender()(url, { signal: controller.signal });
      const iterator = body[Symbol.asyncIterator]();
      await iterator.next();
      controller.abort(new Error('gone'));
      await expect(iterator.next()).rejects.toThrow('gone');
      await closed.promise;
    });
  });

  it.each(['breaking', 'returning before the first read'])(
    'ends the upstream request when the reader leaves by %s',
    async (how) => {
      const closed = deferred();
      const url = await serve((request, response) => {
        request.socket.once('close', () => closed.resolve());
        response.write('one');
      });
      const { body } = await sender()(url);
      if (how === 'breaking') for await (const _ of body) break;
      else await body[Symbol.asyncIterator]().return?.();
      await closed.promise;
    },
  );

  it('leaves no listener on the signal behind', async () => {
    const url = await serve((_, response) => response.end('ok'));
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    const send = sender();
    await readText((await send(url, { signal })).body);
    await expect(send('http://127.0.0.1:1', { signal })).rejects.toThrow();
    expect(listeners).toBe(0);
  });

  it('says upstream_unreachable, and which host, when nobody listens', async () => {
    const server = createTcpServer();
    const port = await listen(server);
    server.close();
    await once(server, 'close');
    await expect(sender()(`http://user:word@127.0.0.1:${port}/v1?key=secret`)).rejects.toMatchObject({
      name: 'SpillwayError',
      code: 'upstream_unreachable',
      message: `no response from 127.0.0.1:${port} (ECONNREFUSED): check SPILLWAY_UPSTREAM_URL, or its entry in SPILLWAY_UPSTREAMS`,
    });
  });

  it('says upstream_unreachable for a name that does not resolve', async () => {
    await expect(sender()('http://nowhere.invalid')).rejects.toMatchObject({ code: 'upstream_unreachable' });
  });

  it('says upstream_unreachable when the connection cannot be made in time', async () => {
    const url = await serveRaw(() => undefined);
    const reply = sender({ timeoutMs: null, connectTimeoutMs: 50 })(url.replace('http:', 'https:'));
    await expect(reply).rejects.toMatchObject({
      code: 'upstream_unreachable',
      message: expect.stringContaining('UND_ERR_CONNECT_TIMEOUT'),
    });
  });

  it.each([
    ['closes the connection', ''],
    ['does not speak HTTP', 'SSH-2.0-server\r\n'],
    ['breaks off in the headers', 'HTTP/1.1 200 OK\r\ncontent-le'],
  ])('says upstream_unreachable when the server %s', async (_, answer) => {
    const url = await serveRaw((socket) => socket.once('data', () => socket.end(answer)));
    await expect(sender()(url)).rejects.toMatchObject({ code: 'upstream_unreachable' });
  });

  it.each([
    ['chunked', 'transfer-encoding: chunked\r\n\r\n3\r\none\r\n'],
    ['of a known length', 'content-length: 10\r\n\r\none'],
  ])('rejects in the reader when a body that is %s breaks off, after what had come', async (_, answer) => {
    const url = await serveRaw((socket) => socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${answer}`)));
    const iterator = (await sender()(url)).body[Symbol.asyncIterator]();
    const one = await iterator.next();
    expect(Buffer.from(one.value as Uint8Array).toString()).toBe('one');
    await expect(iterator.next()).rejects.toMatchObject({ code: 'upstream_unreachable' });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('says upstream_timeout when the headers do not come in time', async () => {
    const url = await serve(() => undefined);
    await expect(sender({ timeoutMs: 100 })(url)).rejects.toMatchObject({
      code: 'upstream_timeout',
      message: `${new URL(url).host} sent nothing for 100 ms`,
    });
  });

  it('says upstream_timeout when the body pauses for too long', async () => {
    const url = await serve((_, response) => response.write('one'));
    const { body } = await sender({ timeoutMs: 100 })(url);
    const iterator = body[Symbol.asyncIterator]();
    await iterator.next();
    await expect(iterator.next()).rejects.toMatchObject({ code: 'upstream_timeout' });
  });

  it('ends what runs when it is closed, and rejects from then on', async () => {
    const url = await serve((_, response) => response.write('one'));
    const { send, close } = createNodeSend({ timeoutMs: null });
    const request = { method: 'GET', url, headers: {}, body: null, signal: new AbortController().signal };
    const { body } = await send(request);
    await close();
    await expect(readText(body)).rejects.toMatchObject({ code: 'upstream_unreachable' });
    await expect(send(request)).rejects.toMatchObject({ code: 'upstream_unreachable' });
  });

  it('serves many bodies at once', async () => {
    const url = await serve((request, response) => response.end(request.url?.repeat(1000)));
    const send = sender();
    const paths = Array.from({ length: 50 }, (_, index) => `/${index}`);
    const bodies = await Promise.all(paths.map(async (path) => readText((await send(`${url}${path}`)).body)));
    expect(bodies).toEqual(paths.map((path) => path.repeat(1000)));
    expect((await first((await send(`${url}/x`)).body)).done).toBe(false);
  });
});

/** Waits until a value has stopped growing. */
async function settled(value: () => number): Promise<void> {
  for (let last = -1, same = 0; same < 5;) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    same = value() === last ? same + 1 : 0;
    last = value();
  }
}
