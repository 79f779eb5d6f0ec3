import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Respond } from '../support/provider.js';
import { DONE, SSE_HEADERS, chunkEvent, completion, startProvider, writeInPieces } from '../support/provider.js';
import { sendChat } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import { callOf, nodesOf, onlyConversation } from '../support/stored.js';

const hello = { model: 'any', messages: [{ role: 'user', content: 'Hello' }] };
const JSON_HEADERS = { 'content-type': 'application/json' };

async function startBefore(respond: Respond) {
  const provider = await startProvider(respond);
  return startPair({ SPILLWAY_UPSTREAM_URL: provider.url, SPILLWAY_STORE: 'memory' });
}

/** One turn to its end: the bytes the client got, its call, and what is stored. */
async function turn(stream: boolean, respond: Respond) {
  const pair = await startBefore(respond);
  const answer = await sendChat(pair.spillway.url, { ...hello, stream }).answer;
  const bytes = await answer.body();
  const conversation = await onlyConversation(pair);
  const nodes = await nodesOf(pair, conversation.id);
  const call = await callOf(pair, answer.headers);
  return { answer, bytes, call, conversation, nodes, log: pair.logs.at(-1) };
}

/** The request's node is all there is, and HEAD stands on it. */
function expectUnread(seen: Awaited<ReturnType<typeof turn>>, why: string): void {
  expect(seen.call).toMatchObject({ outcome: 'unread', replies: [], status: 200 });
  expect(seen.log).toMatchObject({ outcome: 'unread', unread: why });
  expect(seen.nodes.map((node) => node.role)).toEqual(['user']);
  expect(seen.conversation.head).toBe(seen.nodes[0]?.id);
}

const END = `${chunkEvent({ content: 'last' })}${chunkEvent({}, { finish_reason: 'stop' })}${DONE}`;
const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;

describe('an answer of which something cannot be read', () => {
  it.each([
    ['too_large', chunkEvent({ content: 'x'.repeat(9 * 1024 * 1024) })],
    ['too_deep', chunkEvent({ content: 'first', extra: null }).replace('"extra":null', `"extra":[${deep}]`)],
    ['malformed', 'data: {"choices":[{"index":0,"delta":{"content":"fir\n\n'],
  ])('reaches the client whole and is no reply of the conversation, SPEC 2.3: an event %s', async (why, event) => {
    const text = chunkEvent({ role: 'assistant', content: '' }) + event + END;
    const seen = await turn(true, (_, response) => void response.writeHead(200, SSE_HEADERS).end(text));
    expect(seen.bytes.equals(Buffer.from(text))).toBe(true);
    expectUnread(seen, why);
  });

  it('that breaks off besides has failed, SPEC 2.3', async () => {
    const pair = await startBefore(async (_, response) => {
      response.writeHead(200, SSE_HEADERS);
      await new Promise((resolve) => response.write(`data: {"choices":[{\n\n${chunkEvent({ content: 'a' })}`, resolve));
      response.destroy();
    });
    const answer = await sendChat(pair.spillway.url, { ...hello, stream: true }).answer;
    await expect(answer.body()).rejects.toThrow('broke off');
    expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'failed', replies: [] });
  });

  it('is a JSON reply larger than is held, SPEC 2.3', async () => {
    const text = completion('y'.repeat(33 * 1024 * 1024));
    const seen = await turn(false, (_, response) => void response.writeHead(200, JSON_HEADERS).end(text));
    expect(seen.bytes.equals(Buffer.from(text))).toBe(true);
    expectUnread(seen, 'too_large');
  });

  it('is a JSON reply whose message nests too deep, SPEC 2.3', async () => {
    const text = completion('Aye.').replace('"content":"Aye."', `"content":"Aye.","tool_calls":[${deep}]`);
    const seen = await turn(false, (_, response) => void response.writeHead(200, JSON_HEADERS).end(text));
    expect(seen.bytes.toString()).toBe(text);
    expect(seen.call).toMatchObject({ replies: [] });
    expect(seen.call.outcome).not.toBe('complete');
    expect(seen.conversation.head).toBe(seen.nodes[0]?.id);
  });

  it.each([false, true])('comes in a coding that is not known here, SPEC 2.3: stream %s', async (stream) => {
    const bytes = Buffer.from('as good as random');
    const seen = await turn(stream, (_, response) => {
      response.writeHead(200, { ...JSON_HEADERS, 'content-encoding': 'x-unheard-of' }).end(bytes);
    });
    expect(seen.bytes).toEqual(bytes);
    expect(seen.answer.headers['content-encoding']).toBe('x-unheard-of');
    expectUnread(seen, 'encoded');
  });

  it('is an error in a coding that is not known here: it has failed', async () => {
    const seen = await turn(false, (_, response) => {
      response.writeHead(500, { ...JSON_HEADERS, 'content-encoding': 'x-unheard-of' }).end('no');
    });
    expect(seen.answer.status).toBe(500);
    expect(seen.call).toMatchObject({ outcome: 'failed', replies: [] });
  });

  it('holds words that are no chunks: signs of life, and a whole reply', async () => {
    const text = `data: ping\n\ndata:\n\n: comment\n\n${END}`;
    const seen = await turn(true, (_, response) => void response.writeHead(200, SSE_HEADERS).end(text));
    expect(seen.bytes.toString()).toBe(text);
    expect(seen.call).toMatchObject({ outcome: 'complete' });
    expect(seen.log).not.toHaveProperty('unread');
  });

  it.each([': bye', '\n', 'event: bye\n'])('is not one that ends in a line without an event: %j', async (tail) => {
    const seen = await turn(true, (_, response) => void response.writeHead(200, SSE_HEADERS).end(END + tail));
    expect(seen.bytes.toString()).toBe(END + tail);
    expect(seen.call).toMatchObject({ outcome: 'complete' });
    expect(seen.conversation.head).toBe(seen.nodes[1]?.id);
  });
});

describe('an answer that comes encoded although none was asked for', () => {
  const codings = [
    ['gzip', gzipSync],
    ['X-GZIP', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
  ] as const;

  it.each(codings)('is read like any other: JSON in %s', async (coding, encode) => {
    const seen = await turn(false, (_, response) => {
      response.writeHead(200, { ...JSON_HEADERS, 'content-encoding': coding }).end(encode(completion('Aye.')));
    });
    expect(seen.bytes.toString()).toBe(completion('Aye.'));
    expect(seen.call).toMatchObject({ outcome: 'complete' });
    expect(seen.nodes[1]?.content).toMatchObject({ content: 'Aye.' });
  });

  it.each(codings)('is read like any other: a stream in %s', async (coding, encode) => {
    const seen = await turn(true, async (_, response) => {
      response.writeHead(200, { ...SSE_HEADERS, 'content-encoding': coding });
      await writeInPieces(response, encode(END), 7);
      response.end();
    });
    expect(seen.bytes.toString()).toBe(END);
    expect(seen.call).toMatchObject({ outcome: 'complete' });
    expect(seen.nodes[1]?.content).toMatchObject({ content: 'last' });
  });
});

describe('a stream that is not called one', () => {
  it.each([
    ['no type', undefined],
    ['application/octet-stream', 'application/octet-stream'],
    ['text/plain', 'text/plain; charset=utf-8'],
    ['application/json', 'application/json'],
    ['odd letters', 'Text/Event-Stream;charset=UTF-8'],
  ])('goes through as it comes, and is recorded: %s', async (_, type) => {
    let goOn = (): void => undefined;
    const toldToGoOn = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const pair = await startBefore(async (_request, response) => {
      response.writeHead(200, type === undefined ? {} : { 'content-type': type });
      response.write(`\n: hello\n\n${chunkEvent({ content: 'first ' })}`);
      await toldToGoOn;
      response.end(END);
    });
    const answer = await sendChat(pair.spillway.url, { ...hello, stream: true }).answer;
    await answer.until('first');
    goOn();
    expect((await answer.body()).toString()).toBe(`\n: hello\n\n${chunkEvent({ content: 'first ' })}${END}`);
    expect(answer.headers['content-type']).toBe(type);
    expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'complete' });
    const { id } = await onlyConversation(pair);
    expect((await nodesOf(pair, id))[1]?.content).toMatchObject({ content: 'first last' });
  });
});
