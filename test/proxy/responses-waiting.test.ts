import type OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { responses } from '../../src/dialects/responses.js';
import { startProvider } from '../support/provider.js';
import { startPair } from '../support/start.js';
import { toolOutputs } from '../support/tool-outputs.js';

const WINDOW = 8_192;
const outputs = toolOutputs(400, 5).filter(({ text }) => text.length > 1_200 && text.length < 2_400);
const reply = [
  { id: 'rs_9', type: 'reasoning', summary: [], encrypted_content: 'gAAAAB' },
  {
    id: 'msg_9',
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'It was the cache.', annotations: [], logprobs: [] }],
  },
  {
    id: 'fc_9',
    type: 'function_call',
    status: 'completed',
    call_id: 'call_9',
    name: 'read_file',
    arguments: '{"path":"a"}',
  },
];
const usage = (input: number) => ({ input_tokens: input, output_tokens: 9, total_tokens: input + 9 });
const whole = (output: readonly object[]) => ({
  id: 'resp_9',
  object: 'response',
  created_at: 1,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'an-agent',
  output,
  usage: usage(900),
});

/** A loop that is past the limit of its window. */
const input = [
  { role: 'user', content: 'Find out why the build fails.' },
  ...outputs.slice(0, 14).flatMap(({ text }, index) => [
    {
      type: 'reasoning',
      id: `rs_${index}`,
      summary: [{ type: 'summary_text', text: 'Look.' }],
      encrypted_content: `gA${index}`,
    },
    {
      type: 'function_call',
      id: `fc_${index}`,
      call_id: `call_${index}`,
      name: 'read_file',
      arguments: `{"path":"${index}"}`,
    },
    { type: 'function_call_output', call_id: `call_${index}`, output: text },
  ]),
];
const tools = [{ type: 'function' as const, name: 'read_file', parameters: {}, strict: false }];

interface Item {
  readonly type?: string;
  readonly output?: string;
}

interface Asked {
  readonly stream?: boolean;
  readonly input: readonly Item[];
}

/** A pair before a provider that writes summaries once it is let. */
async function pair() {
  const asked: Asked[] = [];
  let release = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    release = resolve;
  });
  const provider = await startProvider(async (received, response) => {
    const body = JSON.parse(received.body.toString()) as Asked;
    asked.push(body);
    if (body.stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(responses.streamOf(JSON.stringify(whole(reply)), { includesUsage: true }));
      return;
    }
    await opened;
    const text = { ...reply[1], content: [{ type: 'output_text', text: 'Short: the cache.', annotations: [] }] };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole([reply[0] ?? {}, text])));
  });
  const started = await startPair(
    {
      SPILLWAY_WINDOWS: `*=${WINDOW}`,
      SPILLWAY_KEEP_ALIVE_SECONDS: '1',
      SPILLWAY_UPSTREAM_URL: provider.url,
      SPILLWAY_STORE: 'memory',
    },
    { windows: { '*': 100_000 } },
  );
  return { started, asked, release };
}

describe('a Responses client that waits for summaries', () => {
  it('gets one response, begun once, through the official client (SPEC 6.6)', async () => {
    const { started, asked, release } = await pair();
    const stream = started
      .client()
      .responses.stream({ model: 'an-agent', input: input as OpenAI.Responses.ResponseInput, tools, store: false });
    const types: string[] = [];
    const numbers: number[] = [];
    stream.on('event', (event) => {
      types.push(event.type);
      if ('sequence_number' in event) numbers.push(event.sequence_number);
      release();
    });
    const response = await stream.finalResponse();
    expect(response).toMatchObject({ id: 'resp_9', output: reply, output_text: 'It was the cache.' });
    expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress']);
    expect(types.filter((type) => type === 'response.created')).toHaveLength(1);
    expect(numbers).toEqual([...numbers.keys()]);

    const sent = asked.find((body) => body.stream === true);
    const summaries = asked.filter((body) => body.stream !== true);
    expect(summaries.length).toBeGreaterThan(0);
    for (const summary of summaries) expect(summary).toMatchObject({ store: false, stream: false });
    expect(sent).toBeDefined();
    // Reasoning, calls and their order stay; some results are shorter.
    const without = (items: readonly Item[]) => items.map(({ output: _output, ...item }) => item);
    expect(without(sent?.input ?? [])).toEqual(without(input as readonly Item[]));
    expect(sent?.input).toContainEqual(
      expect.objectContaining({ output: expect.stringContaining('Short: the cache.') }),
    );
    expect(started.logs.at(-1)).toMatchObject({ outcome: 'complete', inputTokens: 900 });
  });

  it('gets a refusal in the stream once it has begun, which its client throws (SPEC 6.6, 7.7)', async () => {
    const { started, release } = await pair();
    const huge = { role: 'user', content: 'All of this matters. '.repeat(4_000) };
    const stream = started.client().responses.stream({
      model: 'an-agent',
      input: [...input, huge, ...input.slice(-3)] as OpenAI.Responses.ResponseInput,
      tools,
    });
    stream.on('event', release);
    await expect(stream.finalResponse()).rejects.toMatchObject({ code: 'context_length_exceeded' });
  });
});
