import { describe, expect, test } from 'vitest';
import { overflowFromStop } from '../../src/core/overflow/stops.js';
import { anthropicMessages } from '../../src/dialects/anthropic-messages.js';
import { foldsStreams, type RecordedStream } from './conformance.js';

const start = (usage: object, id = 'msg_1'): string =>
  JSON.stringify({
    type: 'message_start',
    message: {
      id,
      type: 'message',
      role: 'assistant',
      model: 'claude-opus-5-5',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: 1, service_tier: 'standard' },
    },
  });
const block = (index: number, content_block: object): string =>
  JSON.stringify({ type: 'content_block_start', index, content_block });
const delta = (index: number, type: string, members: object): string =>
  JSON.stringify({ type: 'content_block_delta', index, delta: { type, ...members } });
const blockStop = (index: number): string => JSON.stringify({ type: 'content_block_stop', index });
const messageDelta = (stop_reason: string, usage: object): string =>
  JSON.stringify({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage });
const ping = '{"type":"ping"}';
const stop = '{"type":"message_stop"}';

const whole = (content: readonly object[], stop_reason: string, usage: object): object => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-opus-5-5',
  content,
  stop_reason,
  stop_sequence: null,
  usage,
});

const cited = {
  type: 'web_search_result_location',
  cited_text: 'It rains.',
  url: 'https://example.com/w',
  title: 'Weather',
  encrypted_index: 'Eo8B',
};
const searched = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [
    {
      type: 'web_search_result',
      title: 'Weather',
      url: 'https://example.com/w',
      encrypted_content: 'EqgfCioIARgB',
      page_age: null,
    },
  ],
};
const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'weather' } };

const usages = {
  cached: { input_tokens: 12, cache_creation_input_tokens: 400, cache_read_input_tokens: 3000 },
  plain: { input_tokens: 25 },
  sampledTwice: {
    input_tokens: 10_682,
    output_tokens: 510,
    server_tool_use: { web_search_requests: 1 },
    iterations: [
      { type: 'message', input_tokens: 2_600, cache_read_input_tokens: 79, output_tokens: 60 },
      { type: 'message', input_tokens: 8_003, cache_read_input_tokens: 0, output_tokens: 450 },
    ],
  },
};

const tools = [
  { type: 'text', text: 'Let me look.' },
  { type: 'tool_use', id: 'toolu_a', name: 'read', input: { path: 'a "b" ü' } },
  { type: 'tool_use', id: 'toolu_b', name: 'list', input: {} },
];
const thoughts = [
  { type: 'thinking', thinking: 'First, the date.', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' },
  { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4a' },
  { type: 'text', text: 'Done.' },
];
const weather = [search, searched, { type: 'text', text: 'It rains.', citations: [cited] }];

const streams: Readonly<Record<string, RecordedStream>> = {
  'text and parallel calls, their input in pieces': {
    events: [
      start(usages.cached),
      block(0, { type: 'text', text: '' }),
      ping,
      delta(0, 'text_delta', { text: 'Let me ' }),
      delta(0, 'text_delta', { text: 'look.' }),
      blockStop(0),
      block(1, { type: 'tool_use', id: 'toolu_a', name: 'read', input: {} }),
      delta(1, 'input_json_delta', { partial_json: '' }),
      delta(1, 'input_json_delta', { partial_json: '{"path": "a \\"b' }),
      delta(1, 'input_json_delta', { partial_json: '\\" ü"}' }),
      blockStop(1),
      block(2, { type: 'tool_use', id: 'toolu_b', name: 'list', input: {} }),
      delta(2, 'input_json_delta', { partial_json: '' }),
      blockStop(2),
      messageDelta('tool_use', { output_tokens: 89 }),
      stop,
    ],
    firstContent: 3,
    finishedAt: 14,
    endsAt: 15,
    usageOnly: [],
    source: { role: 'assistant', content: tools },
    stopReason: 'tool_use',
    usage: { inputTokens: 3412, outputTokens: 89, cachedTokens: 3000, reasoningTokens: null },
    whole: whole(tools, 'tool_use', { ...usages.cached, output_tokens: 89 }),
  },
  'signed and redacted thinking': {
    events: [
      start(usages.plain),
      block(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: 'First, ' }),
      delta(0, 'thinking_delta', { thinking: 'the date.' }),
      delta(0, 'signature_delta', { signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' }),
      blockStop(0),
      block(1, { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4a' }),
      blockStop(1),
      block(2, { type: 'text', text: '' }),
      delta(2, 'text_delta', { text: 'Done.' }),
      blockStop(2),
      messageDelta('end_turn', { output_tokens: 30, output_tokens_details: { thinking_tokens: 21 } }),
      stop,
    ],
    firstContent: 2,
    finishedAt: 11,
    endsAt: 12,
    usageOnly: [],
    source: { role: 'assistant', content: thoughts },
    stopReason: 'end_turn',
    usage: { inputTokens: 25, outputTokens: 30, cachedTokens: null, reasoningTokens: 21 },
    whole: whole(thoughts, 'end_turn', {
      ...usages.plain,
      output_tokens: 30,
      output_tokens_details: { thinking_tokens: 21 },
    }),
  },
  'thinking whose text is withheld, with counts of it': {
    events: [
      start(usages.plain),
      block(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, 'thinking_delta', { thinking: '', estimated_tokens: 50 }),
      delta(0, 'signature_delta', { signature: 'EqQB' }),
      blockStop(0),
      block(1, { type: 'text', text: '' }),
      delta(1, 'text_delta', { text: 'Hi' }),
      blockStop(1),
      messageDelta('end_turn', { output_tokens: 60 }),
      stop,
    ],
    firstContent: 3,
    finishedAt: 8,
    endsAt: 9,
    usageOnly: [],
    source: {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature: 'EqQB' },
        { type: 'text', text: 'Hi' },
      ],
    },
    stopReason: 'end_turn',
    usage: { inputTokens: 25, outputTokens: 60, cachedTokens: null, reasoningTokens: null },
  },
  'a web search by the provider, cited, with usage of every sampling': {
    events: [
      start(usages.plain),
      block(0, { ...search, input: {} }),
      delta(0, 'input_json_delta', { partial_json: '{"query":' }),
      delta(0, 'input_json_delta', { partial_json: '"weather"}' }),
      blockStop(0),
      block(1, searched),
      blockStop(1),
      block(2, { type: 'text', text: '', citations: [] }),
      delta(2, 'citations_delta', { citation: cited }),
      delta(2, 'text_delta', { text: 'It rains.' }),
      blockStop(2),
      messageDelta('end_turn', usages.sampledTwice),
      stop,
    ],
    firstContent: 1,
    finishedAt: 11,
    endsAt: 12,
    usageOnly: [],
    source: { role: 'assistant', content: weather },
    stopReason: 'end_turn',
    // Of the prompt that was sent, not of all that the provider made of it.
    usage: { inputTokens: 2_679, outputTokens: 510, cachedTokens: 79, reasoningTokens: null },
    whole: whole(weather, 'end_turn', usages.sampledTwice),
  },
  'a pause in the turn': {
    events: [
      start(usages.plain),
      block(0, search),
      blockStop(0),
      messageDelta('pause_turn', { output_tokens: 7 }),
      stop,
    ],
    firstContent: 1,
    finishedAt: 3,
    endsAt: 4,
    usageOnly: [],
    source: { role: 'assistant', content: [search] },
    stopReason: 'pause_turn',
    usage: { inputTokens: 25, outputTokens: 7, cachedTokens: null, reasoningTokens: null },
  },
  'a refusal': {
    events: [
      start(usages.plain),
      block(0, { type: 'text', text: '' }),
      delta(0, 'text_delta', { text: 'I cannot' }),
      blockStop(0),
      '{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber"}},"usage":{"output_tokens":3}}',
      stop,
    ],
    firstContent: 2,
    finishedAt: 4,
    endsAt: 5,
    usageOnly: [],
    source: { role: 'assistant', content: [{ type: 'text', text: 'I cannot' }] },
    stopReason: 'refusal',
    usage: { inputTokens: 25, outputTokens: 3, cachedTokens: null, reasoningTokens: null },
  },
  'blocks and deltas of a kind nobody knows': {
    events: [
      start(usages.plain),
      block(0, { type: 'hologram', shape: null }),
      delta(0, 'shape_delta', { shape: { sides: 6 } }),
      blockStop(0),
      messageDelta('end_turn', { output_tokens: 4 }),
      stop,
    ],
    firstContent: 1,
    finishedAt: 4,
    endsAt: 5,
    usageOnly: [],
    source: { role: 'assistant', content: [{ type: 'hologram', shape: { sides: 6 } }] },
    stopReason: 'end_turn',
    usage: { inputTokens: 25, outputTokens: 4, cachedTokens: null, reasoningTokens: null },
  },
  'the provider’s own compaction': {
    events: [
      start(usages.plain),
      block(0, { type: 'compaction', content: null, encrypted_content: null }),
      delta(0, 'compaction_delta', { content: 'The user wants tea.', encrypted_content: 'Eq' }),
      blockStop(0),
      block(1, { type: 'text', text: '' }),
      delta(1, 'text_delta', { text: ' Tea.' }),
      blockStop(1),
      messageDelta('end_turn', { output_tokens: 4 }),
      stop,
    ],
    firstContent: 2,
    finishedAt: 7,
    endsAt: 8,
    usageOnly: [],
    source: {
      role: 'assistant',
      content: [
        { type: 'compaction', content: 'The user wants tea.', encrypted_content: 'Eq' },
        { type: 'text', text: ' Tea.' },
      ],
    },
    stopReason: 'end_turn',
    usage: { inputTokens: 25, outputTokens: 4, cachedTokens: null, reasoningTokens: null },
  },
};

foldsStreams(anthropicMessages, streams);

function fold(...events: readonly (readonly [data: string, event: string | null])[]) {
  const folder = anthropicMessages.folder();
  const meanings = events.map(([data, event]) => folder.push(data, event));
  return { meanings, reply: folder.reply() };
}

describe('a stream that breaks', () => {
  test('keeps what was said and the error as a body would have it, and never finishes', () => {
    const error = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}';
    const { meanings, reply } = fold(
      [start(usages.plain), null],
      [block(0, { type: 'text', text: 'Well' }), null],
      [error, 'error'],
      [messageDelta('end_turn', { output_tokens: 3 }), null],
    );
    expect(meanings.map((meaning) => meaning.hasError)).toEqual([false, false, true, false]);
    expect(reply).toMatchObject({ messages: [{ text: 'Well' }], finished: false, error });
  });

  test('in the middle of a call keeps the input as text, in the form the provider takes it back', () => {
    const { reply } = fold(
      [block(0, { type: 'tool_use', id: 'toolu_a', name: 'read', input: {} }), null],
      [delta(0, 'input_json_delta', { partial_json: '{"path":"/et' }), null],
    );
    expect(reply.messages[0]?.calls).toEqual([
      { id: 'toolu_a', name: 'read', arguments: '{"INVALID_JSON":"{\\"path\\":\\"/et"}' },
    ]);
  });

  test('an error event of another form is an error all the same', () => {
    expect(fold(['{"message":"no"}', 'error']).meanings[0]?.hasError).toBe(true);
    expect(fold(['upstream went away', 'error']).reply.error).toBe(
      '{"type":"error","error":{"type":"api_error","message":"upstream went away"}}',
    );
    expect(fold(['{"error":{"message":"no"}}', null]).meanings[0]?.hasError).toBe(true);
  });

  test.each(['', 'null', '7', '"x"', '[]', '[DONE]', '{}', '{"type":7}', '{"type":"content_block_delta"}'])(
    'survives %s',
    (data) => {
      expect(fold([data, null]).reply).toMatchObject({ messages: [], error: null, unread: null });
    },
  );

  test('tells when a part of it could not be read', () => {
    expect(fold(['{"type":"content_block_delta","ind', null]).reply.unread).toBe('malformed');
    expect(fold([delta(4, 'text_delta', { text: 'lost' }), null])).toMatchObject({
      meanings: [{ hasContent: true }],
      reply: { unread: 'malformed' },
    });
    const deep = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"b","input":${'['.repeat(1e5)}${']'.repeat(1e5)}}}`;
    expect(fold([deep, null]).reply.unread).not.toBeNull();
  });
});

describe('usage, SPEC 9.4', () => {
  test.each([
    [undefined, null],
    [{}, null],
    [{ input_tokens: 0, output_tokens: 0 }, null],
    [
      { input_tokens: 0, cache_read_input_tokens: 90, output_tokens: 0 },
      { inputTokens: 90, outputTokens: 0, cachedTokens: 90, reasoningTokens: null },
    ],
    [
      { input_tokens: 8, cache_creation_input_tokens: null, cache_read_input_tokens: 0, output_tokens: 2 },
      { inputTokens: 8, outputTokens: 2, cachedTokens: 0, reasoningTokens: null },
    ],
  ])('%j is %j', (usage, expected) => {
    expect(anthropicMessages.readReply({ type: 'message', content: [], usage })?.usage).toEqual(expected);
  });

  test('the first count of output is a placeholder and none', () => {
    expect(fold([start(usages.plain), null]).reply.usage).toMatchObject({ inputTokens: 25, outputTokens: null });
  });

  test('totals replace earlier ones and are never added', () => {
    const { reply } = fold(
      [start(usages.cached), null],
      [messageDelta('end_turn', { input_tokens: 20, cache_read_input_tokens: null, output_tokens: 5 }), null],
    );
    expect(reply.usage).toMatchObject({ inputTokens: 3420, cachedTokens: 3000, outputTokens: 5 });
  });
});

describe('a whole reply', () => {
  test('of nothing is a message all the same once it has stopped', () => {
    const reply = anthropicMessages.readReply(whole([], 'end_turn', {}));
    expect(reply).toMatchObject({ messages: [{ role: 'llm', text: '' }], finished: true });
    expect(reply?.references).toEqual([{ id: 'msg_1', message: 0 }]);
  });

  test('an error body is an error, and what is neither is no reply', () => {
    const error = { type: 'error', error: { type: 'api_error', message: 'x' } };
    expect(anthropicMessages.readReply(error)).toMatchObject({ error: JSON.stringify(error), finished: false });
    for (const body of [null, 'x', [], {}, { content: 'x' }]) expect(anthropicMessages.readReply(body)).toBeNull();
  });

  test('a full window is told by the stop reason, SPEC 6.2', () => {
    const reply = anthropicMessages.readReply(whole(tools, 'model_context_window_exceeded', {}));
    expect(overflowFromStop(reply?.stopReason ?? null)).toMatchObject({ kind: 'context' });
  });
});
