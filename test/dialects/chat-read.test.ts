import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/core/message.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';

const read = (messages: unknown, more: object = {}) => chatCompletions.read({ model: 'm', messages, ...more });
const message = (source: object): Message | null => chatCompletions.readMessage(source);
/** What counts of a message: all but the wire form. */
const said = (source: object): unknown => ({ ...message(source), source: null });
const user = { role: 'user', content: 'hi' };
const call = { id: 'c1', type: 'function', function: { name: 'shell', arguments: '{"b":1,"a":2}' } };

describe('a chat-completions request', () => {
  test('leading system and developer messages are instructions, one in the middle is a chain message, SPEC 1.5', () => {
    const request = read([
      { role: 'system', content: 'S' },
      { role: 'developer', content: [{ type: 'text', text: 'D' }] },
      user,
      { role: 'system', content: 'late' },
      { role: 'assistant', content: 'A' },
    ]);
    expect(request?.instructions.map(({ role, text }) => [role, text])).toEqual([
      ['system', 'S'],
      ['system', 'D'],
    ]);
    expect(request?.messages.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'hi'],
      ['system', 'late'],
      ['llm', 'A'],
    ]);
  });

  test('every message keeps the wire form it came in, SPEC 4.3', () => {
    const source = { role: 'user', content: 'x', name: 'ann', vendor_field: { deep: [1] } };
    expect(read([source])?.messages[0]?.source).toBe(source);
  });

  test('tools, functions and the response schema are the fixed part, as JSON', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const request = read([user], { tools, functions: null, response_format: { type: 'json_object' } });
    expect(request?.fixedJson).toEqual([JSON.stringify(tools), '{"type":"json_object"}']);
  });

  test.each([
    [{}, null],
    [{ max_tokens: 500 }, 500],
    [{ max_completion_tokens: 9, max_tokens: 500 }, 9],
    [{ max_completion_tokens: null, max_tokens: 500 }, 500],
    [{ max_completion_tokens: 0 }, null],
    [{ max_tokens: -1 }, null],
    [{ max_tokens: 1.5 }, null],
    [{ max_tokens: '7' }, null],
  ])('of the output caps in %j the explicit one is %s', (fields, cap) => {
    expect(read([user], fields)?.outputCap).toBe(cap);
  });

  test.each([
    [{}, false, true, 1],
    [{ stream: null, stream_options: null, n: null }, false, true, 1],
    [{ stream: true }, true, false, 1],
    [{ stream: true, stream_options: { include_usage: false }, n: 3 }, true, false, 3],
    [{ stream: true, stream_options: { include_usage: true } }, true, true, 1],
  ])('%j: stream %s, usage reported %s, %s choices', (fields, stream, includesUsage, choices) => {
    expect(read([user], fields)).toMatchObject({ stream, includesUsage, choices });
  });

  test('a session is named by the fields real clients send, SPEC 1.2', () => {
    expect(read([user], { prompt_cache_key: 'k', session_id: 's' })?.session).toBe('k');
    expect(read([user], { prompt_cache_key: '', session_id: 's' })?.session).toBe('s');
    expect(read([user], { user: 'u' })?.session).toBeNull();
  });

  test.each([
    ['no object', 'x'],
    ['null', null],
    ['an array', []],
    ['no messages', { model: 'm' }],
    ['messages of a wrong type', { model: 'm', messages: { 0: user } }],
    ['no message', { model: 'm', messages: [] }],
    ['instructions alone, with nothing to chain', { model: 'm', messages: [{ role: 'system', content: 'S' }] }],
    ['a model of a wrong type', { model: 1, messages: [user] }],
    ['a stream flag of a wrong type', { model: 'm', messages: [user], stream: 'yes' }],
    ['an entry that is no object', { model: 'm', messages: [user, 'x'] }],
    ['an unknown role', { model: 'm', messages: [user, { role: 'critic', content: 'x' }] }],
    ['content of a wrong type', { model: 'm', messages: [{ role: 'user', content: 1 }] }],
    ['content that is an object', { model: 'm', messages: [{ role: 'user', content: { text: 'x' } }] }],
    ['a part that is no object', { model: 'm', messages: [{ role: 'user', content: ['x'] }] }],
    ['a text part without text', { model: 'm', messages: [{ role: 'user', content: [{ type: 'text' }] }] }],
    ['calls of a wrong type', { model: 'm', messages: [user, { role: 'assistant', tool_calls: {} }] }],
    ['a call without a function', { model: 'm', messages: [user, { role: 'assistant', tool_calls: [{ id: 'a' }] }] }],
    ['a legacy call of a wrong type', { model: 'm', messages: [user, { role: 'assistant', function_call: 'f' }] }],
    ['a result whose call id is a number', { model: 'm', messages: [{ role: 'tool', tool_call_id: 1, content: 'x' }] }],
    ['a legacy result without a name', { model: 'm', messages: [{ role: 'function', content: 'x' }] }],
  ])("with %s it is the provider's to judge", (_name, body) => {
    expect(chatCompletions.read(body)).toBeNull();
  });

  test('nested deeper than the stack it is unreadable, and nothing throws', () => {
    const deep: unknown = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000));
    expect(read([user], { tools: deep })).toBeNull();
    expect(read([{ role: 'user', content: [{ type: 'odd', deep }] }])).toBeNull();
    expect(read([user, { role: 'assistant', content: 'x', odd: { deep } }])).toBeNull();
    expect(read([user], { odd: deep })).not.toBeNull();
  });
});

describe('what counts for identity, SPEC 1.3', () => {
  test('a string equals the text parts it was split into', () => {
    const parts = [
      { type: 'text', text: 'a\n' },
      { type: 'text', text: 'b', cache_control: { type: 'ephemeral' } },
    ];
    expect(said({ role: 'user', content: parts })).toEqual(said({ role: 'user', content: 'a\nb' }));
    expect(said({ role: 'tool', tool_call_id: 'c', content: parts })).toEqual(
      said({ role: 'tool', tool_call_id: 'c', content: 'a\nb' }),
    );
  });

  test('empty, null and absent are the same', () => {
    const bare = said({ role: 'assistant', tool_calls: [call] });
    const noise = {
      refusal: null,
      parsed: null,
      annotations: [],
      function_call: null,
      audio: null,
      name: 'model',
      logprobs: null,
    };
    for (const content of ['', null, []])
      expect(said({ role: 'assistant', content, tool_calls: [call], ...noise })).toEqual(bare);
    expect(said({ role: 'user', content: 'x', name: '' })).toEqual(said({ role: 'user', content: 'x' }));
    expect(said({ role: 'tool', content: 'x', tool_call_id: '' })).toEqual(said({ role: 'tool', content: 'x' }));
  });

  test('what an agent SDK nests into its text part changes nothing', () => {
    const part = {
      type: 'text',
      text: 'Let me run that.',
      role: 'assistant',
      refusal: null,
      tool_calls: [call],
      reasoning_content: 'hm',
    };
    expect(said({ role: 'assistant', content: [part], tool_calls: [call] })).toEqual(
      said({
        role: 'assistant',
        content: 'Let me run that.',
        tool_calls: [{ ...call, function: { ...call.function, parsed_arguments: null } }],
      }),
    );
  });

  const reply = { role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'hm' };
  test.each([
    ['dropping its reasoning', { role: 'assistant', content: null, tool_calls: [call] }],
    [
      'with members of the SDK',
      {
        ...reply,
        refusal: null,
        parsed: null,
        tool_calls: [{ ...call, function: { ...call.function, parsed_arguments: null } }],
      },
    ],
    ['with an empty string', { role: 'assistant', content: '', tool_calls: [call], reasoning_content: 'hm' }],
    ['with a name of its own', { role: 'assistant', content: '', name: 'model', tool_calls: [call] }],
    [
      'in another key order',
      {
        tool_calls: [{ function: { arguments: call.function.arguments, name: 'shell' }, id: 'c1' }],
        content: null,
        role: 'assistant',
      },
    ],
  ])('a reply meets its echo by a client %s', (_name, echo) => {
    const whole = chatCompletions.readReply({ choices: [{ index: 0, message: reply, finish_reason: 'tool_calls' }] });
    const meets = { ...whole?.messages[0], source: null, reasoning: '' };
    expect({ ...message(echo), source: null, reasoning: '' }).toEqual(meets);
  });

  test('the name of a user message counts, that of an assistant or tool message does not', () => {
    expect(message({ role: 'user', content: 'x', name: 'ann' })?.name).toBe('ann');
    expect(message({ role: 'assistant', content: 'x', name: 'model' })?.name).toBeNull();
    expect(message({ role: 'tool', content: 'x', tool_call_id: 'c', name: 'shell' })?.name).toBeNull();
  });

  test('arguments are the string as sent; an object is serialised with sorted keys', () => {
    const calls = (args: unknown) =>
      message({ role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'f', arguments: args } }] })?.calls;
    expect(calls('{"b":1, "a":2}')).toEqual([{ id: 'c1', name: 'f', arguments: '{"b":1, "a":2}' }]);
    expect(calls({ b: 1, a: [{ d: 1, c: 2 }] })).toEqual([
      { id: 'c1', name: 'f', arguments: '{"a":[{"c":2,"d":1}],"b":1}' },
    ]);
    expect(calls(null)).toEqual([{ id: 'c1', name: 'f', arguments: '' }]);
  });

  test('parallel, custom and unknown kinds of calls keep id, name and input, in order', () => {
    const custom = { id: 'c2', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } };
    const unknown = { id: 'c3', type: 'robot', robot: { z: 1, a: 2 } };
    expect(message({ role: 'assistant', content: null, tool_calls: [call, custom, unknown] })?.calls).toEqual([
      { id: 'c1', name: 'shell', arguments: '{"b":1,"a":2}' },
      { id: 'c2', name: 'sql', arguments: 'SELECT 1' },
      { id: 'c3', name: 'robot', arguments: '{"id":"c3","robot":{"a":2,"z":1},"type":"robot"}' },
    ]);
  });

  test('a legacy function call and its result meet under an id made of the name', () => {
    const called = message({ role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } });
    const result = message({ role: 'function', name: 'f', content: '42' });
    expect(called?.calls).toEqual([{ id: 'function:f', name: 'f', arguments: '{}' }]);
    expect(result).toMatchObject({ role: 'tool', text: '', results: [{ callId: 'function:f', text: '42' }] });
  });

  test('a refusal is text, as a member of its own or as a part', () => {
    expect(message({ role: 'assistant', content: null, refusal: 'No.' })?.text).toBe('No.');
    expect(said({ role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] })).toEqual(
      said({ role: 'assistant', content: null, refusal: 'No.' }),
    );
  });

  test('a tool result is no text of the message, and its images are kept', () => {
    const image = { type: 'image_url', image_url: { url: 'https://x/y.png' } };
    expect(
      message({ role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 'seen' }, image] }),
    ).toMatchObject({
      text: '',
      results: [{ callId: 'c', text: 'seen' }],
      media: [{ kind: 'image', inline: false, data: 'https://x/y.png' }],
    });
  });
});

describe('media', () => {
  const media = (part: object): unknown => message({ role: 'user', content: [part] })?.media[0];

  test.each([
    [
      'an inline image',
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      { kind: 'image', inline: true, data: 'AAAA', mimeType: 'image/png', name: null, detail: 'low' },
    ],
    [
      'an image by URL',
      { type: 'image_url', image_url: { url: 'https://x/y', detail: 'auto' } },
      { kind: 'image', inline: false, data: 'https://x/y', mimeType: null, name: null, detail: null },
    ],
    [
      'an image as a bare URL',
      { type: 'image_url', image_url: 'https://x/y' },
      { kind: 'image', inline: false, data: 'https://x/y', mimeType: null, name: null, detail: null },
    ],
    [
      'a data URL that is not base64',
      { type: 'image_url', image_url: { url: 'data:image/svg+xml,<svg/>' } },
      {
        kind: 'image',
        inline: false,
        data: 'data:image/svg+xml,<svg/>',
        mimeType: 'image/svg+xml',
        name: null,
        detail: null,
      },
    ],
    [
      'a recording',
      { type: 'input_audio', input_audio: { data: 'BBBB', format: 'wav' } },
      { kind: 'audio', inline: true, data: 'BBBB', mimeType: 'audio/wav', name: null, detail: null },
    ],
    [
      'a video by URL',
      { type: 'video_url', video_url: { url: 'https://x/v' } },
      { kind: 'video', inline: false, data: 'https://x/v', mimeType: null, name: null, detail: null },
    ],
    [
      'a file by id',
      { type: 'file', file: { file_id: 'file-1' } },
      { kind: 'file', inline: false, data: 'file-1', mimeType: null, name: null, detail: null },
    ],
    [
      'a file by data URL',
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,CCCC' } },
      { kind: 'file', inline: true, data: 'CCCC', mimeType: 'application/pdf', name: 'a.pdf', detail: null },
    ],
    [
      'a file as bare base64',
      { type: 'file', file: { file_data: 'CCCC' } },
      { kind: 'file', inline: true, data: 'CCCC', mimeType: null, name: null, detail: null },
    ],
    [
      'an unknown part',
      { type: 'hologram', z: 1, a: { c: 1, b: 2 }, cache_control: {} },
      {
        kind: 'other',
        inline: false,
        data: '{"a":{"b":2,"c":1},"type":"hologram","z":1}',
        mimeType: null,
        name: null,
        detail: null,
      },
    ],
    [
      'a malformed image',
      { type: 'image_url', image_url: 7 },
      {
        kind: 'other',
        inline: false,
        data: '{"image_url":7,"type":"image_url"}',
        mimeType: null,
        name: null,
        detail: null,
      },
    ],
  ])('%s is read without losing what identifies it', (_name, part, expected) => {
    expect(media(part)).toEqual(expected);
  });

  test('audio of an earlier reply is known by its id, whatever is echoed with it', () => {
    const echo = said({ role: 'assistant', content: null, audio: { id: 'audio_1' } });
    expect(echo).toMatchObject({ media: [{ kind: 'audio', inline: false, data: 'audio_1' }], signed: false });
    expect(said({ role: 'assistant', audio: { id: 'audio_1', data: 'AAAA', transcript: 'hello' } })).toEqual(echo);
  });
});

describe('reasoning', () => {
  test.each([
    ['reasoning_content', { content: 'x', reasoning_content: 'hm' }],
    ['reasoning', { content: 'x', reasoning: 'hm' }],
    ['reasoning_text', { content: 'x', reasoning_text: 'hm' }],
    ['both, alike', { content: 'x', reasoning: 'hm', reasoning_content: 'hm' }],
    [
      'details',
      {
        content: 'x',
        reasoning_details: [
          { type: 'reasoning.text', text: 'h' },
          { type: 'reasoning.text', text: 'm' },
        ],
      },
    ],
    [
      'a thinking part',
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
          { type: 'text', text: 'x' },
        ],
      },
    ],
  ])('echoed as %s is kept apart from the text', (_name, members) => {
    expect(message({ role: 'assistant', ...members })).toMatchObject({
      text: 'x',
      reasoning: 'hm',
      media: [],
      signed: false,
    });
  });

  test.each([
    ['details with a signature', { reasoning_details: [{ type: 'reasoning.text', text: 'hm', signature: 'sig' }] }],
    ['encrypted details', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'xx' }] }],
    ['thinking blocks with a signature', { thinking_blocks: [{ type: 'thinking', thinking: 'hm', signature: 'sig' }] }],
    ['a redacted thinking part', { content: [{ type: 'redacted_thinking', data: 'xx' }] }],
    [
      'a thought signature on a call',
      { tool_calls: [{ ...call, extra_content: { google: { thought_signature: 's' } } }] },
    ],
    ['opaque reasoning', { reasoning_opaque: 'xx' }],
  ])('%s makes a message signed, SPEC 4.7', (_name, members) => {
    expect(message({ role: 'assistant', content: 'x', ...members })?.signed).toBe(true);
  });

  test('a signature in the arguments of a call, or an empty one, signs nothing', () => {
    const args = { signature: 'not a proof' };
    const source = { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: args } }] };
    expect(message(source)?.signed).toBe(false);
    expect(
      message({ role: 'assistant', reasoning_details: [{ type: 'reasoning.text', text: 'hm', signature: null }] })
        ?.signed,
    ).toBe(false);
  });
});
