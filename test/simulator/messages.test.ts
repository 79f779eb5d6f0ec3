import { describe, expect, test } from 'vitest';
import { anthropicMessages } from '../../src/dialects/anthropic-messages.js';
import { promptTooLong } from '../../src/simulator/anthropic-errors.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { PlannedReply } from '../../src/simulator/reply-plan.js';
import type { Simulator, SimulatorOptions } from '../../src/simulator/simulator.js';
import { jsonOf, post, simulate, typedEventsOf, withoutSerials } from './simulate.js';

const user = { role: 'user', content: 'Hello' };
const TOOLS = [{ name: 'look', input_schema: { type: 'object' } }];
const ask = (more: object = {}) => ({ model: 'm', max_tokens: 4_000, messages: [user], tools: TOOLS, ...more });
const ENABLED = { type: 'enabled', budget_tokens: 1_024 };

const FULL: PlannedReply = {
  kind: 'reply',
  choices: [
    {
      reasoning: 'First I look at this, then at that.',
      text: 'Let me look at all of it, 你好.',
      calls: [
        { name: 'look', arguments: '{"at":"the whole long place where things are"}' },
        { name: 'look', arguments: '{"at":"another"}' },
      ],
    },
  ],
};

async function wholeOf(simulator: Simulator, body: object) {
  return jsonOf(await post(simulator, '/messages', body));
}

async function eventsOf(simulator: Simulator, body: object) {
  return typedEventsOf(await (await post(simulator, '/messages', { ...body, stream: true })).text());
}

describe('a message', () => {
  test('has the members of the API, and usage that counts the whole prompt', async () => {
    const simulator = await simulate({ script: () => say('Good day.') });
    const response = await post(simulator, '/messages', ask({ tools: undefined, system: 'Be brief.' }));
    expect(response.headers.get('request-id')).toBe('req_simulated_0');
    expect(await jsonOf(response)).toEqual({
      id: expect.stringMatching(/^msg_simulated_/),
      type: 'message',
      role: 'assistant',
      model: 'm-simulated',
      content: [{ type: 'text', text: 'Good day.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        // 3 to prime; 3 for each message and the system prompt; "Be brief." and "Hello".
        input_tokens: 13,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: 3,
        service_tier: 'standard',
      },
    });
    expect(simulator.chatRequests()).toMatchObject([{ promptTokens: 13 }]);
  });

  test('comes in the order of the API, with a ping behind the first start of a block', async () => {
    const events = await eventsOf(await simulate({ script: () => FULL }), ask({ thinking: ENABLED }));
    const types = events.map(({ type, index, delta }) =>
      [type, index, delta?.type].filter((word) => word !== undefined),
    );
    expect(types.map((words) => words.join(' ')).filter((type, place, all) => type !== all[place - 1])).toEqual([
      'message_start',
      'content_block_start 0',
      'ping',
      'content_block_delta 0 thinking_delta',
      'content_block_delta 0 signature_delta',
      'content_block_stop 0',
      'content_block_start 1',
      'content_block_delta 1 text_delta',
      'content_block_stop 1',
      'content_block_start 2',
      'content_block_delta 2 input_json_delta',
      'content_block_stop 2',
      'content_block_start 3',
      'content_block_delta 3 input_json_delta',
      'content_block_stop 3',
      'message_delta',
      'message_stop',
    ]);
    expect(events[0].message).toMatchObject({ content: [], stop_reason: null, usage: { output_tokens: 1 } });
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use', stop_sequence: null } });
  });

  test.each<readonly [string, () => PlannedReply, object, string]>([
    ['everything', () => FULL, { thinking: ENABLED }, 'tool_use'],
    ['thinking that is omitted', () => FULL, { thinking: { type: 'adaptive', display: 'omitted' } }, 'tool_use'],
    ['thinking nobody enabled', () => FULL, {}, 'tool_use'],
    ['nothing', () => say(''), {}, 'end_turn'],
    ['a refusal', () => ({ kind: 'reply', choices: [{ refusal: 'That I will not do.' }] }), {}, 'refusal'],
    ['a text that was cut', () => say('one two three'), { max_tokens: 2 }, 'max_tokens'],
  ])('says the same whole and streamed: %s', async (_what, script, more, stopReason) => {
    const simulator = await simulate({ script });
    const whole = withoutSerials(await wholeOf(simulator, ask(more)));
    expect(whole.stop_reason).toBe(stopReason);
    const folder = anthropicMessages.folder();
    const events = withoutSerials(await eventsOf(simulator, ask(more)));
    for (const event of events) folder.push(JSON.stringify(event), event.type);
    expect(folder.reply()).toEqual(anthropicMessages.readReply(whole));
    const thinks = whole.content[0]?.type === 'thinking';
    expect(thinks).toBe('thinking' in more);
  });

  test('has no input of a call that was cut, of which the stream tells what was written', async () => {
    const simulator = await simulate({ script: () => callTools({ name: 'look', arguments: '{"at":"far away"}' }) });
    const whole = await wholeOf(simulator, ask({ max_tokens: 4 }));
    expect(whole).toMatchObject({ content: [{ type: 'tool_use', input: {} }], stop_reason: 'max_tokens' });
    const written = (await eventsOf(simulator, ask({ max_tokens: 4 }))).map(({ delta }) => delta?.partial_json ?? '');
    expect(written.join('')).toBe('{"at":"');
  });

  test('thinks wherever that is enabled, and keeps the text to itself where it is omitted', async () => {
    const simulator = await simulate();
    const [shown] = (await wholeOf(simulator, ask({ thinking: ENABLED }))).content;
    expect(shown).toMatchObject({ type: 'thinking', thinking: expect.stringMatching(/\w/) });
    const [omitted] = (await wholeOf(simulator, ask({ thinking: { type: 'adaptive', display: 'omitted' } }))).content;
    expect(omitted).toMatchObject({ type: 'thinking', thinking: '', signature: shown.signature });
    expect((await wholeOf(simulator, ask({ thinking: { type: 'disabled' } }))).content[0].type).toBe('text');
  });

  test('breaks off with an error event in the form of the API', async () => {
    const refusal = {
      kind: 'refusal' as const,
      status: 529,
      body: { type: 'error', error: { type: 'overloaded_error' } },
    };
    const simulator = await simulate({ script: () => ({ ...say('Good day.'), failure: { afterPieces: 3, refusal } }) });
    expect((await eventsOf(simulator, ask())).map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'ping',
      'error',
    ]);
    const whole = await post(simulator, '/messages', ask());
    expect([whole.status, (await jsonOf(whole)).request_id]).toEqual([529, 'req_simulated_1']);
  });

  test('goes through a tool loop, results being messages of their own to the script', async () => {
    const simulator = await simulate({
      script: ({ messages }) =>
        messages.at(-1)?.role === 'user' ? callTools({ name: 'look', arguments: '{}' }) : null,
    });
    const first = await wholeOf(simulator, ask());
    const result = { type: 'tool_result', tool_use_id: first.content[0].id, content: [{ type: 'text', text: 'seen' }] };
    const messages = [user, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }];
    const second = await wholeOf(simulator, ask({ messages }));
    expect([first.stop_reason, second.stop_reason]).toEqual(['tool_use', 'end_turn']);
  });
});

describe('a window of the Messages API', () => {
  const long = { role: 'user', content: 'word '.repeat(100) };
  const asked = async (options: Omit<SimulatorOptions, 'counter'>, body: object) => {
    const response = await post(await simulate(options), '/messages', body);
    return { status: response.status, body: await jsonOf(response) };
  };

  test('is told of by numbers when the prompt exceeds it', async () => {
    expect(await asked({ windows: { m: 50 } }, { model: 'm', max_tokens: 10, messages: [long] })).toEqual({
      status: 400,
      body: {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 107 tokens > 50 maximum' },
        request_id: 'req_simulated_0',
      },
    });
  });

  test('is told of in other words when only prompt and max_tokens do', async () => {
    const { status, body } = await asked({ windows: { m: 110 } }, { model: 'm', max_tokens: 10, messages: [long] });
    expect(status).toBe(400);
    expect(body.error.message).toBe(
      'input length and `max_tokens` exceed context limit: 107 + 10 > 110, decrease input length or `max_tokens` and try again',
    );
  });

  test('may cut the output in place of that, with a stop reason of its own', async () => {
    const { status, body } = await asked(
      { windows: { m: 110 }, cutsAtWindow: true },
      { model: 'm', max_tokens: 10, messages: [long] },
    );
    expect([status, body.stop_reason, body.usage.output_tokens]).toEqual([200, 'model_context_window_exceeded', 3]);
  });

  test('may be told of in the stream', async () => {
    const simulator = await simulate({ windows: { m: 50 }, overflow: { where: 'stream', refusal: promptTooLong } });
    const events = await eventsOf(simulator, { model: 'm', max_tokens: 10, messages: [long] });
    expect(events.map(({ type }) => type)).toEqual(['message_start', 'error']);
  });

  test('has a body of bounded size before all', async () => {
    const { status, body } = await asked({ largestBodyBytes: 100 }, { model: 'm', max_tokens: 10, messages: [long] });
    expect(status).toBe(413);
    expect(body).toMatchObject({ error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } });
  });
});

describe('a thread', () => {
  const begin = ask({ thread: { type: 'create' }, system: 'The code is FACT-door=blue-7.' });

  test('holds system, tools and messages, and the model reads them all', async () => {
    const simulator = await simulate({ servesThreads: true });
    const first = await wholeOf(simulator, begin);
    const thread = { type: 'continue', previous_message_id: first.id };
    const messages = [{ role: 'user', content: 'What is the value of FACT-door?' }];
    const second = await wholeOf(simulator, { model: 'm', max_tokens: 50, messages, thread });
    expect(second.content).toEqual([{ type: 'text', text: 'The value of FACT-door is blue-7.' }]);
    expect(simulator.textsRead()[1]).toContain('Hello');
    const unknown = await post(simulator, '/messages', ask({ thread: { ...thread, previous_message_id: 'msg_x' } }));
    expect([unknown.status, (await jsonOf(unknown)).error]).toMatchObject([
      404,
      { type: 'not_found_error', details: { error_code: 'thread_not_found' } },
    ]);
  });

  test('is refused by a provider that holds none, in words a client knows', async () => {
    const response = await post(await simulate(), '/messages', begin);
    expect([response.status, (await jsonOf(response)).error.details]).toEqual([
      400,
      { error_code: 'thread_unsupported_request' },
    ]);
  });
});

describe('count_tokens', () => {
  test('counts what a message would, and needs no max_tokens', async () => {
    const simulator = await simulate();
    const { max_tokens: _cap, ...body } = ask({ system: [{ type: 'text', text: 'Be brief.' }] });
    const counted = await jsonOf(await post(simulator, '/messages/count_tokens', body));
    const { usage } = await wholeOf(simulator, ask({ system: 'Be brief.' }));
    expect(counted).toEqual({ input_tokens: usage.input_tokens });
    expect(simulator.requests.map(({ kind }) => kind)).toEqual(['other', 'chat']);
    expect((await post(simulator, '/messages/count_tokens', { model: 'm', messages: [] })).status).toBe(400);
  });
});

test.each([
  ['no key', { 'x-api-key': '' }, 401, 'authentication_error'],
  ['the bad key', { 'x-api-key': 'bad-key' }, 401, 'authentication_error'],
])('%s is refused in the form of the API', async (_what, headers, status, type) => {
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
  const { url } = await simulate();
  const response = await fetch(`${url}/v1/messages`, { method: 'POST', headers: given, body: '{}' });
  expect([response.status, await jsonOf(response)]).toMatchObject([
    status,
    { type: 'error', error: { type }, request_id: 'req_simulated_0' },
  ]);
});

test('a version is wanted, and a bearer will do for the key', async () => {
  const { url } = await simulate();
  const send = (headers: Readonly<Record<string, string>>) =>
    fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { authorization: 'Bearer key', ...headers },
      body: JSON.stringify(ask()),
    });
  expect((await jsonOf(await send({}))).error.message).toBe('anthropic-version: header is required');
  expect((await send({ 'anthropic-version': '2023-06-01' })).status).toBe(200);
});
