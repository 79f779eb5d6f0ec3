import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createFetchSend } from '../../src/upstream/fetch-send.js';
import type { UpstreamRequest, UpstreamResponse } from '../../src/upstream/upstream.js';
import { deferred, readText, serve } from './loopback.js';

function send(url: string, request: Partial<UpstreamRequest> = {}): Promise<UpstreamResponse> {
  const { signal } = new AbortController();
  return createFetchSend(fetch)({ method: 'GET', url, headers: {}, body: null, signal, ...request });
}

describe('createFetchSend', () => {
  it.each(['text', 'bytes', 'iterable', 'stream'])('sends a body that is %s', async (kind) => {
    const url = await serve((request, response) => {
      void readText(request).then((body) =>
        response.end(`${request.method} ${request.url} ${String(request.headers['x-a'])} ${body}`),
      );
    });
    const bytes = Buffer.from('höhe');
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield bytes.subarray(0, 2);
      yield bytes.subarray(2);
    }
    const body = { text: 'höhe', bytes, iterable: pieces(), stream: new Blob([bytes]).stream() }[kind]!;
    const reply = await send(`${url}/v1/x?y=1`, { method: 'POST', headers: { 'x-a': '1' }, body });
    expect(await readText(reply.body)).toBe('POST /v1/x?y=1 1 höhe');
  });

  it('passes each piece on as it arrives, both ways', async () => {
    const url = await serve((request, response) => void request.pipe(response));
    const goOn = deferred();
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('one');
      await goOn.promise;
      yield Buffer.from('two');
    }
    const reply = await send(url, { method: 'POST', body: body() });
    const iterator = reply.body[Symbol.asyncIterator]();
    expect(Buffer.from((await iterator.next()).value as Uint8Array).toString()).toBe('one');
    goOn.resolve();
    expect(Buffer.from((await iterator.next()).value as Uint8Array).toString()).toBe('two');
    expect((await iterator.next()).done).toBe(true);
  });

  it('keeps repeated set-cookie headers, and hands a redirect on', async () => {
    const url = await serve((_, response) => {
      response.writeHead(302, ['location', '/elsewhere', 'set-cookie', 'a=1', 'set-cookie', 'b=2']).end();
    });
    const reply = await send(url);
    expect(reply.status).toBe(302);
    expect(reply.headers).toContainEqual(['location', '/elsewhere']);
    expect(reply.headers.filter(([name]) => name === 'set-cookie').map(([, value]) => value)).toEqual(['a=1', 'b=2']);
  });

  it('drops the headers of an encoding that fetch has undone', async () => {
    const url = await serve((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('hello')),
    );
    const reply = await send(url);
    expect(reply.headers.map(([name]) => name)).not.toContain('content-encoding');
    expect(await readText(reply.body)).toBe('hello');
  });

  it('yields an empty body for a reply without one', async () => {
    const url = await serve((_, response) => response.writeHead(204).end());
    const reply = await send(url);
    expect([reply.status, await readText(reply.body)]).toEqual([204, '']);
  });

  it.each(['waiting for headers', 'in mid body'])(
    'rejects with the reason when aborted %s, and the socket is gone',
    async (state) => {
      const received = deferred();
      const closed = deferred();
      const url = await serve((request, response) => {
        request.socket.once('close', () => closed.resolve());
        if (state === 'in mid body') response.write('one');
        received.resolve();
      });
      const controller = new AbortController();
      const whole = send(url, { signal: controller.signal }).then(({ body }) => readText(body));
      whole.catch(() => undefined);
      await received.promise;
      const reason = new Error('gone');
      controller.abort(reason);
      await expect(whole).rejects.toBe(reason);
      await closed.promise;
    },
  );

  it('ends the upstream request when the reader leaves', async () => {
    const closed = deferred();
    const url = await serve((request, response) => {
      request.socket.once('close', () => closed.resolve());
      response.write('one');
    });
    for await (const _ of (await send(url)).body) break;
    await closed.promise;
  });

  it('says upstream_unreachable, and which host, when there is no answer', async () => {
    const url = await serve((request) => request.socket.destroy());
    await expect(send(url)).rejects.toMatchObject({
      code: 'upstream_unreachable',
      message: `no response from ${new URL(url).host}`,
    });
  });
});
