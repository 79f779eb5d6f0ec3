import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { responses } from '../../src/dialects/responses.js';
import { createPatientSink } from '../../src/proxy/keep-alive.js';
import { openaiError } from '../../src/simulator/openai-errors.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { ReplyPlan } from '../../src/simulator/reply-plan.js';
import { AGENT_TOOLS, toolMessages } from '../support/agent.js';
import { startProvider } from '../support/provider.js';
import type { RawAnswer } from '../support/raw-client.js';
import { sendChat } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { toolOutputs } from '../support/tool-outputs.js';

const WINDOW = 8_192;
const outputs = toolOutputs(400, 5).filter(({ text }) => text.length > 1_200 && text.length < 2_400);
/** A loop that is past the limit of its window, so that the client has to wait for summaries. */
const messages = [{ role: 'user', content: 'Find out why the build fails.' }, ...toolMessages(outputs.slice(0, 14))];
const body = { model: 'an-agent', messages, tools: AGENT_TOOLS };

interface Waiting {
  readonly pair: StartedPair;
  /** Lets the summaries come. */
  release(): void;
}

/** A pair whose summaries come when they are let. */
async function waitingPair(seconds: string, plan: ReplyPlan = say('It was the cache.')): Promise<Waiting> {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const pair = await startPair(
    { SPILLWAY_WINDOWS: `*=${WINDOW}`, SPILLWAY_KEEP_ALIVE_SECONDS: seconds },
    { windows: { '*': WINDOW }, script: () => plan, summariser: () => released.then(() => 'faithful' as const) },
  );
  return { pair, release };
}

const asksForSummaries = (pair: StartedPair) =>
  pair.simulator.waitFor(({ state, headers }) => state === 'answering' && headers['accept'] === 'application/json');

interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly choices: readonly {
    readonly delta: { readonly role?: string; readonly content?: string | null; readonly refusal?: null };
    readonly finish_reason: string | null;
  }[];
}

const eventsIn = (text: string): readonly string[] =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length));

const isSignOfLife = ({ choices }: Chunk): boolean =>
  choices[0]?.delta.role === 'assistant' && choices[0].delta.content === '' && !('refusal' in choices[0].delta);

async function streamed(answer: Promise<RawAnswer>): Promise<RawAnswer> {
  const begun = await answer;
  await begun.until('chat.completion.chunk');
  return begun;
}

describe('a streaming client that waits for summaries', () => {
  it('gets role chunks with an empty text, and then the real stream behind them (SPEC 6.6)', async () => {
    const { pair, release } = await waitingPair('1');
    const answer = await streamed(sendChat(pair.spillway.url, { ...body, stream: true }).answer);
    expect(pair.simulator.chatRequests()).toEqual([]);
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
    expect(answer.headers['x-spillway-conversation']).toMatch(/^c_/);
    release();
    const events = eventsIn((await answer.body()).toString());
    expect(events.at(-1)).toBe('[DONE]');
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event) as Chunk);
    const signs = chunks.filter(isSignOfLife);
    expect(signs.length).toBeGreaterThan(0);
    expect(chunks.slice(0, signs.length)).toEqual(signs);
    expect(new Set(signs.map(({ id }) => id)).size).toBe(1);
    for (const { object, choices } of signs) {
      expect(object).toBe('chat.completion.chunk');
      expect(choices).toEqual([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
    }
    const rest = chunks.slice(signs.length);
    expect(rest.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('It was the cache.');
    expect(rest.at(-1)?.choices[0]?.finish_reason).toBe('stop');
  });

  it('reads one ordinary reply through the official client (SPEC 6.6)', async () => {
    const plan = callTools({ name: 'read_file', arguments: '{"path":"a"}', id: 'call_next' });
    const { pair, release } = await waitingPair('1', plan);
    const stream = pair
      .client()
      .chat.completions.stream({ ...body, stream: true } as OpenAI.ChatCompletionCreateParamsStreaming);
    let chunks = 0;
    stream.on('chunk', () => {
      chunks++;
      release();
    });
    const message = await stream.finalMessage();
    expect(chunks).toBeGreaterThan(1);
    expect(message).toMatchObject({
      role: 'assistant',
      tool_calls: [{ id: 'call_next', function: { name: 'read_file', arguments: '{"path":"a"}' } }],
    });
    expect(message.content ?? '').toBe('');
    expect((await stream.finalChatCompletion()).choices).toHaveLength(1);
  });

  it('gets nothing before the grace is over: an error keeps its status (SPEC 6.6)', async () => {
    const { pair, release } = await waitingPair(
      '3600',
      openaiError(429, 'Slow down.', { code: 'rate_limit_exceeded' }),
    );
    const { answer } = sendChat(pair.spillway.url, { ...body, stream: true });
    await asksForSummaries(pair);
    release();
    const { status, headers, body: whole } = await answer;
    expect(status).toBe(429);
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse((await whole()).toString())).toMatchObject({ error: { code: 'rate_limit_exceeded' } });
  });

  it('gets an error of the provider in the stream once it has begun, which its client throws (SPEC 6.6)', async () => {
    const { pair, release } = await waitingPair('1', openaiError(429, 'Slow down.', { code: 'rate_limit_exceeded' }));
    const stream = await pair
      .client()
      .chat.completions.create({ ...body, stream: true } as OpenAI.ChatCompletionCreateParamsStreaming);
    const read = async (): Promise<void> => {
      for await (const _ of stream) release();
    };
    const error = await read().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ code: 'rate_limit_exceeded', error: { message: 'Slow down.' } });
  });

  it("gets Spillway's own refusal in the stream once it has begun (SPEC 6.6, 7.7)", async () => {
    const { pair, release } = await waitingPair('1');
    const huge = { role: 'user', content: 'All of this matters. '.repeat(4_000) };
    const answer = await streamed(
      sendChat(pair.spillway.url, {
        ...body,
        messages: [...messages, huge, ...toolMessages(outputs.slice(14, 18))],
        stream: true,
      }).answer,
    );
    release();
    const events = eventsIn((await answer.body()).toString());
    expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({
      error: { code: 'context_length_exceeded', type: 'invalid_request_error' },
    });
    expect(events.at(-1)).toBe('[DONE]');
    expect(pair.simulator.chatRequests()).toEqual([]);
  });

  it('is sent no more signs of life when it has left, and its summaries are not gone on with (SPEC 7.8)', async () => {
    const { pair } = await waitingPair('1');
    const answer = await streamed(sendChat(pair.spillway.url, { ...body, stream: true }).answer);
    answer.leave();
    await pair.simulator.waitFor(({ kind, state }) => state === 'aborted' && kind !== 'chat');
    await expect.poll(() => pair.logs.at(-1)).toMatchObject({ outcome: 'cancelled' });
    expect(pair.simulator.chatRequests()).toEqual([]);
  });
});

describe('a client that gets no signs of life', () => {
  it.each([
    ['does not stream', '1', { stream: false }],
    ['streams where they are off', '0', { stream: true }],
  ] as const)('%s: it gets its answer alone (SPEC 6.6)', async (_, seconds, more) => {
    const { pair, release } = await waitingPair(seconds);
    const { answer } = sendChat(pair.spillway.url, { ...body, ...more });
    await asksForSummaries(pair);
    // Longer than the grace: what must not come would have come.
    const first = await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 1_300, 'nothing'))]);
    expect(first).toBe('nothing');
    release();
    const text = (await (await answer).body()).toString();
    expect(text).not.toMatch(/"delta":\{"role":"assistant","content":""\}/);
    expect(text.replaceAll(/\s/g, '')).toContain(more.stream ? '[DONE]' : 'Itwasthecache.');
  });
});

describe('a provider that answers a streaming request with a whole reply', () => {
  /** Answers chats with a body of the test's own, and lets the simulator write the summaries. */
  async function pairBefore(plain: string, status = 200) {
    let summaries = '';
    const provider = await startProvider(async (received, response) => {
      if (!received.body.includes('"stream":true')) {
        const answer = await fetch(`${summaries}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
          body: received.body.toString(),
        });
        await opened;
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
      } else {
        response.writeHead(status, { 'content-type': 'application/json' }).end(plain);
      }
    });
    let release = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      release = resolve;
    });
    const pair = await startPair(
      {
        SPILLWAY_WINDOWS: `*=${WINDOW}`,
        SPILLWAY_KEEP_ALIVE_SECONDS: '1',
        SPILLWAY_UPSTREAM_URL: provider.url,
        SPILLWAY_STORE: 'memory',
      },
      { windows: { '*': 100_000 } },
    );
    summaries = pair.simulator.url;
    return { pair, release };
  }

  const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
  const call = { id: 'call_1', type: 'function', function: { name: 'read_file', arguments: '{"path":"a"}' } };
  const message = { role: 'assistant', content: 'It was the cache.', tool_calls: [call] };
  const whole = JSON.stringify({
    id: 'chatcmpl-9',
    object: 'chat.completion',
    created: 1,
    model: 'an-agent',
    choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
    usage,
  });

  it('is heard as a stream once signs of life have begun one, and recorded (SPEC 6.6)', async () => {
    const { pair, release } = await pairBefore(whole);
    const stream = pair.client().chat.completions.stream({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    } as OpenAI.ChatCompletionCreateParamsStreaming);
    stream.on('chunk', release);
    expect(await stream.finalMessage()).toMatchObject({ content: 'It was the cache.', tool_calls: [call] });
    expect(await stream.finalChatCompletion()).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }], usage });
    expect(pair.logs.at(-1)).toMatchObject({ outcome: 'complete', inputTokens: 9 });
  });

  it('is heard as an error where it is no reply (SPEC 6.6)', async () => {
    const { pair, release } = await pairBefore('{"error":{"message":"Not today.","code":"no"}}');
    const answer = await streamed(sendChat(pair.spillway.url, { ...body, stream: true }).answer);
    release();
    const events = eventsIn((await answer.body()).toString());
    expect(JSON.parse(events.at(-2) ?? '')).toEqual({ error: { message: 'Not today.', code: 'no' } });
    expect(events.at(-1)).toBe('[DONE]');
  });
});

describe('a patient sink whose stream has begun', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A sink that has sent one sign of life. */
  async function begun() {
    const written: string[] = [];
    const sink = createPatientSink(
      {
        closed: new AbortController().signal,
        start: (status) => void written.push(`START ${status}`),
        write: (chunk) => Promise.resolve(void written.push(new TextDecoder().decode(chunk))),
        end: () => Promise.resolve(void written.push('END')),
        abort: () => void written.push('ABORT'),
      },
      1_000,
    );
    const waited = sink.waitFor(new Promise((resolve) => setTimeout(resolve, 1_500)), {
      keepAlive: () => 'LIFE',
      resume: () => null,
      streamOf: (text) => (text.includes('reply') ? `STREAM ${text}` : null),
      streamError: (text) => `ERROR ${text}`,
      headers: [],
    });
    await vi.advanceTimersByTimeAsync(1_500);
    await waited;
    expect(written.splice(0)).toEqual(['START 200', 'LIFE']);
    return { sink, written };
  }
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

  it('goes on with signs of life while a whole reply comes, and none after it (SPEC 6.6)', async () => {
    const { sink, written } = await begun();
    sink.start(200, [['content-type', 'application/json']]);
    await sink.write(bytes(' \n'));
    await vi.advanceTimersByTimeAsync(2_500);
    await sink.write(bytes('reply'));
    await sink.end();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(written).toEqual(['LIFE', 'LIFE', 'STREAM  \nreply', 'END']);
  });

  it('passes an event stream on that is not called one (SPEC 6.6)', async () => {
    const { sink, written } = await begun();
    sink.start(200, [['content-type', 'application/octet-stream']]);
    await sink.write(bytes('\nda'));
    await sink.write(bytes('ta: 1\n\n'));
    await sink.write(bytes('data: 2\n\n'));
    await vi.advanceTimersByTimeAsync(10_000);
    await sink.end();
    expect(written).toEqual(['\ndata: 1\n\n', 'data: 2\n\n', 'END']);
  });

  it('is told an error status in it, whatever its body looks like (SPEC 6.6)', async () => {
    const { sink, written } = await begun();
    sink.start(502, [['content-type', 'text/event-stream']]);
    await sink.write(bytes('data: reply'));
    await sink.end();
    expect(written).toEqual(['ERROR data: reply', 'END']);
  });

  it('is left alone once it was broken off', async () => {
    const { sink, written } = await begun();
    sink.start(200, [['content-type', 'application/json']]);
    sink.abort();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(written).toEqual(['ABORT']);
  });
});

describe('a patient sink of a Responses client, whose signs of life begin the response', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const own = { model: 'm', id: 'own', createdAt: 1_000 };
  const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [] };
  const whole = JSON.stringify({ id: 'resp_1', object: 'response', status: 'completed', output: [item] });
  const stream = responses.streamOf(whole, { includesUsage: true }) ?? '';

  /** What the client got in all, for an answer written in pieces of `step` bytes. */
  async function heard(answer: string, contentType: string, step: number, status = 200): Promise<string> {
    let written = '';
    const sink = createPatientSink(
      {
        closed: new AbortController().signal,
        start: () => undefined,
        write: (chunk) => Promise.resolve(void (written += new TextDecoder().decode(chunk))),
        end: () => Promise.resolve(void (written += 'END')),
        abort: () => undefined,
      },
      1_000,
    );
    const waited = sink.waitFor(new Promise((resolve) => setTimeout(resolve, 2_500)), {
      keepAlive: (sent) => responses.keepAlive(own, sent),
      resume: (sent) => responses.resume(sent),
      streamOf: (text) => responses.streamOf(text, { includesUsage: true }),
      streamError: (text) => responses.streamError(text, own),
      headers: [],
    });
    await vi.advanceTimersByTimeAsync(2_500);
    await waited;
    sink.start(status, [['content-type', contentType]]);
    const bytes = new TextEncoder().encode(answer);
    for (let at = 0; at < bytes.length; at += step) await sink.write(bytes.subarray(at, at + step));
    await sink.end();
    return written;
  }
  const typesIn = (text: string): readonly string[] =>
    [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type ?? '');
  const numbersIn = (text: string): readonly number[] =>
    [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
  const rest = [
    'response.in_progress',
    'response.output_item.added',
    'response.output_item.done',
    'response.completed',
  ];

  it.each([
    ['a stream', stream, 'text/event-stream', 1_000_000],
    ['a stream in pieces', stream, 'text/event-stream', 7],
    ['a stream that is not called one', stream, 'application/octet-stream', 7],
    ['a whole reply', whole, 'application/json', 7],
  ])('gets no second beginning, and numbers that go on, with %s (SPEC 6.6)', async (_, answer, contentType, step) => {
    const text = await heard(answer, contentType, step);
    expect(typesIn(text)).toEqual(['response.created', 'response.in_progress', ...rest]);
    expect(numbersIn(text)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(text.endsWith('\n\nEND')).toBe(true);
  });

  it('gets an error with numbers that go on (SPEC 6.6)', async () => {
    const text = await heard('{"error":{"message":"No.","code":"no"}}', 'application/json', 7, 429);
    expect(typesIn(text)).toEqual(['response.created', 'response.in_progress', 'response.failed', 'error']);
    expect(numbersIn(text)).toEqual([0, 1, 2, 3]);
  });

  it('gets what a stream that broke off had begun to say (SPEC 6.6)', async () => {
    const text = await heard(`${stream}event: x\ndata: {"sequence_number":5`, 'text/event-stream', 7);
    expect(text.endsWith('event: x\ndata: {"sequence_number":5END')).toBe(true);
  });
});
