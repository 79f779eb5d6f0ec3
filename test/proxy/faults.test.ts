import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { APIConnectionError, InternalServerError } from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { noAnswer, say } from '../../src/simulator/reply-plan.js';
import { startChild } from '../support/child.js';
import { DONE, SSE_HEADERS, chunkEvent, completion, startProvider } from '../support/provider.js';
import { sendChat } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { callOf, conversationsOf, nodesOf, onlyConversation } from '../support/stored.js';

const hello = { model: 'any', messages: [{ role: 'user', content: 'Hello' }] };
const streamed = { ...hello, stream: true };

async function tempDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Sends a request that Spillway itself refuses; checks the form, that nothing was sent on, and that nothing was written. */
async function refused(pair: StartedPair, body: unknown, headers: Record<string, string> = {}) {
  const answer = await sendChat(pair.spillway.url, body, headers).answer;
  const { error, ...more } = JSON.parse((await answer.body()).toString()) as { error: Record<string, unknown> };
  expect(more).toEqual({});
  expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
  expect(answer.headers['content-type']).toContain('application/json');
  expect(pair.simulator.requests).toEqual([]);
  expect(await conversationsOf(pair)).toEqual([]);
  return { status: answer.status, ...error };
}

describe('a request that cannot be', () => {
  it.each(['', '{', '{"model":"any","messages":[}', 'hello', '[1,]', '{"a":1}{"b":2}'])(
    'is malformed JSON: 400, and nothing written: %j',
    async (text) => {
      const pair = await startPair();
      expect(await refused(pair, text)).toMatchObject({
        status: 400,
        code: 'invalid_json',
        param: 'body',
        type: 'invalid_request_error',
      });
    },
  );

  it('is larger than the limit, as it comes or unpacked: 413', async () => {
    const pair = await startPair({ SPILLWAY_BODY_LIMIT: '64KiB' });
    const large = JSON.stringify({ ...hello, padding: 'x'.repeat(70_000) });
    const expected = {
      status: 413,
      code: 'body_too_large',
      message: expect.stringContaining('65536 bytes (SPILLWAY_BODY_LIMIT)'),
    };
    expect(await refused(pair, large)).toMatchObject(expected);
    expect(await refused(pair, gzipSync(large), { 'content-encoding': 'gzip' })).toMatchObject(expected);
    const within = await sendChat(pair.spillway.url, { ...hello, padding: 'x'.repeat(60_000) }).answer;
    expect(within.status).toBe(200);
  });

  it('is compressed in a way nobody knows, or not as it says', async () => {
    const pair = await startPair();
    expect(await refused(pair, 'x', { 'content-encoding': 'compress' })).toMatchObject({
      status: 415,
      code: 'unsupported_encoding',
      param: 'content-encoding',
    });
    expect(await refused(pair, 'x', { 'content-encoding': 'gzip' })).toMatchObject({
      status: 400,
      code: 'invalid_request',
      param: 'content-encoding',
    });
  });

  it.each([
    ['x-spillway-append', { 'x-spillway-append': 'yes', 'x-spillway-conversation': 'a' }],
    ['x-spillway-append', { 'x-spillway-append': 'true' }],
    ['x-spillway-bypass', { 'x-spillway-bypass': '1' }],
    ['x-spillway-advance-head', { 'x-spillway-advance-head': '' }],
    ['x-spillway-conversation', { 'x-spillway-conversation': 'x'.repeat(201) }],
    ['x-spillway-conversation', { 'x-spillway-conversation': '' }],
    ['x-spillway-conversation', { 'x-spillway-conversation': 'naïve' }],
    [
      'x-spillway-predecessor',
      { 'x-spillway-predecessor': 'short', 'x-spillway-append': 'true', 'x-spillway-conversation': 'a' },
    ],
    ['x-spillway-predecessor', { 'x-spillway-predecessor': 'A'.repeat(32) }],
    ['x-spillway-caller', { 'x-spillway-caller': '../../etc' }],
  ])('has a wrong value in a header of ours: 400 that names it: %s %j', async (param, headers) => {
    const pair = await startPair();
    expect(await refused(pair, hello, headers)).toMatchObject({
      status: 400,
      code: 'invalid_header',
      param,
      message: expect.stringContaining(param),
    });
  });

  it.each([
    ['messages that are no list', { model: 'any', messages: 'Hello' }],
    ['no messages', { model: 'any', prompt: 'Hello' }],
    ['no message at all', { model: 'any', messages: [] }],
    ['instructions alone', { model: 'any', messages: [{ role: 'system', content: 'Be brief.' }] }],
    ['a role of next year', { model: 'any', messages: [{ role: 'moderator', content: 'Hello' }] }],
    ['content of a wrong type', { model: 'any', messages: [{ role: 'user', content: 7 }] }],
    ['a message that is none', { model: 'any', messages: ['Hello'] }],
    ['a stream that is no boolean', { ...hello, stream: 'yes' }],
    ['no object', [1, 2]],
    ['null', null],
  ])(
    'has messages that cannot be read: the provider judges its very bytes, and nothing is written: %s',
    async (_, body) => {
      const text = JSON.stringify(body, null, 1);
      const provider = await startProvider(
        (_request, response) => void response.writeHead(422, { 'x-why': 'because' }).end('{"so":"it is"}'),
      );
      const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
      const answer = await sendChat(pair.spillway.url, text).answer;
      expect(answer.status).toBe(422);
      expect(answer.headers).toMatchObject({ 'x-why': 'because', 'x-spillway-action': 'unread' });
      expect(answer.headers).not.toHaveProperty('x-spillway-conversation');
      expect((await answer.body()).toString()).toBe('{"so":"it is"}');
      expect(provider.received.map((received) => received.body.toString())).toEqual([text]);
      expect(await conversationsOf(pair)).toEqual([]);
      expect(pair.logs.at(-1)).toMatchObject({ action: 'unread', status: 422 });
    },
  );

  it('nests too deep to be read: it passes', async () => {
    const provider = await startProvider((_, response) => void response.end('{}'));
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    const text = `{"model":"any","messages":[{"role":"user","content":"Hello","x":${deep}}]}`;
    const answer = await sendChat(pair.spillway.url, text).answer;
    expect(answer.status).toBe(200);
    expect(provider.received[0]?.body.toString()).toBe(text);
  });
});

describe('a store that fails', () => {
  /** A pair and a second connection to its data file. */
  async function startWithFile(settings: Record<string, string> = {}) {
    const dataDir = await tempDir();
    const pair = await startPair({ SPILLWAY_DATA_DIR: dataDir, ...settings });
    const other = new Database(join(dataDir, 'spillway.db'));
    onTestFinished(() => void other.close());
    return { pair, other, dataDir };
  }

  it.each([false, true])(
    'lets the request pass untouched, and says so in a header and the log: stream %s',
    async (stream) => {
      const { pair, other } = await startWithFile();
      other.exec('ALTER TABLE node RENAME TO elsewhere');
      const text = JSON.stringify({ ...hello, stream }, null, 1);
      const answer = await sendChat(pair.spillway.url, text).answer;
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({ 'x-spillway-store': 'unavailable', 'x-spillway-action': 'none' });
      expect((await answer.body()).toString()).toContain(stream ? '[DONE]' : '"choices"');
      expect(Buffer.from(pair.simulator.chatRequests()[0]?.bytes ?? []).toString()).toBe(text);
      expect(pair.logs.at(-1)).toMatchObject({ store: 'unavailable', status: 200 });

      other.exec('ALTER TABLE elsewhere RENAME TO node');
      const healed = await sendChat(pair.spillway.url, text).answer;
      expect(healed.headers).not.toHaveProperty('x-spillway-store');
      expect((await onlyConversation(pair)).nodes).toBe(2);
    },
  );

  it('because another process holds its file is waited for a little, and then done without', async () => {
    const { pair, other } = await startWithFile();
    other.exec('BEGIN IMMEDIATE');
    const answer = await sendChat(pair.spillway.url, hello).answer;
    expect(answer.status).toBe(200);
    expect(answer.headers['x-spillway-store']).toBe('unavailable');
    other.exec('ROLLBACK');
    const next = await sendChat(pair.spillway.url, hello).answer;
    expect(next.headers).not.toHaveProperty('x-spillway-store');
  });

  it('refuses instead where it is set to, and nothing is sent', async () => {
    const { pair, other } = await startWithFile({ SPILLWAY_STORE_FAILURE: 'refuse' });
    other.exec('ALTER TABLE node RENAME TO elsewhere');
    const answer = await sendChat(pair.spillway.url, hello).answer;
    expect(answer.status).toBe(503);
    expect(JSON.parse((await answer.body()).toString())).toMatchObject({
      error: { code: 'store_unavailable', type: 'server_error' },
    });
    expect(pair.simulator.requests).toEqual([]);
  });

  it('is told to a thin client, whose history is there, and to a command, which no model may read', async () => {
    const { pair, other } = await startWithFile();
    other.exec('ALTER TABLE node RENAME TO elsewhere');
    const thin = await sendChat(pair.spillway.url, hello, {
      'x-spillway-conversation': 'thin',
      'x-spillway-append': 'true',
    }).answer;
    expect(thin.status).toBe(503);
    const command = await sendChat(pair.spillway.url, {
      model: 'any',
      messages: [{ role: 'user', content: '/compact' }],
    }).answer;
    expect(command.status).toBe(503);
    expect(pair.simulator.requests).toEqual([]);
  });

  it('after the request was recorded costs the record of the reply, not the reply, SPEC 2.4', async () => {
    const dataDir = await tempDir();
    const provider = await startProvider((_, response) => {
      const other = new Database(join(dataDir, 'spillway.db'));
      other.exec('ALTER TABLE call RENAME TO elsewhere');
      other.close();
      response.end(completion('Aye.'));
    });
    const pair = await startPair({ SPILLWAY_DATA_DIR: dataDir, SPILLWAY_UPSTREAM_URL: provider.url });
    const answer = await sendChat(pair.spillway.url, hello).answer;
    expect(answer.status).toBe(200);
    expect((await answer.body()).toString()).toBe(completion('Aye.'));
    expect(answer.headers).toMatchObject({ 'x-spillway-store': 'unavailable' });
    await expect.poll(() => pair.logs.map((line) => line['msg'])).toEqual(['store gap', 'request']);
    const head = answer.headers['x-spillway-head'];
    expect(pair.logs[0]).toMatchObject({ level: 'error', reason: 'failed', head });
    expect((await nodesOf(pair, (await onlyConversation(pair)).id)).map(({ id }) => id)).toEqual([head]);
  });

  it('is readable by its owner alone', async () => {
    const { pair, dataDir } = await startWithFile();
    await (await sendChat(pair.spillway.url, hello).answer).body();
    for (const file of ['spillway.db', 'spillway.db-wal', 'spillway.db-shm', 'secret.key']) {
      expect(((await stat(join(dataDir, file))).mode & 0o777).toString(8)).toBe('600');
    }
  });
});

describe('an upstream', () => {
  it("that is dead is a 502 in the provider's own error form; the request's node is there, and a call that failed", async () => {
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: 'http://127.0.0.1:9/v1' });
    const error: unknown = await pair
      .client()
      .chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'Hello' }] })
      .then(
        () => null,
        (reason: unknown) => reason,
      );
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 502, code: 'upstream_unreachable', type: 'server_error' });
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 1, calls: 1 });
  });

  it('that closes without an answer is a 502, and is not asked again', async () => {
    const pair = await startPair({}, { script: () => noAnswer('close') });
    const answer = await sendChat(pair.spillway.url, hello).answer;
    expect(answer.status).toBe(502);
    expect(pair.simulator.chatRequests().length).toBe(1);
  });

  it('that is silent for longer than the setting allows is a 504; without one it is waited for', async () => {
    const pair = await startPair({ SPILLWAY_UPSTREAM_TIMEOUT_SECONDS: '1' }, { script: () => noAnswer('stall') });
    const answer = await sendChat(pair.spillway.url, hello).answer;
    expect(answer.status).toBe(504);
    expect(JSON.parse((await answer.body()).toString())).toMatchObject({ error: { code: 'upstream_timeout' } });
    await pair.simulator.waitFor((request) => request.state === 'aborted');
  });

  it("that breaks in the middle of a stream breaks the client's, and the reply is recorded as failed, SPEC 2.3", async () => {
    const pair = await startPair(
      {},
      { script: () => say('A reply that is long enough for a few pieces of it.', { cut: { after: 3, how: 'close' } }) },
    );
    const answer = await sendChat(pair.spillway.url, streamed).answer;
    await expect(answer.body()).rejects.toThrow('broke off');
    expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'failed', status: 200 });
    const { id, head } = await onlyConversation(pair);
    const [asked, half] = await nodesOf(pair, id);
    expect(head).toBe(asked?.id);
    expect(half?.content).toMatchObject({ role: 'assistant', content: expect.stringMatching(/^A reply/) });
    const stream = await pair
      .client()
      .chat.completions.create({ ...streamed, stream: true, messages: [{ role: 'user', content: 'Hello' }] });
    const read = async () => {
      for await (const chunk of stream) expect(chunk.object).toBe('chat.completion.chunk');
    };
    await expect(read()).rejects.toThrow();
  });

  it('that breaks in the middle of a whole reply is a 502: the official client sees a plain error', async () => {
    const pair = await startPair({}, { script: () => say('Aye.', { cut: { after: 1, how: 'close' } }) });
    const error: unknown = await pair
      .client()
      .chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'Hello' }] })
      .then(
        () => null,
        (reason: unknown) => reason,
      );
    expect(error).toMatchObject({ status: 502 });
    expect(error).not.toBeInstanceOf(APIConnectionError);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 1, calls: 1 });
  });

  it('that ends a stream without a stop reason ends it so for the client, and did not complete, SPEC 2.3', async () => {
    const text = chunkEvent({ content: 'Half a' });
    const provider = await startProvider((_, response) => void response.writeHead(200, SSE_HEADERS).end(text));
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const answer = await sendChat(pair.spillway.url, streamed).answer;
    expect((await answer.body()).toString()).toBe(text);
    expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'failed' });
  });

  it('that answers with what is no reply is passed on as it is', async () => {
    const provider = await startProvider(
      (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Maintenance</p>'),
    );
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    for (const body of [hello, streamed]) {
      const answer = await sendChat(pair.spillway.url, body).answer;
      expect((await answer.body()).toString()).toBe('<p>Maintenance</p>');
      expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'failed', replies: [] });
    }
  });
});

describe('a client that leaves', () => {
  it('before there is an answer aborts its upstream request at once', async () => {
    const pair = await startPair({}, { script: () => noAnswer('stall') });
    const exchange = sendChat(pair.spillway.url, hello);
    exchange.answer.catch(() => undefined);
    await pair.simulator.waitFor((request) => request.state === 'answering');
    exchange.leave();
    await pair.simulator.waitFor((request) => request.state === 'aborted');
    await expect.poll(() => pair.logs.at(-1)).toMatchObject({ outcome: 'cancelled' });
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 1, calls: 1 });
  });

  it('in the middle of a stream aborts it at once; what was relayed is recorded as cancelled and HEAD stays, SPEC 2.3', async () => {
    const pair = await startPair(
      {},
      { script: () => say('A reply that is long enough for a few pieces of it.', { cut: { after: 3, how: 'stall' } }) },
    );
    const answer = await sendChat(pair.spillway.url, streamed).answer;
    await answer.until('A reply');
    answer.leave();
    await pair.simulator.waitFor((request) => request.state === 'aborted');
    await expect.poll(async () => (await onlyConversation(pair)).calls).toBe(1);
    expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'cancelled' });
    const { id, head } = await onlyConversation(pair);
    const [asked, half] = await nodesOf(pair, id);
    expect(head).toBe(asked?.id);
    expect(half?.content).toMatchObject({ role: 'assistant', content: expect.stringMatching(/^A reply/) });
  });

  it('while nothing of a stream was relayed yet leaves no reply behind', async () => {
    const pair = await startPair({}, { script: () => say('Aye.', { cut: { after: 1, how: 'stall' } }) });
    const exchange = sendChat(pair.spillway.url, streamed);
    exchange.answer.catch(() => undefined);
    await pair.simulator.waitFor((request) => request.state === 'answering');
    exchange.leave();
    await pair.simulator.waitFor((request) => request.state === 'aborted');
    await expect.poll(async () => (await onlyConversation(pair)).calls).toBe(1);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 1 });
  });

  it('of a path that only passes through aborts that too', async () => {
    let left: AbortSignal | null = null;
    const provider = await startProvider((received, response) => {
      left = received.left;
      response.writeHead(200).write('first');
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const leave = new AbortController();
    const response = await fetch(`${pair.spillway.url}/v1/files/1/content`, { signal: leave.signal });
    expect(response.status).toBe(200);
    leave.abort();
    await expect.poll(() => left?.aborted).toBe(true);
    await expect.poll(() => pair.logs.at(-1)).toMatchObject({ outcome: 'cancelled' });
  });
});

describe('the process', () => {
  /** A provider that streams `first`, then waits to be told to go on. */
  async function startHalting() {
    const waiting: (() => void)[] = [];
    const provider = await startProvider(async (received, response) => {
      response.writeHead(200, SSE_HEADERS);
      response.write(chunkEvent({ content: 'first' }));
      if (received.body.includes('wait') || received.method === 'GET')
        await new Promise<void>((resolve) => waiting.push(resolve));
      response.end(`${chunkEvent({ content: ' last' })}${chunkEvent({}, { finish_reason: 'stop' })}${DONE}`);
    });
    return { provider, goOn: () => waiting.splice(0).forEach((resolve) => resolve()) };
  }

  it('killed in the middle of a stream has lost nothing that it acknowledged, and goes on after a restart, SPEC 2.4, 8.5', async () => {
    const { provider } = await startHalting();
    const settings = { SPILLWAY_UPSTREAM_URL: provider.url, SPILLWAY_DATA_DIR: await tempDir() };
    const child = await startChild(settings);
    const messages: unknown[] = [];
    const acknowledged: string[] = [];
    for (const content of ['one', 'two', 'wait']) {
      messages.push({ role: 'user', content });
      const answer = await sendChat(child.url, { model: 'any', stream: true, messages }).answer;
      acknowledged.push(String(answer.headers['x-spillway-head']));
      if (content === 'wait') {
        await answer.until('first');
        child.kill('SIGKILL');
        await expect(answer.body()).rejects.toThrow('broke off');
      } else {
        await answer.body();
        messages.push({ role: 'assistant', content: 'first last' });
      }
    }
    expect(await child.exited).toEqual([null, 'SIGKILL']);

    const pair = await startPair(settings);
    const { id, head, calls } = await onlyConversation(pair);
    const nodes = await nodesOf(pair, id);
    expect(nodes.map((node) => node.content)).toEqual(messages);
    expect(nodes.filter((node) => node.role === 'user').map((node) => node.id)).toEqual(acknowledged);
    expect(head).toBe(acknowledged.at(-1));
    expect(calls).toBe(2);
    const again = await sendChat(pair.spillway.url, {
      model: 'any',
      stream: true,
      messages: [...messages.slice(0, -1), { role: 'user', content: 'three' }],
    }).answer;
    expect((await again.body()).toString()).toContain('[DONE]');
    expect((await onlyConversation(pair)).nodes).toBe(7);
  });

  it('told to stop lets running streams end and be recorded, takes nothing new, and then ends with 0', async () => {
    const { provider, goOn } = await startHalting();
    const settings = { SPILLWAY_UPSTREAM_URL: provider.url, SPILLWAY_DATA_DIR: await tempDir() };
    const child = await startChild(settings);
    // Connections that a client keeps for the next request must not hold the process up.
    const turn = await fetch(`${child.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...streamed, messages: [{ role: 'user', content: 'wait' }] }),
    });
    const file = await fetch(`${child.url}/v1/files/1/content`);
    await fetch(`${child.url}/health`).then((response) => response.text());
    child.kill('SIGTERM');
    await expect.poll(() => child.said()).toContain('finishes what is running');
    const refusal = await fetch(`${child.url}/health`).then(
      (response) => response.status,
      () => 'refused',
    );
    expect([503, 'refused']).toContain(refusal);
    goOn();
    expect(await turn.text()).toContain('[DONE]');
    expect(await file.text()).toContain('[DONE]');
    expect(await child.exited).toEqual([0, null]);

    const pair = await startPair(settings);
    expect(await onlyConversation(pair)).toMatchObject({ nodes: 2, calls: 1 });
  });
});
