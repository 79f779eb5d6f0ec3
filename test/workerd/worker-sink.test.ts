import { describe, expect, it } from 'vitest';
import { createWorkerSink } from '../../src/http/worker-sink.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const present = new AbortController().signal;

/** Whether a promise has settled, once everything that can run has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(
    () => (settled = true),
    () => (settled = true),
  );
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setTimeout(resolve, 0));
  return settled;
}

describe('a sink in a Worker', () => {
  it('is a response with status, headers in order and repeated, and the very bytes', async () => {
    const sink = createWorkerSink('POST', present);
    sink.start(429, [
      ['content-type', 'text/event-stream'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ]);
    const response = await sink.response;
    const written = (async () => {
      await sink.write(bytes('data: 1\n\n'));
      await sink.write(bytes('data: ü\n\n'));
      await sink.end();
    })();
    expect([response.status, response.headers.get('content-type'), response.headers.getSetCookie()]).toEqual([
      429,
      'text/event-stream',
      ['a=1', 'b=2'],
    ]);
    expect(await response.text()).toBe('data: 1\n\ndata: ü\n\n');
    await written;
    expect(sink.closed.aborted).toBe(false);
  });

  it('waits for its reader before it takes more', async () => {
    const sink = createWorkerSink('POST', present);
    sink.start(200, []);
    const reader = (await sink.response).body!.getReader();
    const first = sink.write(bytes('one'));
    expect(await isSettled(first)).toBe(false);
    await reader.read();
    await first;
    const second = sink.write(bytes('two'));
    expect(await isSettled(second)).toBe(false);
    await reader.cancel();
    await second;
  });

  it('tells that the client left when its body is cancelled, and swallows the rest', async () => {
    const sink = createWorkerSink('POST', present);
    sink.start(200, []);
    const { body } = await sink.response;
    await body!.cancel();
    await sink.write(bytes('lost'));
    expect(sink.closed.aborted).toBe(true);
    await sink.write(bytes('lost too'));
    await sink.end();
  });

  it('tells that the client left by the signal of its request, before the response and within it', async () => {
    const gone = createWorkerSink('POST', AbortSignal.abort());
    expect(gone.closed.aborted).toBe(true);
    const leave = new AbortController();
    const sink = createWorkerSink('POST', leave.signal);
    sink.start(200, []);
    expect(sink.closed.aborted).toBe(false);
    leave.abort();
    expect(sink.closed.aborted).toBe(true);
  });

  it('breaks off so that the client can tell', async () => {
    const sink = createWorkerSink('POST', present);
    sink.start(200, []);
    const reader = (await sink.response).body!.getReader();
    const first = sink.write(bytes('one'));
    await reader.read();
    await first;
    sink.abort();
    await expect(reader.read()).rejects.toThrow('broken off');
    expect(sink.closed.aborted).toBe(false);
  });

  it('sends a body of a stated length with it, and one that ends too early is broken', async () => {
    const sink = createWorkerSink('POST', present);
    sink.start(200, [['content-length', '5']]);
    const response = await sink.response;
    const whole = response.text();
    await sink.write(bytes('hello'));
    await sink.end();
    expect(await whole).toBe('hello');

    const short = createWorkerSink('POST', present);
    short.start(200, [['content-length', '5']]);
    const text = (await short.response).text().catch((error: unknown) => error);
    await short.write(bytes('hell'));
    await short.end();
    expect(await text).toBeInstanceOf(Error);
  });

  it.each([
    ['GET', 204],
    ['GET', 304],
    ['HEAD', 200],
  ])('has no body for %s answered with %i, whatever is written', async (method, status) => {
    const sink = createWorkerSink(method, present);
    sink.start(status, [['content-length', '5']]);
    const { body } = await sink.response;
    expect(body).toBeNull();
    await sink.write(bytes('hello'));
    await sink.end();
    expect(sink.closed.aborted).toBe(false);
  });
});
