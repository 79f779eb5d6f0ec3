import { NotFoundError, OpenAI } from 'openai';
import { describe, expect, test } from 'vitest';
import { responses } from '../../src/dialects/responses.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { PlannedReply } from '../../src/simulator/reply-plan.js';
import type { SimulatorOptions } from '../../src/simulator/simulator.js';
import { post, simulate, typedEventsOf, withoutSerials } from './simulate.js';

const TOOLS: OpenAI.Responses.Tool[] = [
  { type: 'function', name: 'look', parameters: { type: 'object' }, strict: false },
  { type: 'custom', name: 'shell' },
  { type: 'namespace', name: 'files', description: 'Files', tools: [{ type: 'function', name: 'read' }] },
];

const FULL: PlannedReply = {
  kind: 'reply',
  choices: [
    {
      reasoning: 'First I look, then I run what I need.',
      text: 'Let me look at all of it, 你好.',
      calls: [
        { name: 'look', arguments: '{"at":"the whole long place where things are"}' },
        { name: 'shell', arguments: 'echo "one"' },
        { name: 'read', arguments: '{}' },
      ],
    },
  ],
};

async function connect(options: Omit<SimulatorOptions, 'counter'> = {}) {
  const simulator = await simulate(options);
  return { simulator, openai: new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: 'sk-of-a-test', maxRetries: 0 }) };
}

describe('the official SDK', () => {
  test('reads a whole response with its usage', async () => {
    const { openai, simulator } = await connect({ script: () => say('Good day.') });
    const response = await openai.responses.create({ model: 'gpt-5', input: 'Hello', instructions: 'Be brief.' });
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      output_text: 'Good day.',
      instructions: 'Be brief.',
      store: true,
      output: [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text' }] }],
    });
    // 3 to prime; 3 for each item; "Be brief." and "Hello".
    expect(response.usage).toMatchObject({ input_tokens: 13, output_tokens: 3, total_tokens: 16 });
    expect(simulator.chatRequests()).toMatchObject([{ promptTokens: 13, status: 200 }]);
  });

  test('hears reasoning, text and calls of every kind in a stream, each with its events', async () => {
    const { openai } = await connect({ script: () => FULL });
    const stream = openai.responses.stream({
      model: 'gpt-5',
      input: 'Hello',
      tools: TOOLS,
      reasoning: { effort: 'low', summary: 'auto' },
    });
    const types: string[] = [];
    stream.on('event', ({ type }) => types.push(type));
    const final = await stream.finalResponse();
    expect(final.output).toMatchObject([
      { type: 'reasoning', summary: [{ text: 'First I look, then I run what I need.' }] },
      { type: 'message', content: [{ text: 'Let me look at all of it, 你好.' }] },
      { type: 'function_call', name: 'look', arguments: '{"at":"the whole long place where things are"}' },
      { type: 'custom_tool_call', name: 'shell', input: 'echo "one"' },
      { type: 'function_call', name: 'read', namespace: 'files' },
    ]);
    expect(types.filter((type, index) => type !== types[index - 1])).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.custom_tool_call_input.delta',
      'response.custom_tool_call_input.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.completed',
    ]);
  });

  test('goes through a tool loop by previous_response_id, and the model reads what the provider held', async () => {
    const { openai, simulator } = await connect({
      script: ({ messages }) =>
        messages.at(-1)?.role === 'user' ? callTools({ name: 'look', arguments: '{}' }) : null,
    });
    const first = await openai.responses.create({
      model: 'm',
      input: 'The code is FACT-door=blue-7. Look.',
      tools: TOOLS,
    });
    const [call] = first.output;
    if (call?.type !== 'function_call') throw new Error('no call');
    const second = await openai.responses.create({
      model: 'm',
      previous_response_id: first.id,
      tools: TOOLS,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'Seen. What is the value of FACT-door?' }],
    });
    expect(second.output[0]).toMatchObject({ type: 'message' });
    expect(simulator.textsRead()[1]).toContain('FACT-door=blue-7');
    expect(simulator.requests[1]?.promptTokens).toBeGreaterThan(simulator.requests[0]?.promptTokens ?? 0);
    const third = await openai.responses.create({
      model: 'm',
      previous_response_id: second.id,
      input: 'What is the value of FACT-door?',
    });
    expect(third.output[0]).toMatchObject({ type: 'function_call' });
  });

  test('retrieves and deletes what was stored, and nothing else', async () => {
    const { openai } = await connect({ script: () => say('Good day.') });
    const stored = await openai.responses.create({ model: 'm', input: 'Hello' });
    const { output_text: _convenience, ...body } = stored;
    expect(await openai.responses.retrieve(stored.id)).toMatchObject(body);
    await openai.responses.delete(stored.id);
    await expect(openai.responses.retrieve(stored.id)).rejects.toThrow(NotFoundError);
    const unstored = await openai.responses.create({ model: 'm', input: 'Hello', store: false });
    await expect(openai.responses.retrieve(unstored.id)).rejects.toThrow(
      `Response with id '${unstored.id}' not found.`,
    );
    await expect(openai.responses.delete(unstored.id)).rejects.toThrow(NotFoundError);
  });

  test('compacts where it asks for it, and the model reads on what was compacted', async () => {
    const { openai, simulator } = await connect();
    const input: OpenAI.Responses.ResponseInputItem[] = [
      { role: 'user', content: 'Look at the door.' },
      { role: 'assistant', content: 'Noted: FACT-door=blue-7.' },
    ];
    const compacted = await openai.responses.compact({ model: 'gpt-5', input });
    expect(compacted).toMatchObject({
      object: 'response.compaction',
      output: [
        { role: 'user', content: 'Look at the door.' },
        { type: 'compaction', encrypted_content: expect.any(String) },
      ],
    });
    expect(JSON.stringify(compacted.output)).not.toContain('blue-7');
    const response = await openai.responses.create({
      model: 'gpt-5',
      input: [
        ...(compacted.output as OpenAI.Responses.ResponseInputItem[]),
        { role: 'user', content: 'What is the value of FACT-door?' },
      ],
    });
    expect(response.output_text).toBe('The value of FACT-door is blue-7.');
    expect(simulator.requests.map(({ kind }) => kind)).toEqual(['compaction', 'chat']);
  });
});

describe('a response', () => {
  const ask = async (options: Omit<SimulatorOptions, 'counter'>, more: object) => {
    const simulator = await simulate(options);
    const body = { model: 'm', input: 'Hello', tools: TOOLS, ...more };
    const whole = JSON.parse(await (await post(simulator, '/responses', body)).text());
    const stream = await (await post(simulator, '/responses', { ...body, stream: true })).text();
    return { whole, events: typedEventsOf(stream) };
  };

  test.each<readonly [string, () => PlannedReply, object]>([
    ['everything', () => FULL, { reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] }],
    ['reasoning that is not shown', () => FULL, {}],
    ['nothing', () => say(''), {}],
    ['a refusal', () => ({ kind: 'reply', choices: [{ refusal: 'That I will not do.' }] }), {}],
    ['log probabilities', () => say('One two'), { include: ['message.output_text.logprobs'], top_logprobs: 2 }],
    ['a text that was cut', () => say('word '.repeat(40)), { max_output_tokens: 16 }],
    [
      'a call that was cut',
      () => callTools({ name: 'look', arguments: `{"at":"${'far '.repeat(40)}"}` }),
      { max_output_tokens: 16 },
    ],
  ])('says the same whole and streamed: %s', async (_what, script, more) => {
    const { whole, events } = await ask({ script }, more);
    expect(events.map(({ sequence_number: number }) => number)).toEqual([...events.keys()]);
    const last = events.at(-1);
    expect(last.type).toBe(`response.${whole.status}`);
    const { id: _id, created_at: _createdAt, completed_at: _completedAt, ...said } = withoutSerials(whole);
    expect(withoutSerials(last.response)).toMatchObject({
      ...said,
      usage: { ...said.usage, input_tokens_details: expect.anything() },
    });
    const folder = responses.folder();
    for (const event of events) folder.push(JSON.stringify(event), event.type);
    const { references: _, ...folded } = folder.reply();
    const { references: __, ...read } = responses.readReply(last.response) ?? { references: [] };
    expect(folded).toEqual(read);
    const done = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
    expect(done).toEqual(last.response.output);
  });

  test('carries encrypted reasoning only where it is included, and shows it only where a summary is wanted', async () => {
    const plain = (await ask({ script: () => FULL }, {})).whole.output[0];
    expect(plain).toMatchObject({ type: 'reasoning', summary: [] });
    expect(plain).not.toHaveProperty('encrypted_content');
    const include = ['reasoning.encrypted_content'];
    const full = (await ask({ script: () => FULL }, { include, reasoning: { summary: 'auto' } })).whole.output[0];
    expect(full.summary).toEqual([{ type: 'summary_text', text: 'First I look, then I run what I need.' }]);
    expect(Buffer.from(full.encrypted_content, 'base64').toString()).not.toContain('look');
  });

  test('reasons wherever the request asks for it', async () => {
    const { whole } = await ask({}, { reasoning: { effort: 'high' } });
    expect(whole.output.map(({ type }: { type: string }) => type)).toEqual(['reasoning', 'message']);
    expect(whole.usage.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
    const none = await ask({}, { reasoning: { effort: 'none' } });
    expect(none.whole.output).toHaveLength(1);
  });

  test('reports what the cache had, of the very items and of references to them', async () => {
    const simulator = await simulate({ script: () => say('Yes.') });
    const input = 'some words of a long beginning '.repeat(300);
    const send = async (more: object) =>
      JSON.parse(await (await post(simulator, '/responses', { model: 'm', ...more })).text());
    const first = await send({ input });
    expect(first.usage.input_tokens_details.cached_tokens).toBe(0);
    const message = { role: 'user', content: [{ type: 'input_text', text: input }] };
    const said = first.output[0];
    const next = { role: 'user', content: 'Go on.' };
    const sentAgain = await send({ input: [message, said, next] });
    expect(sentAgain.usage.input_tokens_details.cached_tokens).toBeGreaterThan(1_024);
    await send({ input: [message, { type: 'item_reference', id: said.id }, next] });
    await send({ previous_response_id: first.id, input: [next] });
    const { id: _id, status: _status, ...bare } = said;
    await send({ input: [message, { ...bare, content: [{ type: 'output_text', text: 'Yes.' }] }, next] });
    expect(simulator.requests.map(({ prefix }) => prefix?.broken)).toEqual([false, false, false, false, false]);
    expect(new Set(simulator.requests.slice(1).map(({ promptTokens }) => promptTokens)).size).toBe(1);
  });

  test('has deltas that are padded, unless the request wants none of it', async () => {
    const { events } = await ask({ script: () => say('Yes.') }, { stream_options: { include_obfuscation: false } });
    expect(JSON.stringify(events)).not.toContain('obfuscation');
    const padded = await ask({ script: () => say('Yes.') }, {});
    const deltas = padded.events.filter(({ delta }) => delta !== undefined);
    expect(deltas).toMatchObject([{ delta: 'Yes.', obfuscation: expect.any(String) }]);
  });
});
