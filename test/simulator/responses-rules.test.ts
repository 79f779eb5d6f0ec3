import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { PlannedReply } from '../../src/simulator/reply-plan.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import { jsonOf, post, simulate, typedEventsOf } from './simulate.js';

const user = { role: 'user', content: 'Hello' };
const call = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' };
const output = { type: 'function_call_output', call_id: 'call_1', output: 'seen' };
const custom = { type: 'custom_tool_call', call_id: 'call_2', name: 'shell', input: 'ls' };
const input = (...items: unknown[]) => ({ model: 'm', input: items });

type Refused = readonly [what: string, body: unknown, message: string, more: object];
const REFUSED: readonly Refused[] = [
  ['malformed JSON', '{"model": ', 'could not parse the JSON body', {}],
  ['no model', { input: 'Hello' }, "Missing required parameter: 'model'.", { param: 'model' }],
  ['no input', { model: 'm' }, "Missing required parameter: 'input'.", { param: 'input' }],
  ['an input of another type', { model: 'm', input: 7 }, "Invalid type for 'input'", { code: 'invalid_type' }],
  ['an item that is no object', input(user, 'Hello'), "Invalid type for 'input[1]'", { param: 'input[1]' }],
  [
    'a limit that is no integer',
    { ...input(user), max_output_tokens: '5' },
    "Invalid type for 'max_output_tokens'",
    {},
  ],
  ['a limit below 16', { ...input(user), max_output_tokens: 15 }, 'Expected a value >= 16, but got 15', {}],
  [
    'a role it does not know',
    input({ role: 'tool', content: 'x' }),
    "Invalid value: 'tool'.",
    { param: 'input[0].role' },
  ],
  ['a message without content', input({ role: 'user', content: null }), "parameter: 'input[0].content'", {}],
  [
    'a part of the chat format',
    input({ role: 'user', content: [{ type: 'text', text: 'x' }] }),
    "Invalid value: 'text'. Supported values are: 'input_text',",
    { param: 'input[0].content[0]' },
  ],
  [
    'an input part in what the assistant said',
    input(user, { role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }),
    "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    { param: 'input[1].content[0]' },
  ],
  [
    'an id of another kind of item',
    input(user, { ...call, id: 'msg_1' }, output),
    "Invalid 'input[1].id': 'msg_1'. Expected an ID that begins with 'fc'.",
    { param: 'input[1].id' },
  ],
  [
    'a call without its output',
    input(user, call),
    'No tool output found for function call call_1.',
    { param: 'input' },
  ],
  ['a custom call without its output', input(user, custom), 'No tool output found for custom tool call call_2.', {}],
  [
    'an output without its call',
    input(user, output),
    'No tool call found for function call output with call_id call_1.',
    { param: 'input' },
  ],
  ['an output before its call', input(user, output, call), 'No tool call found for function call output', {}],
  [
    'reasoning without what follows it',
    input(user, { type: 'reasoning', summary: [] }, user),
    "of type 'reasoning' was provided without its required following item.",
    { param: 'input' },
  ],
  ['reasoning without a summary', input(user, { type: 'reasoning', id: 'rs_1' }), "parameter: 'input[1].summary'", {}],
  [
    'encrypted content of somebody else',
    input(
      user,
      { type: 'reasoning', summary: [], encrypted_content: 'Z0FBQUFBQmZvcmVpZ24gYnl0ZXMsIHF1aXRlIG1hbnk=' },
      call,
      output,
    ),
    'The encrypted content Z0FB...bnk= could not be verified.',
    { code: 'invalid_encrypted_content', param: null },
  ],
  [
    'a previous response it does not hold',
    { ...input(user), previous_response_id: 'resp_x' },
    "Previous response with id 'resp_x' not found.",
    { code: 'previous_response_not_found', param: 'previous_response_id' },
  ],
  [
    'a trigger that is not the last item',
    input(user, { type: 'compaction_trigger' }, user),
    "Invalid value: 'compaction_trigger'.",
    { param: 'input[1]' },
  ],
];

test.each(REFUSED)('%s is refused', async (_what, body, message, more) => {
  const simulator = await simulate();
  const response = await post(simulator, '/responses', body);
  expect(response.status).toBe(400);
  const { error } = await jsonOf(response);
  expect(error.message).toContain(message);
  expect(error).toMatchObject({ type: 'invalid_request_error', ...more });
  expect(simulator.requests[0]).toMatchObject({ kind: 'chat', status: 400, reply: null });
});

const ACCEPTED: readonly (readonly [what: string, body: object])[] = [
  [
    'calls and their outputs, in any order',
    input(user, call, custom, { ...output, type: 'custom_tool_call_output', call_id: 'call_2' }, output),
  ],
  [
    'items and tools of kinds it does not know',
    {
      ...input(user, { type: 'web_search_call', id: 'ws_1', status: 'completed' }, { type: 'news', id: 'n_1' }),
      tools: [{ type: 'web_search' }],
    },
  ],
  [
    'explicit nulls',
    { ...input(user), instructions: null, previous_response_id: null, max_output_tokens: null, tools: null },
  ],
  [
    'ids the client made up',
    input({ ...user, id: 'msg_made-up' }, { ...call, id: 'fc_made-up' }, { ...output, id: 'fco_1' }),
  ],
  ['instructions in the middle', input(user, { role: 'developer', content: 'Be brief.' }, user)],
];

test.each(ACCEPTED)('%s is accepted', async (_what, body) => {
  expect((await post(await simulate(), '/responses', body)).status).toBe(200);
});

describe('an item of an earlier response', () => {
  const script = (): PlannedReply => ({
    kind: 'reply',
    choices: [{ reasoning: 'First I look.', calls: [{ name: 'look', arguments: '{}' }] }],
  });
  const respond = async (simulator: Simulator, more: object = {}) =>
    (await jsonOf(await post(simulator, '/responses', { ...input(user), ...more }))).output;
  const statusOf = async (simulator: Simulator, ...items: unknown[]) => {
    const response = await post(simulator, '/responses', input(user, ...items));
    return [response.status, (await jsonOf(response)).error?.message ?? null];
  };
  const outputOf = (made: { call_id: string }) => ({ ...output, call_id: made.call_id });
  const referenceTo = ({ id }: { id: string }) => ({ type: 'item_reference', id });

  test('stands for itself by its id, as long as it was stored', async () => {
    const simulator = await simulate({ script });
    const [reasoning, made] = await respond(simulator);
    expect(await statusOf(simulator, reasoning, made, outputOf(made))).toEqual([200, null]);
    expect(await statusOf(simulator, referenceTo(reasoning), referenceTo(made), outputOf(made))).toEqual([200, null]);
    expect(await statusOf(simulator, { id: reasoning.id }, { id: made.id }, outputOf(made))).toEqual([200, null]);
    const [lost, call2] = await respond(simulator, { store: false });
    const notFound = `Item with id '${lost.id}' not found. Items are not persisted when \`store\` is set to false.`;
    for (const item of [lost, referenceTo(lost)]) {
      const [status, message] = await statusOf(simulator, item, call2, outputOf(call2));
      expect(status).toBe(404);
      expect(message).toContain(notFound);
    }
  });

  test('is refused without the reasoning it was made with, unless its id is gone too', async () => {
    const simulator = await simulate({ script });
    const [reasoning, made] = await respond(simulator);
    expect(await statusOf(simulator, made, outputOf(made))).toEqual([
      400,
      `Item '${made.id}' of type 'function_call' was provided without its required 'reasoning' item: '${reasoning.id}'.`,
    ]);
    const { id: _id, ...bare } = made;
    expect(await statusOf(simulator, bare, outputOf(made))).toEqual([200, null]);
    expect(await statusOf(simulator, reasoning, outputOf(made))).toEqual([
      400,
      `No tool call found for function call output with call_id ${made.call_id}.`,
    ]);
  });

  test('is read by what its encrypted content says, which nobody else can make or change', async () => {
    const simulator = await simulate({ script, secret: 'one' });
    const include = ['reasoning.encrypted_content'];
    const [reasoning, made] = await respond(simulator, { store: false, include });
    expect(await statusOf(simulator, reasoning, made, outputOf(made))).toEqual([200, null]);
    expect(simulator.textsRead().at(-1)).toContain('First I look.');
    const changed = { ...reasoning, encrypted_content: `A${reasoning.encrypted_content.slice(1)}` };
    expect((await statusOf(simulator, changed, made, outputOf(made)))[0]).toBe(400);
    const other = await simulate({ script, secret: 'another' });
    expect((await statusOf(other, reasoning, made, outputOf(made)))[0]).toBe(400);
    const posing = { type: 'compaction', encrypted_content: reasoning.encrypted_content };
    expect((await statusOf(simulator, posing))[0]).toBe(400);
  });

  test('goes with its response when that is deleted', async () => {
    const simulator = await simulate({ script: () => say('Yes.') });
    const response = await jsonOf(await post(simulator, '/responses', input(user)));
    const headers = { authorization: 'Bearer key' };
    const deleted = await fetch(`${simulator.url}/v1/responses/${response.id}`, { method: 'DELETE', headers });
    expect(await jsonOf(deleted)).toEqual({ id: response.id, object: 'response', deleted: true });
    expect((await statusOf(simulator, referenceTo(response.output[0])))[0]).toBe(404);
    const chained = await post(simulator, '/responses', { ...input(user), previous_response_id: response.id });
    expect(chained.status).toBe(400);
  });

  test('is not kept of a reply that broke off', async () => {
    const refusal = { kind: 'refusal' as const, status: 500, body: { error: { message: 'overloaded' } } };
    const simulator = await simulate({
      script: () => ({ ...say('Yes, and more.'), failure: { afterPieces: 6, refusal } }),
    });
    const events = typedEventsOf(await (await post(simulator, '/responses', { ...input(user), stream: true })).text());
    expect(events).toHaveLength(7);
    expect(events[6]).toMatchObject({ type: 'response.failed', sequence_number: 6, response: { status: 'failed' } });
    const { id } = events[0].response;
    expect((await post(simulator, '/responses', { ...input(user), previous_response_id: id })).status).toBe(400);
  });

  test.each([
    ['conversation', { id: 'conv_1' }, "Conversation with id 'conv_1' not found."],
    ['conversation', 'conv_1', "Conversation with id 'conv_1' not found."],
    ['prompt', { id: 'pmpt_1' }, "Prompt with id 'pmpt_1' not found."],
  ])('may not stand in a %s, of which none is held: %j', async (member, value, message) => {
    const response = await post(await simulate(), '/responses', { ...input(user), [member]: value });
    expect(response.status).toBe(404);
    expect((await jsonOf(response)).error.message).toBe(message);
  });
});

describe('a compaction', () => {
  const trigger = { type: 'compaction_trigger' };
  const told = [user, { role: 'assistant', content: 'Noted: FACT-door=blue-7.' }];

  test.each([false, true])('that the last item asks for is one item and nothing else, stream %s', async (stream) => {
    const simulator = await simulate({ script: () => callTools({ name: 'look', arguments: '{}' }) });
    const text = await (await post(simulator, '/responses', { ...input(...told, trigger), stream })).text();
    const response = stream ? typedEventsOf(text).at(-1).response : JSON.parse(text);
    expect(response).toMatchObject({ status: 'completed', output: [{ type: 'compaction' }] });
    expect(response.output).toHaveLength(1);
    const types = stream ? typedEventsOf(text).map(({ type }) => type) : null;
    expect(types).toEqual(
      stream
        ? [
            'response.created',
            'response.in_progress',
            'response.output_item.added',
            'response.output_item.done',
            'response.completed',
          ]
        : null,
    );
    await post(simulator, '/responses', input(user, ...response.output, user));
    expect(simulator.textsRead().at(-1)).toContain('FACT-door=blue-7');
    expect(simulator.requests.map(({ kind }) => kind)).toEqual(['compaction', 'chat']);
  });

  test('is unknown to a provider that serves none', async () => {
    const simulator = await simulate({ servesCompaction: false });
    const statusOf = async (path: string, ...items: unknown[]) => (await post(simulator, path, input(...items))).status;
    expect(await statusOf('/responses', user, trigger)).toBe(400);
    expect(await statusOf('/responses', user, { type: 'compaction', encrypted_content: 'x' })).toBe(400);
    expect(await statusOf('/responses/compact', user)).toBe(404);
    expect(simulator.requests.map(({ kind }) => kind)).toEqual(['chat', 'chat', 'compaction']);
  });

  test('is refused when it does not fit either', async () => {
    const simulator = await simulate({ windows: { m: 10 } });
    const response = await post(simulator, '/responses/compact', input(...told));
    expect([response.status, (await jsonOf(response)).error.code]).toEqual([400, 'context_length_exceeded']);
  });
});

test('a socket is not spoken, which a client that wants one is told at once', async () => {
  const { url } = await simulate();
  const statusOf = (headers: Readonly<Record<string, string>>) =>
    new Promise((resolve, reject) => {
      const asked = httpRequest(`${url}/v1/responses`, { headers: { authorization: 'Bearer key', ...headers } });
      asked.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
      asked.end();
    });
  expect(await statusOf({ connection: 'Upgrade', upgrade: 'websocket' })).toBe(426);
  expect(await statusOf({})).toBe(405);
});
