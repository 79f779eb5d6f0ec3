import {
  APIConnectionError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  OpenAI,
  RateLimitError,
} from 'openai';
import { describe, expect, test } from 'vitest';
import { OPENAI_OVERFLOW } from '../../src/simulator/chat-format.js';
import { openaiError, rateLimited, serverError } from '../../src/simulator/openai-errors.js';
import { callTools, noAnswer, say } from '../../src/simulator/reply-plan.js';
import type { SimulatorOptions } from '../../src/simulator/simulator.js';
import { simulate } from './simulate.js';

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }];
const TOOLS: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: { name: 'read_file', parameters: { type: 'object', properties: { path: { type: 'string' } } } },
  },
];

async function collect<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

async function connect(options: Omit<SimulatorOptions, 'counter'> = {}, apiKey = 'sk-of-a-test') {
  const simulator = await simulate(options);
  return { simulator, openai: new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey, maxRetries: 0 }) };
}

describe('the official SDK', () => {
  test('reads a whole reply with its usage', async () => {
    const { openai, simulator } = await connect({ script: () => say('Good day, 你好.') });
    const completion = await openai.chat.completions.create({ model: 'gpt-4o', messages: MESSAGES });
    expect(completion.choices).toMatchObject([
      { index: 0, message: { role: 'assistant', content: 'Good day, 你好.' }, finish_reason: 'stop' },
    ]);
    // 3 to prime, 3 for the message, 1 for each of "user" and "Hello".
    expect(completion.usage).toMatchObject({ prompt_tokens: 8, prompt_tokens_details: { cached_tokens: 0 } });
    expect(completion.usage?.total_tokens).toBe(8 + (completion.usage?.completion_tokens ?? 0));
    expect(completion.model).toBe('gpt-4o-simulated');
    expect(completion).toMatchObject({ system_fingerprint: 'fp_spillway_simulator' });
    expect(simulator.requests[0]).toMatchObject({ kind: 'chat', promptTokens: 8, status: 200, state: 'answered' });
  });

  test('reads the same reply from a stream in several chunks, without usage unless asked', async () => {
    const text = 'A reply that is long enough to come in several chunks, with 你好 and 👩‍👩‍👧 in it.';
    const { openai } = await connect({ script: () => say(text) });
    const stream = await openai.chat.completions.create({ model: 'gpt-4o', messages: MESSAGES, stream: true });
    const chunks = await collect(stream);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(text);
    expect(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length).toBeGreaterThan(2);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.every((chunk) => !('usage' in chunk))).toBe(true);
  });

  test('gets usage null on every chunk but one without choices at the end, with include_usage', async () => {
    const { openai } = await connect({ script: () => ({ ...say('Hello there'), cachedTokens: 4 }) });
    const stream = await openai.chat.completions.create({
      model: 'gpt-4o',
      messages: MESSAGES,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await collect(stream);
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null && chunk.choices.length === 1)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 8, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } },
    });
  });

  test.each([{ stream: false }, { stream: true }])('gets parallel tool calls, stream: $stream', async ({ stream }) => {
    const { openai } = await connect({
      script: () =>
        callTools(
          { name: 'read_file', arguments: '{"path":"a.md"}' },
          { name: 'read_file', arguments: '{"path":"b.md"}', id: 'call_b' },
        ),
    });
    const request = { model: 'gpt-4o', messages: MESSAGES, tools: TOOLS };
    const completion = stream
      ? await openai.chat.completions.stream(request).finalChatCompletion()
      : await openai.chat.completions.create(request);
    const [choice] = completion.choices;
    expect(choice?.finish_reason).toBe('tool_calls');
    expect(choice?.message.content).toBeNull();
    expect(choice?.message.tool_calls).toMatchObject([
      { id: expect.stringMatching(/^call_simulated_/), function: { name: 'read_file', arguments: '{"path":"a.md"}' } },
      { id: 'call_b', function: { name: 'read_file', arguments: '{"path":"b.md"}' } },
    ]);
  });

  test('runs a tool loop to its end: call, result, reply', async () => {
    const { openai, simulator } = await connect();
    const runner = openai.chat.completions.runTools({
      model: 'gpt-4o',
      messages: [{ role: 'user', content: 'Please look: read_file({"path":"a.md"})' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'read_file',
            description: 'Reads',
            parameters: { type: 'object' },
            function: (json: string) => `${json} says FACT-door=blue-7`,
          },
        },
      ],
    });
    expect(await runner.finalContent()).toMatch(/^[A-Z].*\.$/);
    expect(simulator.chatRequests()).toHaveLength(2);
    expect(simulator.textsRead()[1]).toContain('{"path":"a.md"} says FACT-door=blue-7');
  });

  test.each([{ stream: false }, { stream: true }])(
    'gets n choices, log probabilities and refusals, stream: $stream',
    async ({ stream }) => {
      const { openai } = await connect({
        script: () => ({ kind: 'reply', choices: [{ text: 'One word more' }, { refusal: 'I would rather not say' }] }),
      });
      const request = { model: 'gpt-4o', messages: MESSAGES, n: 3, logprobs: true, top_logprobs: 2 };
      const completion = stream
        ? await openai.chat.completions.stream(request).finalChatCompletion()
        : await openai.chat.completions.create(request);
      expect(completion.choices.map(({ message }) => [message.content, message.refusal ?? null])).toEqual([
        ['One word more', null],
        [null, 'I would rather not say'],
        [null, 'I would rather not say'],
      ]);
      const tokens = completion.choices[0]?.logprobs?.content ?? [];
      expect(tokens.map(({ token }) => token).join('')).toBe('One word more');
      expect(tokens.every(({ logprob, top_logprobs }) => logprob < 0 && top_logprobs.length === 2)).toBe(true);
    },
  );

  test('gets a legacy function call when it offers functions', async () => {
    const { openai } = await connect({ script: () => callTools({ name: 'look_up', arguments: '{"word":"tide"}' }) });
    const request = { model: 'gpt-4', messages: MESSAGES, functions: [{ name: 'look_up', parameters: {} }] };
    const whole = await openai.chat.completions.create(request);
    expect(whole.choices[0]).toMatchObject({
      finish_reason: 'function_call',
      message: { function_call: { name: 'look_up', arguments: '{"word":"tide"}' } },
    });
    const chunks = await collect(await openai.chat.completions.create({ ...request, stream: true }));
    const pieces = chunks.map(
      (chunk) => JSON.parse(JSON.stringify(chunk)).choices[0].delta.function_call?.arguments ?? '',
    );
    expect(pieces.join('')).toBe('{"word":"tide"}');
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('function_call');
  });

  test('is told reasoning as reasoning_content and pays for it', async () => {
    const { openai } = await connect({
      script: () => ({ kind: 'reply', choices: [{ reasoning: 'one two three', text: 'four' }] }),
    });
    const completion = await openai.chat.completions.create({ model: 'o3', messages: MESSAGES });
    expect(completion.choices[0]?.message).toMatchObject({ reasoning_content: 'one two three', content: 'four' });
    expect(completion.usage).toMatchObject({
      completion_tokens: 4,
      completion_tokens_details: { reasoning_tokens: 3 },
    });
    const chunks = await collect(
      await openai.chat.completions.create({ model: 'o3', messages: MESSAGES, stream: true }),
    );
    const reasoning = chunks.flatMap((chunk) =>
      chunk.choices.map(({ delta }) => ('reasoning_content' in delta ? delta.reasoning_content : '')),
    );
    expect(reasoning.join('')).toBe('one two three');
  });

  test('is cut at the limit of output tokens it sets', async () => {
    const { openai } = await connect({ script: () => say('one two three four five') });
    const completion = await openai.chat.completions.create({
      model: 'gpt-4o',
      messages: MESSAGES,
      max_completion_tokens: 3,
    });
    expect(completion.choices[0]).toMatchObject({ message: { content: 'one two three' }, finish_reason: 'length' });
    expect(completion.usage?.completion_tokens).toBe(3);
  });

  test('reads embeddings, the same for the same text', async () => {
    const { openai } = await connect();
    const create = (input: string | string[], encoding_format?: 'float') =>
      openai.embeddings.create({
        model: 'text-embedding-3-small',
        input,
        dimensions: 8,
        ...(encoding_format && { encoding_format }),
      });
    const [both, one] = await Promise.all([create(['tide', 'river']), create('river', 'float')]);
    expect(both.data[1]?.embedding).toHaveLength(8);
    expect(Array.from(both.data[1]?.embedding ?? [])).toEqual(one.data[0]?.embedding);
    expect(both.data[0]?.embedding).not.toEqual(both.data[1]?.embedding);
    expect(Math.hypot(...(one.data[0]?.embedding ?? []))).toBeCloseTo(1);
    expect(both.usage.prompt_tokens).toBe(3);
  });

  test('lists the models, which say whose they are', async () => {
    const { openai } = await connect({ models: ['small', 'large'] });
    const { data } = await openai.models.list();
    expect(data.map(({ id, owned_by }) => [id, owned_by])).toEqual([
      ['small', 'spillway-simulator'],
      ['large', 'spillway-simulator'],
    ]);
  });

  test('raises its typed errors', async () => {
    const plans = [
      rateLimited(7),
      serverError(),
      openaiError(404, 'The model does not exist', { code: 'model_not_found' }),
      noAnswer('close'),
    ];
    let call = 0;
    const { openai } = await connect({ script: () => plans[call++] ?? null });
    const ask = () =>
      openai.chat.completions.create({ model: 'gpt-4o', messages: MESSAGES }).catch((error: unknown) => error);
    const limited = await ask();
    expect(limited).toBeInstanceOf(RateLimitError);
    expect(limited instanceof RateLimitError && limited.headers.get('retry-after')).toBe('7');
    expect(await ask()).toBeInstanceOf(InternalServerError);
    expect(await ask()).toBeInstanceOf(NotFoundError);
    expect(await ask()).toBeInstanceOf(APIConnectionError);
  });

  test('is not let in with a bad key', async () => {
    const { openai } = await connect({}, 'bad-key');
    const error = await openai.models.list().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error' });
  });

  test('raises a context overflow as a bad request with its code, or as an error of the stream', async () => {
    const ask = (openai: OpenAI, stream: boolean) =>
      openai.chat.completions.create({ model: 'gpt-4o', messages: MESSAGES, stream }).catch((error: unknown) => error);
    const windows = { 'gpt-*': 7 };
    const overHttp = await connect({ windows });
    const error = await ask(overHttp.openai, true);
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'messages' });

    const inStream = await connect({ windows, overflow: { ...OPENAI_OVERFLOW, where: 'after-content' } });
    const seen: string[] = [];
    const read = async () => {
      const stream = await inStream.openai.chat.completions.create({
        model: 'gpt-4o',
        messages: MESSAGES,
        stream: true,
      });
      for await (const chunk of stream) seen.push(chunk.choices[0]?.delta.content ?? '');
    };
    await expect(read()).rejects.toMatchObject({ code: 'context_length_exceeded' });
    expect(seen.join('')).not.toBe('');
  });
});
