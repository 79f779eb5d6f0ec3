import { APIError, BadRequestError } from 'openai';
import { describe, expect, it } from 'vitest';
import { OPENING } from '../../src/core/compaction/headings.js';
import { OPENAI_OVERFLOW } from '../../src/simulator/chat-format.js';
import { contextLengthExceeded, openaiError } from '../../src/simulator/openai-errors.js';
import type { SimulatorOptions } from '../../src/simulator/simulator.js';
import { Chat, padding } from '../support/chat.js';
import { SSE_HEADERS, chunkEvent, completion, startProvider } from '../support/provider.js';
import { sendChat } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { callOf, nodesOf, onlyConversation } from '../support/stored.js';

const WORDS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];

/** A history of a good 2,900 tokens; nobody has seen it yet. */
const HISTORY = WORDS.flatMap((word) => [
  { role: 'user', content: padding(word, 250) },
  { role: 'assistant', content: `That was ${word}.` },
]);
const question = { role: 'user', content: 'What was first? FACT-harbour=blue-7' };
const request = (stream: boolean) => ({ model: 'any', stream, messages: [...HISTORY, question] });

type Overflow = NonNullable<SimulatorOptions['overflow']>;

const inStream: Overflow = { ...OPENAI_OVERFLOW, where: 'stream' };
const afterContent: Overflow = { ...OPENAI_OVERFLOW, where: 'after-content' };
const small = { '*': 2_000 };

async function summariesOf(pair: StartedPair) {
  const { id } = await onlyConversation(pair);
  return (await nodesOf(pair, id)).filter((node) => node.metadata.covers_ids !== undefined);
}

describe('an overflow that comes before any content', () => {
  it.each([
    ['as an HTTP error', false, OPENAI_OVERFLOW],
    ['as an HTTP error to a stream', true, OPENAI_OVERFLOW],
    ['inside a stream', true, inStream],
  ])(
    '%s is compacted away and asked once more, and the client sees an ordinary reply, SPEC 6.3, 6.4',
    async (_, stream, overflow) => {
      // No window is configured: only the provider knows.
      const pair = await startPair({}, { windows: small, overflow });
      const answer = await sendChat(pair.spillway.url, request(stream)).answer;
      const text = (await answer.body()).toString();
      expect(answer.status).toBe(200);
      expect(text).not.toContain('context_length_exceeded');
      expect(text.includes('[DONE]')).toBe(stream);
      expect(answer.headers).toMatchObject({ 'x-spillway-action': 'reactive' });
      expect(Number(answer.headers['x-spillway-tokens-after'])).toBeLessThan(2_000);

      // Refused, summarised, asked again: the second within the window and with the same last message.
      const chats = pair.simulator.chatRequests();
      expect(chats.map((chat) => (chat.body as { messages: unknown[] }).messages.at(-1))).toEqual([question, question]);
      expect(chats[1]?.promptTokens).toBeLessThan(2_000);
      const [summary, ...more] = await summariesOf(pair);
      expect(more).toEqual([]);
      expect(summary?.metadata.trigger).toBe('reactive');

      // Each request upstream is a call of its own (SPEC 2.5); the client is told of the one that it reads.
      const conversation = await onlyConversation(pair);
      expect(conversation.calls).toBe(2);
      const call = await callOf(pair, answer.headers);
      expect(call).toMatchObject({ action: 'reactive', outcome: 'complete', status: 200 });
      expect(call.reads[0]).toBe(summary?.id);
      expect(conversation.head).toBe(call.replies[0]);
    },
  );

  it('is told a smaller window than was configured', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=100000' }, { windows: small });
    const answer = await sendChat(pair.spillway.url, request(false)).answer;
    expect(answer.headers).toMatchObject({ 'x-spillway-action': 'reactive' });
    expect(answer.status).toBe(200);
  });

  it('that states no limit at all is recovered from by what was refused, SPEC 5.1', async () => {
    const refusal = () =>
      openaiError(400, 'Your input exceeds the context window of this model. Please adjust your input and try again.', {
        code: 'context_length_exceeded',
        param: 'input',
      });
    const pair = await startPair({}, { windows: { '*': 2_600 }, overflow: { where: 'http', refusal } });
    const answer = await sendChat(pair.spillway.url, request(false)).answer;
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ 'x-spillway-action': 'reactive' });
  });

  it('of input and the requested output together leaves the explicit cap as it is, SPEC 6.4', async () => {
    const pair = await startPair({}, { windows: { '*': 3_500 } });
    const answer = await sendChat(pair.spillway.url, { ...request(false), max_completion_tokens: 1_000 }).answer;
    expect(answer.status).toBe(200);
    expect(
      pair.simulator.chatRequests().map((chat) => (chat.body as Record<string, unknown>)['max_completion_tokens']),
    ).toEqual([1_000, 1_000]);
  });

  it('needs no recovery for the next turn: the summary holds', async () => {
    const pair = await startPair({}, { windows: small });
    const chat = new Chat(pair);
    chat.messages = [...HISTORY, question];
    await chat.send();
    const calls = pair.simulator.summaryRequests().length;
    const seen = await chat.say('And what is the value of FACT-harbour?');
    expect(seen).toMatchObject({
      status: 200,
      text: 'The value of FACT-harbour is blue-7.',
      spillway: { action: 'none' },
    });
    expect(pair.simulator.summaryRequests().length).toBe(calls);
  });
});

describe('a second overflow', () => {
  it.each([false, true])(
    "is the provider's own error, byte for byte, after one retry and no more, SPEC 6.4: stream %s",
    async (stream) => {
      let refusals = 0;
      const errors: string[] = [];
      const provider = await startProvider((received, response) => {
        if (received.body.includes(OPENING)) {
          return void response.end(completion(summaryText));
        }
        refusals += 1;
        errors.push(
          `{ "error":{"code":"context_length_exceeded","big":1234567890123456789${refusals},\n"message":"This model's maximum context length is 2000 tokens."} }\n`,
        );
        response
          .writeHead(400, { 'content-type': 'application/json; x=1', 'x-request-id': `req_${refusals}` })
          .end(errors.at(-1));
      });
      const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
      const answer = await sendChat(pair.spillway.url, request(stream)).answer;
      expect(answer.status).toBe(400);
      expect(answer.headers).toMatchObject({ 'content-type': 'application/json; x=1', 'x-request-id': 'req_2' });
      expect((await answer.body()).toString()).toBe(errors[1]);
      expect(refusals).toBe(2);
    },
  );
});

describe('a client that leaves while its request is recovered', () => {
  it('leaves a record of the call that was refused, SPEC 2.5', async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const provider = await startProvider(async (received, response) => {
      if (received.body.includes(OPENING)) {
        await released;
        return void response.end(completion(summaryText));
      }
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end('{"error":{"code":"context_length_exceeded","message":"Too long."}}');
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const sent = sendChat(pair.spillway.url, request(false));
    sent.answer.catch(() => undefined);
    await expect.poll(() => provider.received.length).toBe(2);
    sent.leave();
    await expect.poll(async () => (await onlyConversation(pair)).calls).toBe(1);
    release();
  });
});

const summaryText = [
  'Intent',
  'Standing instructions',
  'Decisions',
  'Work done',
  'In progress and blocked',
  'Exact facts',
  'Open questions',
]
  .map((heading) => `## ${heading}\nNone.`)
  .join('\n');

describe('an overflow with nothing to compact', () => {
  it.each([
    ['whole', false, OPENAI_OVERFLOW],
    ['over HTTP to a stream', true, OPENAI_OVERFLOW],
    ['inside a stream', true, inStream],
  ])("is the provider's own error, unchanged, SPEC 6.4: %s", async (_, stream, overflow) => {
    const pair = await startPair({}, { windows: { '*': 100 }, overflow });
    const body = { model: 'any', stream, messages: [{ role: 'user', content: padding('alone', 300) }] };
    const through = await sendChat(pair.spillway.url, body).answer;
    const direct = await sendChat(pair.simulator.url, body).answer;
    const anonymous = async (answer: typeof direct) =>
      (await answer.body())
        .toString()
        .replace(/simulated-\d+/g, 'simulated-N')
        .replace(/"created":\d+/g, '"created":0');
    expect(through.status).toBe(direct.status);
    expect(await anonymous(through)).toBe(await anonymous(direct));
    expect(through.headers['content-type']).toBe(direct.headers['content-type']);
    expect(through.headers['x-spillway-action']).toBe('none');
    expect(pair.simulator.summaryRequests()).toEqual([]);
    expect(pair.simulator.chatRequests().length).toBe(2);
  });

  it('is raised by the official client as it always was', async () => {
    const pair = await startPair({}, { windows: { '*': 100 } });
    const ask = pair
      .client()
      .chat.completions.create({ model: 'any', messages: [{ role: 'user', content: padding('alone', 300) }] });
    const error = await ask.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
  });
});

describe('an overflow that comes after content', () => {
  it('is passed on as it came, and the next turn compacts before it is sent, SPEC 6.3', async () => {
    const pair = await startPair({}, { windows: small, overflow: afterContent });
    const broken = await sendChat(pair.spillway.url, request(true)).answer;
    const text = (await broken.body()).toString();
    expect(broken.status).toBe(200);
    expect(text).toContain('"content":"This reply');
    expect(text).toContain('context_length_exceeded');
    expect(pair.simulator.chatRequests().length).toBe(1);
    expect(pair.simulator.summaryRequests().length).toBe(0);
    expect((await callOf(pair, broken.headers)).outcome).toBe('failed');

    const next = await sendChat(pair.spillway.url, request(true)).answer;
    expect((await next.body()).toString()).toContain('[DONE]');
    expect(next.headers['x-spillway-action']).toBe('reactive');
    // Compacted first: it was sent once, and fitted.
    expect(pair.simulator.chatRequests().length).toBe(2);
    expect(pair.simulator.chatRequests()[1]?.promptTokens).toBeLessThan(2_000);
    const third = await sendChat(pair.spillway.url, request(true)).answer;
    await third.body();
    expect(third.headers['x-spillway-action']).toBe('none');
  });

  it('makes the next turn compact although a compaction failed here before: reactive ones are exempt, SPEC 5.11', async () => {
    // The configured window is too large, and the summariser fails at first.
    const pair = await startPair(
      { SPILLWAY_WINDOWS: '*=4600' },
      { windows: { '*': 2_800 }, overflow: afterContent, summariser: ['server-error'] },
    );
    const chat = new Chat(pair, {}, 'any');
    chat.messages = HISTORY.slice(0, -2);
    expect((await chat.say(padding('ten', 250))).status).toBe(200);
    expect(pair.simulator.summaryRequests().length).toBe(1);
    const body = {
      model: 'any',
      stream: true,
      messages: [...chat.messages, { role: 'user', content: padding('more', 250) }],
    };
    const broken = await sendChat(pair.spillway.url, body).answer;
    expect((await broken.body()).toString()).toContain('context_length_exceeded');
    expect(pair.simulator.summaryRequests().length).toBe(1);
    const next = await sendChat(pair.spillway.url, body).answer;
    expect((await next.body()).toString()).toContain('[DONE]');
    expect(next.headers['x-spillway-action']).toBe('reactive');
  });

  it('is not retried behind 256 kB of a stream without content either, SPEC 6.3', async () => {
    const filler = chunkEvent({ role: 'assistant', content: '' }).repeat(1_800);
    const error = `data: ${JSON.stringify(contextLengthExceeded({ limitTokens: 2_000, messageTokens: 3_000, functionTokens: 0, outputCap: null }).body)}\n\n`;
    expect(filler.length).toBeGreaterThan(256 * 1024);
    const provider = await startProvider(
      (_, response) => void response.writeHead(200, SSE_HEADERS).end(filler + error),
    );
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const answer = await sendChat(pair.spillway.url, request(true)).answer;
    expect((await answer.body()).toString()).toBe(filler + error);
    expect(provider.received.length).toBe(1);
  });
});

describe('an error that is no overflow', () => {
  it.each([
    [
      'a rate limit',
      429,
      {
        code: 'rate_limit_exceeded',
        message:
          'Rate limit reached for tokens per min. Limit 30000, Requested 31000. Please reduce the length of the messages.',
      },
    ],
    ['a wrong key', 401, { code: 'invalid_api_key', message: 'Incorrect API key provided.' }],
    ['a spent quota', 429, { code: 'insufficient_quota', message: 'You exceeded your current quota.' }],
    ['a server error', 500, { code: null, message: 'The server had an error while processing your request.' }],
    ['an overload', 503, { code: null, message: 'The engine is currently overloaded.' }],
    ['a content filter', 400, { code: 'content_filter', message: 'The response was filtered.' }],
    ['another bad request', 400, { code: 'invalid_value', message: "Invalid 'temperature'." }],
  ])('passes untouched with its status and headers, and nothing is asked again: %s', async (_, status, error) => {
    const text = ` {"error": ${JSON.stringify(error)}}\n`;
    const provider = await startProvider((_received, response) => {
      response
        .writeHead(status, {
          'content-type': 'application/json',
          'retry-after': '7',
          'x-ratelimit-reset-tokens': '6m0s',
        })
        .end(text);
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    for (const stream of [false, true]) {
      const answer = await sendChat(pair.spillway.url, request(stream)).answer;
      expect(answer.status).toBe(status);
      expect((await answer.body()).toString()).toBe(text);
      expect(answer.headers).toMatchObject({
        'retry-after': '7',
        'x-ratelimit-reset-tokens': '6m0s',
        'x-spillway-action': 'none',
      });
      expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'failed', status, replies: [] });
    }
    expect(provider.received.length).toBe(2);
    // The request's nodes are there, HEAD on the last of them, and no reply.
    const conversation = await onlyConversation(pair);
    expect(conversation.nodes).toBe(HISTORY.length + 1);
  });

  it('is no evidence when the client wrote it, SPEC 6.1', async () => {
    const said = "This model's maximum context length is 2000 tokens. However, your messages resulted in 3000 tokens.";
    const provider = await startProvider((_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          error: { message: `Cannot use this: "${said}"`, type: 'invalid_request_error', param: null, code: null },
        }),
      );
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const answer = await sendChat(pair.spillway.url, {
      model: 'any',
      messages: [...HISTORY, { role: 'user', content: said }],
    }).answer;
    expect(answer.status).toBe(400);
    expect(provider.received.length).toBe(1);
  });

  it('inside a stream passes as it came, and the official client raises it', async () => {
    const error = { message: 'The server had an error.', type: 'server_error', param: null, code: null };
    const provider = await startProvider((_, response) => {
      response.writeHead(200, SSE_HEADERS).end(`data: ${JSON.stringify({ error })}\n\n`);
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const stream = await pair
      .client()
      .chat.completions.create({ model: 'any', stream: true, messages: [{ role: 'user', content: 'Hello' }] });
    const read = async () => {
      for await (const chunk of stream) expect(chunk).toBeUndefined();
    };
    await expect(read()).rejects.toThrow(APIError);
    expect(provider.received.length).toBe(1);
  });
});
