import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { eventsAnswer } from '../../src/simulator/answer.js';
import { say } from '../../src/simulator/reply-plan.js';
import { jsonOf, postChat, simulate } from './simulate.js';

const chat = (content: string) => ({ model: 'm', messages: [{ role: 'user', content }] });
const KEY = { authorization: 'Bearer sk-secret-of-a-test-1234' };

describe('a request is recorded', () => {
  test('with its bytes, its JSON, what was counted and what was answered', async () => {
    const simulator = await simulate({ script: () => say('Hi') });
    const text = JSON.stringify(chat('Hello'), null, 3);
    await (await postChat(simulator, text)).text();
    const record = await simulator.waitFor(({ state }) => state === 'answered');
    expect(record).toMatchObject({
      index: 0,
      kind: 'chat',
      method: 'POST',
      path: '/v1/chat/completions',
      query: '',
      body: chat('Hello'),
      bytesReceived: text.length,
      promptTokens: 8,
      status: 200,
      reply: { choices: [{ text: 'Hi', stop: 'stop' }], usage: { completionTokens: 1 } },
    });
    expect(Buffer.from(record.bytes).toString()).toBe(text);
  });

  test('without its credential', async () => {
    const simulator = await simulate();
    const headers = { ...KEY, 'x-api-key': 'another-secret-5678', cookie: 'short', 'x-other': 'kept' };
    await fetch(`${simulator.url}/v1/models`, { headers });
    expect(simulator.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer …1234',
      'x-api-key': '…5678',
      cookie: '…',
      'x-other': 'kept',
    });
    expect(JSON.stringify(simulator.requests)).not.toContain('secret');
  });

  test('from its first byte on, while its body still arrives', async () => {
    const simulator = await simulate();
    let send = (_: string | null) => {};
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        send = (text) => (text === null ? controller.close() : controller.enqueue(Buffer.from(text)));
      },
    });
    const pending = fetch(`${simulator.url}/v1/files`, { method: 'POST', headers: KEY, body: stream, duplex: 'half' });
    send('12345');
    expect(await simulator.waitFor(({ bytesReceived }) => bytesReceived === 5)).toMatchObject({ state: 'receiving' });
    send('678');
    send(null);
    expect(await jsonOf(await pending)).toMatchObject({ object: 'simulator.echo', bytes: 8 });
  });

  test('as aborted when the client leaves while it sends', async () => {
    const simulator = await simulate();
    const leaving = new AbortController();
    const stream = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(Buffer.from('12345')) });
    const pending = fetch(`${simulator.url}/v1/files`, {
      method: 'POST',
      headers: KEY,
      body: stream,
      duplex: 'half',
      signal: leaving.signal,
    });
    await simulator.waitFor(({ bytesReceived }) => bytesReceived === 5);
    leaving.abort();
    await expect(pending).rejects.toThrow('aborted');
    expect(await simulator.waitFor(({ state }) => state === 'aborted')).toMatchObject({ status: null });
  });

  test('decompressed for reading, its bytes as they came', async () => {
    const simulator = await simulate();
    const bytes = gzipSync(JSON.stringify(chat('Hello')));
    const response = await postChat(simulator, '', { headers: { ...KEY, 'content-encoding': 'gzip' }, body: bytes });
    expect(response.status).toBe(200);
    expect(simulator.requests[0]).toMatchObject({ body: chat('Hello') });
    expect(Buffer.from(simulator.requests[0]?.bytes ?? []).equals(bytes)).toBe(true);
  });

  test('as long as there are not too many', async () => {
    const simulator = await simulate({ keepRequests: 2 });
    for (const word of ['one', 'two', 'three']) await postChat(simulator, chat(word));
    expect(simulator.requests.map(({ index }) => index)).toEqual([1, 2]);
  });
});

test('what the model read is every string of every chat request', async () => {
  const simulator = await simulate();
  const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"tag-arguments"}' } };
  await postChat(simulator, {
    model: 'm',
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'tag-part' }] },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'tag-result' },
    ],
  });
  await postChat(simulator, chat('tag-second'));
  expect(simulator.textsRead().map((text) => text.match(/tag-\w+/g))).toEqual([
    ['tag-part', 'tag-arguments', 'tag-result'],
    ['tag-second'],
  ]);
});

describe('waiting for a request', () => {
  test('ends at once when it was there before', async () => {
    const simulator = await simulate();
    await postChat(simulator, chat('Hello'));
    expect(await simulator.waitFor(({ kind }) => kind === 'chat')).toBe(simulator.requests[0]);
  });

  test('is rejected when time is over, and when the simulator is closed', async () => {
    const simulator = await simulate();
    await expect(simulator.waitFor(() => false, 1)).rejects.toThrow('no such request within 1 ms; it saw 0 requests');
    const [waited] = await Promise.allSettled([simulator.waitFor(() => false), simulator.close()]);
    expect(waited).toMatchObject({
      status: 'rejected',
      reason: { message: 'simulator: it was closed; it saw 0 requests' },
    });
  });
});

describe('a path that nobody else serves', () => {
  test('is answered with what was received, binary bodies included', async () => {
    const simulator = await simulate();
    const form = new FormData();
    form.append('file', new Blob([Uint8Array.from({ length: 256 }, (_, index) => index)]), 'speech.wav');
    const response = await fetch(`${simulator.url}/v1/audio/transcriptions?language=de`, {
      method: 'POST',
      headers: KEY,
      body: form,
    });
    const record = simulator.requests[0];
    expect(await jsonOf(response)).toMatchObject({
      path: '/v1/audio/transcriptions',
      query: '?language=de',
      content_type: expect.stringContaining('multipart/form-data; boundary='),
      bytes: record?.bytes.length,
    });
    expect(Buffer.from(record?.bytes ?? []).includes(Buffer.from([127, 128]))).toBe(true);
    expect(response.headers.get('server')).toBe('spillway-simulator');
  });

  test('sends the very body back on demand', async () => {
    const simulator = await simulate();
    const bytes = Uint8Array.from({ length: 5000 }, (_, index) => index % 256);
    const headers = { ...KEY, 'content-type': 'audio/wav' };
    const response = await fetch(`${simulator.url}/v1/audio/speech?echo=bytes`, {
      method: 'POST',
      headers,
      body: bytes,
    });
    expect(response.headers.get('content-type')).toBe('audio/wav');
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  });

  test('is answered by the caller of the simulator where it wants to', async () => {
    const simulator = await simulate({
      respond: ({ path }) => (path === '/v1/threads' ? eventsAnswer(['event: ping\n\n', 'data: 1\n\n']) : null),
    });
    const response = await fetch(`${simulator.url}/v1/threads`, { method: 'POST', headers: KEY });
    expect(await response.text()).toBe('event: ping\n\ndata: 1\n\n');
    expect(await jsonOf(await fetch(`${simulator.url}/v1/files`, { headers: KEY }))).toMatchObject({
      method: 'GET',
      path: '/v1/files',
    });
  });
});

describe('the default reply', () => {
  test('tells the value of a planted fact it was sent, wherever that stood, and says when it was not', async () => {
    const simulator = await simulate();
    const ask = async (...messages: object[]) =>
      (await jsonOf(await postChat(simulator, { model: 'm', messages }))).choices[0].message.content;
    const question = { role: 'user', content: 'What are the values of FACT-door and FACT-sea?' };
    expect(
      await ask(
        { role: 'system', content: 'Note "FACT-door=blue-7".' },
        { role: 'assistant', content: 'FACT-sea=calm, yes' },
        question,
      ),
    ).toBe('The value of FACT-door is blue-7. The value of FACT-sea is calm.');
    expect(await ask(question)).toBe('I do not know the value of FACT-door. I do not know the value of FACT-sea.');
  });

  test('is a sentence of the given length that depends on what was sent', async () => {
    const simulator = await simulate({ replyWords: 9 });
    const ask = async (content: string) =>
      (await jsonOf(await postChat(simulator, chat(content)))).choices[0].message.content;
    const first = await ask('Hello');
    expect(first.split(' ')).toHaveLength(9);
    expect(await ask('Hello')).toBe(first);
    expect(await ask('Hello!')).not.toBe(first);
  });
});
