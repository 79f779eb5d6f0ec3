import { expect, test } from 'vitest';
import { jsonOf, postChat, simulate } from './simulate.js';

const user = { role: 'user', content: 'Hello' };
const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } });
const calling = (...ids: string[]) => ({ role: 'assistant', content: null, tool_calls: ids.map(call) });
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'seen' });
const messages = (...list: unknown[]) => ({ model: 'm', messages: list });

const REFUSED: readonly (readonly [what: string, body: unknown, message: string, param: string | null])[] = [
  ['malformed JSON', '{"model": ', 'could not parse the JSON body', null],
  ['an empty body', '', 'could not parse the JSON body', null],
  ['a body that is no object', [], 'expected an object', null],
  ['no model', { messages: [user] }, 'you must provide a model parameter', null],
  ['no messages', { model: 'm' }, "Missing required parameter: 'messages'.", 'messages'],
  ['messages that are no array', { model: 'm', messages: 'Hello' }, "Invalid type for 'messages'", 'messages'],
  ['a message that is no object', messages(user, 'Hello'), "Invalid type for 'messages[1]'", 'messages[1]'],
  ['no message', messages(), "Invalid 'messages': empty array.", 'messages'],
  [
    'an unknown role',
    messages({ role: 'robot', content: 'x' }),
    "Invalid value: 'robot'. Supported values are: 'system',",
    'messages[0].role',
  ],
  [
    'content null',
    messages({ role: 'user', content: null }),
    "Invalid value for 'content': expected a string, got null.",
    'messages[0].content',
  ],
  [
    'a call without a result at the end',
    messages(user, calling('call_1', 'call_2'), result('call_1')),
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_2",
    'messages.[3].role',
  ],
  [
    'a call without a result before the next message',
    messages(user, calling('call_1'), user),
    'did not have response messages: call_1',
    'messages.[2].role',
  ],
  [
    'a result without a call',
    messages(user, result('call_1')),
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    'messages.[1].role',
  ],
  [
    'a result of a call further back',
    messages(user, calling('call_1'), result('call_1'), user, result('call_1')),
    'must be a response to',
    'messages.[4].role',
  ],
  [
    'a result of another call',
    messages(user, calling('call_1'), result('call_2')),
    "'tool_call_id' of 'call_2' not found",
    'messages.[2].tool_call_id',
  ],
  [
    'both output limits',
    { ...messages(user), max_tokens: 1, max_completion_tokens: 1 },
    'at the same time is not supported',
    'max_tokens',
  ],
  ['an output limit of 0', { ...messages(user), max_tokens: 0 }, 'below minimum value', 'max_tokens'],
  ['a limit that is no integer', { ...messages(user), max_tokens: '5' }, "Invalid type for 'max_tokens'", 'max_tokens'],
  ['no choice at all', { ...messages(user), n: 0 }, 'below minimum value', 'n'],
  [
    'stream options without a stream',
    { ...messages(user), stream_options: { include_usage: true } },
    "only allowed when 'stream' is enabled",
    'stream_options',
  ],
  [
    'alternatives without log probabilities',
    { ...messages(user), top_logprobs: 2 },
    "only allowed when 'logprobs' is enabled",
    'top_logprobs',
  ],
];

test.each(REFUSED)('%s is refused', async (_what, body, message, param) => {
  const simulator = await simulate();
  const response = await postChat(simulator, body);
  expect(response.status).toBe(400);
  const { error } = await jsonOf(response);
  expect(error.message).toContain(message);
  expect(error).toMatchObject({ type: 'invalid_request_error', param });
  expect(simulator.requests[0]).toMatchObject({ kind: 'chat', status: 400, reply: null });
});

const ACCEPTED: readonly (readonly [what: string, body: object])[] = [
  ['a call and its result', messages(user, calling('call_1'), result('call_1'))],
  [
    'parallel calls answered in another order',
    messages(user, calling('call_1', 'call_2'), result('call_2'), result('call_1'), user),
  ],
  [
    'the same call ids in two batches',
    messages(user, calling('call_1'), result('call_1'), calling('call_1'), result('call_1')),
  ],
  [
    'a legacy function call',
    messages(
      user,
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: '1' },
    ),
  ],
  ['system messages anywhere', messages(user, { role: 'system', content: 'x' }, { role: 'developer', content: 'y' })],
  ['two user messages in a row', messages(user, user)],
  ['members it does not know', { ...messages(user), parallel_tool_calls: true, something_new: { deep: [1] } }],
  ['explicit nulls', { ...messages(user), max_tokens: null, n: null, stream_options: null, tools: null }],
];

test.each(ACCEPTED)('%s is accepted', async (_what, body) => {
  expect((await postChat(await simulate(), body)).status).toBe(200);
});

test('two user messages in a row are refused where roles must alternate, a tool loop is not', async () => {
  const simulator = await simulate({ rolesMustAlternate: true });
  const statusOf = async (...list: unknown[]) =>
    (await postChat(simulator, messages({ role: 'system', content: 'x' }, ...list))).status;
  const assistant = { role: 'assistant', content: 'Hi' };
  expect(await statusOf(user, user)).toBe(400);
  expect(await statusOf(assistant)).toBe(400);
  expect(await statusOf()).toBe(400);
  expect(await statusOf(user, assistant, user)).toBe(200);
  expect(await statusOf(user, calling('call_1'), result('call_1'), assistant, user)).toBe(200);
});

test.each([
  ['no key', {}],
  ['a bad key', { authorization: 'Bearer bad-key' }],
])('%s is refused in the form of the API, on every path but /health', async (_what, headers) => {
  const { url } = await simulate();
  for (const path of ['/v1/chat/completions', '/v1/models', '/v1/files']) {
    const response = await fetch(url + path, { headers });
    expect(response.status).toBe(401);
    expect((await jsonOf(response)).error).toMatchObject({
      type: 'invalid_request_error',
      param: null,
      message: expect.stringContaining('API key'),
    });
  }
  expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok', simulator: true });
});
