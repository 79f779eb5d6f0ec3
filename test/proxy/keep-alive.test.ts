import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { openaiError } from '../../src/simulator/openai-errors.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { ReplyPlan } from '../../src/simulator/reply-plan.js';
import { AGENT_TOOLS, toolMessages } from '../support/agent.js';
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
