import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSimulator, type Simulator } from '../src/simulator/simulator.js';
import { createCounterLoader } from '../src/tokens/counter.js';
import { readPackedRanks } from '../src/tokens/node-ranks.js';
import { Chat, padding, type Seen, type WireMessage } from './support/chat.js';
import { chunkEvent, completion, SSE_HEADERS } from './support/provider.js';
import { openWorker, type StartedWorker } from './support/start-worker.js';

interface NodeRow {
  readonly id: string;
  readonly content: unknown;
  readonly metadata: { readonly covers_ids?: readonly string[] };
}

describe('the Worker', () => {
  let simulator: Simulator;
  /** An upstream whose every byte a test decides. */
  let upstream: Server;
  let worker: StartedWorker;

  beforeAll(async () => {
    simulator = await startSimulator({
      counter: await createCounterLoader(readPackedRanks)('o200k_base'),
      windows: { hidden: 3_000 },
    });
    upstream = createServer().listen(0, '127.0.0.1');
    upstream.on('request', ({ url }: IncomingMessage, response: ServerResponse) => {
      if (url === '/base/v1/models') response.end(JSON.stringify({ data: [{ id: 'm', context_length: 50_000 }] }));
    });
    await once(upstream, 'listening');
    const { port } = upstream.address() as AddressInfo;
    worker = await openWorker({
      SPILLWAY_UPSTREAM_URL: `${simulator.url}/v1`,
      SPILLWAY_UPSTREAMS: `/raw=http://127.0.0.1:${port}/base/v1`,
      SPILLWAY_WINDOWS: 'small=6000',
      SPILLWAY_KEEP_TOKENS: '700',
    });
  }, 120_000);

  afterAll(async () => {
    await worker.close();
    await simulator.close();
    upstream.closeAllConnections();
    upstream.close();
  });

  async function next(): Promise<{ readonly request: IncomingMessage; readonly response: ServerResponse }> {
    for (;;) {
      const [request, response] = (await once(upstream, 'request')) as [IncomingMessage, ServerResponse];
      if (request.url !== '/base/v1/models') return { request, response };
    }
  }
  const nodesOf = async (id: string | undefined): Promise<readonly NodeRow[]> =>
    ((await worker.api(`/conversations/${id}/nodes?limit=1000`)) as { data: NodeRow[] }).data;
  const lastSent = (): readonly WireMessage[] => {
    const body = simulator.chatRequests().at(-1)?.body as { messages: WireMessage[] } | undefined;
    return body?.messages ?? [];
  };

  it('answers /health', async () => {
    const response = await fetch(`${worker.url}/health`);
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
  });

  it('streams to the official client and has recorded what was said', async () => {
    const stream = await worker.client({ 'x-spillway-conversation': 'greeting' }).chat.completions.create({
      model: 'any',
      stream: true,
      messages: [{ role: 'user', content: 'Hello, edge.' }],
    });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    const { data } = (await worker.api('/conversations')) as { data: { id: string; name: string; nodes: number }[] };
    const entry = data.find(({ name }) => name === 'greeting');
    expect(entry?.nodes).toBe(2);
    const nodes = await nodesOf(entry?.id);
    expect(nodes.map(({ content }) => content)).toMatchObject([{ content: 'Hello, edge.' }, { content: text }]);
  });

  it('goes on when a conversation outgrows its window, and after a restart, SPEC 5, 8.5', async () => {
    const chat = new Chat(worker, {}, 'small');
    let seen: Seen = await chat.say(padding('first', 250));
    for (let turn = 0; seen.spillway['action'] !== 'auto' && turn < 30; turn++) {
      seen = await chat.say(padding(`turn${turn}`, 250));
      expect(seen.status).toBe(200);
    }
    expect(seen.spillway['action']).toBe('auto');
    const summary = (await nodesOf(seen.spillway['conversation'])).find((node) => node.metadata.covers_ids);
    expect(summary?.metadata.covers_ids?.length).toBeGreaterThan(3);
    expect(lastSent().length).toBeLessThan(chat.messages.length - 1);
    const before = await nodesOf(seen.spillway['conversation']);

    await worker.restart();
    expect(await nodesOf(seen.spillway['conversation'])).toEqual(before);
    const calls = simulator.summaryRequests().length;
    seen = await chat.say('And after the restart?');
    expect(seen.status).toBe(200);
    expect(simulator.summaryRequests().length).toBe(calls);
    expect(JSON.stringify(lastSent()[0])).toContain('Previous conversation summary');
    expect(await nodesOf(seen.spillway['conversation'])).toHaveLength(before.length + 2);
  }, 120_000);

  it('learns a window from a refusal, compacts and sends again, SPEC 6.4, 6.5', async () => {
    const chat = new Chat(worker, {}, 'hidden');
    let seen: Seen = await chat.say(padding('first', 250));
    for (let turn = 0; seen.spillway['action'] === 'none' && turn < 30; turn++) {
      seen = await chat.say(padding(`turn${turn}`, 250));
    }
    expect([seen.status, seen.spillway['action']]).toEqual([200, 'reactive']);
    const { data } = (await worker.api('/models')) as { data: { model: string; learned: { tokens: number } | null }[] };
    expect(data.find(({ model }) => model === 'hidden')?.learned?.tokens).toBe(3_000);
  }, 120_000);

  it('asks an upstream for its models beside the requests, for one tenant after another, SPEC 6.5', async () => {
    const discovered = async (): Promise<readonly unknown[]> => {
      const { data } = (await worker.api('/models')) as {
        data: { model: string; discovered: { tokens: number } | null }[];
      };
      return data.flatMap(({ model, discovered: window }) => (model === 'm' && window !== null ? [window.tokens] : []));
    };
    for (const [index, credential] of ['sk-one', 'sk-two', 'sk-three'].entries()) {
      const arriving = next();
      const answer = fetch(`${worker.url}/raw/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello.' }] }),
      });
      const { request, response } = await arriving;
      await request.toArray();
      response.writeHead(200, { 'content-type': 'application/json' }).end(completion('Hello.'));
      expect((await answer).status).toBe(200);
      await expect.poll(discovered, { timeout: 20_000 }).toEqual(Array.from({ length: index + 1 }, () => 50_000));
    }
  });

  it('ends the upstream’s request when its client leaves, and records what was relayed, SPEC 2.3', async () => {
    const arriving = next();
    const leave = new AbortController();
    const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Go on.' }] });
    const answer = fetch(`${worker.url}/raw/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-leaves', 'content-type': 'application/json' },
      body,
      signal: leave.signal,
    });
    const { request, response } = await arriving;
    expect(Buffer.concat(await request.toArray()).toString()).toBe(body);
    response.writeHead(200, SSE_HEADERS);
    response.write(chunkEvent({ role: 'assistant', content: 'Half a' }));
    const reply = await answer;
    const id = reply.headers.get('x-spillway-conversation');
    await reply.body?.getReader().read();
    const closed = once(response, 'close');
    leave.abort();
    // workerd meets the closed connection when it has something to send.
    const talking = setInterval(() => response.write(chunkEvent({ content: ' word' })), 20);
    await closed;
    clearInterval(talking);
    // It is written after the response, which nobody waits for any more.
    await expect.poll(async () => (await nodesOf(id ?? '')).length, { timeout: 20_000 }).toBe(2);
  });

  it('passes what it does not read on with the header rules, and its answer as it arrives', async () => {
    const arriving = next();
    const answer = fetch(`${worker.url}/raw/v1/files?a=b`, {
      method: 'POST',
      headers: { authorization: 'Bearer client', 'x-spillway-conversation': 'c', 'x-forwarded-for': '10.1.2.3' },
      body: 'some bytes',
    });
    const { request, response } = await arriving;
    expect([request.method, request.url]).toEqual(['POST', '/base/v1/files?a=b']);
    expect(Buffer.concat(await request.toArray()).toString()).toBe('some bytes');
    expect(request.headers).toMatchObject({ authorization: 'Bearer client' });
    const added = Object.keys(request.headers).filter((name) => /^(x-spillway|cf-c|x-forwarded|x-real)/.test(name));
    expect(added).toEqual([]);
    response.writeHead(429, ['content-type', 'text/event-stream', 'set-cookie', 'a=1', 'set-cookie', 'b=2']);
    response.write('data: 1\n\n');
    const reply = await answer;
    expect(reply.status).toBe(429);
    expect(reply.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    const decoder = new TextDecoder();
    const pieces: string[] = [];
    for await (const piece of reply.body!) {
      pieces.push(decoder.decode(piece as Uint8Array));
      // The second event leaves only once the first has come through.
      if (pieces.length === 1) response.end('data: 2\n\n');
    }
    expect(pieces).toEqual(['data: 1\n\n', 'data: 2\n\n']);
  });

  it.each([
    ['DELETE', 204],
    ['HEAD', 200],
  ])('passes the answer to %s, which has no body, through', async (method, status) => {
    const arriving = next();
    const answer = fetch(`${worker.url}/raw/v1/files/f`, { method });
    (await arriving).response.writeHead(status).end();
    const reply = await answer;
    expect([reply.status, await reply.text()]).toEqual([status, '']);
  });

  it('reads a compressed request', async () => {
    const messages = [{ role: 'user', content: 'Compressed.' }];
    const response = await fetch(`${worker.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-gzip', 'content-encoding': 'gzip', 'content-type': 'application/json' },
      body: gzipSync(JSON.stringify({ model: 'any', messages })),
    });
    expect(response.status).toBe(200);
    const nodes = await nodesOf(response.headers.get('x-spillway-conversation') ?? '');
    expect(nodes[0]?.content).toMatchObject({ content: 'Compressed.' });
  });

  it('keeps a message of five megabytes, and tenants apart by their credential, SPEC 1.1', async () => {
    const content = 'word '.repeat(1_000_000);
    const body = { model: 'any', messages: [{ role: 'user', content }] };
    const first = await worker.post(body, { authorization: 'Bearer sk-one' });
    const second = await worker.post(body, { authorization: 'Bearer sk-two' });
    expect([first.status, second.status]).toEqual([200, 200]);
    const id = first.headers.get('x-spillway-conversation');
    expect(second.headers.get('x-spillway-conversation')).not.toBe(id);
    const [node] = await nodesOf(id ?? '');
    expect((node?.content as WireMessage | undefined)?.content === content).toBe(true);
  }, 60_000);

  it('answers its own API to the holder of the token alone, SPEC 8.6', async () => {
    const response = await fetch(`${worker.url}/spillway/v1/conversations`);
    expect([response.status, await response.json()]).toMatchObject([401, { error: { code: 'unauthorized' } }]);
  });

  it.each([
    ['/raw/v1/files/..%2fadmin', 400, 'invalid_request'],
    ['/other', 404, 'not_found'],
    ['/v1x', 404, 'not_found'],
  ])('refuses %s with %i in the form of an OpenAI error', async (path, status, code) => {
    const response = await fetch(`${worker.url}${path}`);
    expect([response.status, await response.json()]).toMatchObject([
      status,
      { error: { code, type: 'invalid_request_error' } },
    ]);
  });

  it('says 502 when the upstream does not answer', async () => {
    const arriving = next();
    const answer = fetch(`${worker.url}/raw/v1/files`);
    (await arriving).request.socket.destroy();
    const response = await answer;
    expect([response.status, await response.json()]).toMatchObject([502, { error: { code: 'upstream_unreachable' } }]);
  });
});

describe('a Worker whose settings are wrong', () => {
  it('refuses every request and tells its clients no more than that', async () => {
    const worker = await openWorker({ SPILLWAY_TENANT_SECRET: 'too short' });
    try {
      const response = await worker.post({ model: 'm', messages: [] });
      expect([response.status, await response.json()]).toMatchObject([
        500,
        { error: { code: 'invalid_setting', message: expect.not.stringContaining('SECRET') } },
      ]);
    } finally {
      await worker.close();
    }
  }, 60_000);
});
