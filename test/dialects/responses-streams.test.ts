import { describe, expect, test } from 'vitest';
import { recogniseOverflow } from '../../src/core/overflow/recognise.js';
import { overflowFromStop, isCut } from '../../src/core/overflow/stops.js';
import { responses } from '../../src/dialects/responses.js';
import { foldsStreams, type RecordedStream } from './conformance.js';

let sequence = 0;
const event = (type: string, members: object): string =>
  JSON.stringify({ type, sequence_number: sequence++, ...members });

const usage = (input: number, cached: number, output: number, reasoning: number) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
});
const response = (members: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  output: [],
  usage: null,
  ...members,
});
const created = (): readonly string[] => [
  event('response.created', { response: response() }),
  event('response.in_progress', { response: response() }),
];
const added = (output_index: number, item: object): string =>
  event('response.output_item.added', { output_index, item });
const done = (output_index: number, item: object): string => event('response.output_item.done', { output_index, item });
const piece = (type: string, output_index: number, members: object): string =>
  event(`response.${type}`, { item_id: 'x', output_index, ...members });
const end = (output: readonly object[], reported: object | null, members: object = {}): string => {
  const status = 'status' in members ? String(members.status) : 'completed';
  return event(`response.${status}`, { response: response({ status, output, usage: reported, ...members }) });
};

const thought = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'Thinking about echo.' }],
  encrypted_content: 'gAAAAB',
};
const said = {
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', annotations: [], logprobs: [], text: 'Let me "run" ü.' }],
};
const call = (id: string, args: string) => ({
  id: `fc_${id}`,
  type: 'function_call',
  status: 'completed',
  arguments: args,
  call_id: `call_${id}`,
  name: 'shell',
});
const calls = [call('a', '{"command":"echo \\"1\\" ü"}'), call('b', '{}')] as const;
const agentOutput = [thought, said, ...calls];
const messageEvents = (at: number, item: typeof said): readonly string[] => {
  const { text } = item.content[0] ?? { text: '' };
  const place = { content_index: 0 };
  return [
    added(at, { ...item, status: 'in_progress', content: [] }),
    piece('content_part.added', at, {
      ...place,
      part: { type: 'output_text', annotations: [], logprobs: [], text: '' },
    }),
    piece('output_text.delta', at, { ...place, delta: text.slice(0, 4), logprobs: [], obfuscation: 'x' }),
    piece('output_text.delta', at, { ...place, delta: text.slice(4), logprobs: [] }),
    piece('output_text.done', at, { ...place, text, logprobs: [] }),
    piece('content_part.done', at, { ...place, part: item.content[0] }),
    done(at, item),
  ];
};

const annotation = { type: 'url_citation', url: 'https://example.com/w', title: 'W', start_index: 0, end_index: 9 };
const search = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'weather' },
};
const cited = {
  ...said,
  content: [{ type: 'output_text', annotations: [annotation], logprobs: [], text: 'It rains.' }],
};
const refused = { ...said, content: [{ type: 'refusal', refusal: 'I cannot.' }] };
const custom = {
  id: 'ctc_1',
  type: 'custom_tool_call',
  status: 'completed',
  call_id: 'call_c',
  name: 'sh',
  input: 'ls\n-l',
};
const code = {
  id: 'ci_1',
  type: 'code_interpreter_call',
  status: 'completed',
  code: 'print(1)',
  container_id: 'c',
  outputs: null,
};
const mcp = {
  id: 'mcp_1',
  type: 'mcp_call',
  status: 'completed',
  name: 'f',
  server_label: 's',
  arguments: '{"a":1}',
  output: 'ok',
};
const loud = { id: 'rs_2', type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'Hm. So.' }] };
const cut = { ...said, status: 'incomplete', content: [{ type: 'output_text', annotations: [], text: 'Once up' }] };
const compaction = { id: 'cmp_1', type: 'compaction', encrypted_content: 'ENC' };
const strange = { id: 'bn_1', type: 'brand_new_item', shape: { sides: 6 } };

const streams: Readonly<Record<string, RecordedStream>> = {
  'reasoning, text and parallel calls': {
    events: [
      ...created(),
      added(0, { ...thought, summary: [] }),
      piece('reasoning_summary_part.added', 0, { summary_index: 0, part: { type: 'summary_text', text: '' } }),
      piece('reasoning_summary_text.delta', 0, { summary_index: 0, delta: 'Thinking ' }),
      piece('reasoning_summary_text.delta', 0, { summary_index: 0, delta: 'about echo.' }),
      piece('reasoning_summary_text.done', 0, { summary_index: 0, text: 'Thinking about echo.' }),
      piece('reasoning_summary_part.done', 0, { summary_index: 0, part: thought.summary[0] }),
      done(0, thought),
      ...messageEvents(1, said),
      added(2, { ...calls[0], status: 'in_progress', arguments: '' }),
      piece('function_call_arguments.delta', 2, { delta: '{"command":"ec' }),
      piece('function_call_arguments.delta', 2, { delta: 'ho \\"1\\" ü"}' }),
      piece('function_call_arguments.done', 2, { arguments: calls[0].arguments, name: 'shell' }),
      done(2, calls[0]),
      added(3, { ...calls[1], status: 'in_progress', arguments: '' }),
      done(3, calls[1]),
      end(agentOutput, usage(3412, 3000, 89, 5)),
    ],
    firstContent: 4,
    finishedAt: 23,
    endsAt: 23,
    usageOnly: [],
    source: [thought, said],
    more: calls,
    stopReason: 'completed',
    usage: { inputTokens: 3412, outputTokens: 89, cachedTokens: 3000, reasoningTokens: 5 },
    whole: response({ status: 'completed', output: agentOutput, usage: usage(3412, 3000, 89, 5) }),
  },
  'a web search by the provider, cited': {
    events: [
      ...created(),
      added(0, { id: 'ws_1', type: 'web_search_call', status: 'in_progress' }),
      piece('web_search_call.in_progress', 0, {}),
      piece('web_search_call.searching', 0, {}),
      piece('web_search_call.completed', 0, {}),
      done(0, search),
      added(1, { ...cited, content: [] }),
      piece('content_part.added', 1, { content_index: 0, part: { type: 'output_text', annotations: [], text: '' } }),
      piece('output_text.delta', 1, { content_index: 0, delta: 'It rains.' }),
      piece('output_text.annotation.added', 1, { content_index: 0, annotation_index: 0, annotation }),
      piece('output_text.done', 1, { content_index: 0, text: 'It rains.' }),
      piece('content_part.done', 1, { content_index: 0, part: cited.content[0] }),
      done(1, cited),
      end([search, cited], usage(25, 0, 9, 0)),
    ],
    firstContent: 6,
    finishedAt: 14,
    endsAt: 14,
    usageOnly: [],
    source: search,
    more: [cited],
    stopReason: 'completed',
    usage: { inputTokens: 25, outputTokens: 9, cachedTokens: 0, reasoningTokens: 0 },
    whole: response({ status: 'completed', output: [search, cited], usage: usage(25, 0, 9, 0) }),
  },
  'a refusal': {
    events: [
      ...created(),
      added(0, { ...refused, content: [] }),
      piece('content_part.added', 0, { content_index: 0, part: { type: 'refusal', refusal: '' } }),
      piece('refusal.delta', 0, { content_index: 0, delta: 'I can' }),
      piece('refusal.delta', 0, { content_index: 0, delta: 'not.' }),
      piece('refusal.done', 0, { content_index: 0, refusal: 'I cannot.' }),
      piece('content_part.done', 0, { content_index: 0, part: refused.content[0] }),
      done(0, refused),
      end([refused], { input_tokens: 25, output_tokens: 3 }),
    ],
    firstContent: 4,
    finishedAt: 9,
    endsAt: 9,
    usageOnly: [],
    source: refused,
    stopReason: 'completed',
    usage: { inputTokens: 25, outputTokens: 3, cachedTokens: null, reasoningTokens: null },
    whole: response({ status: 'completed', output: [refused], usage: { input_tokens: 25, output_tokens: 3 } }),
  },
  'a custom call, code and a call of a connector, all in pieces': {
    events: [
      ...created(),
      added(0, { ...custom, status: 'in_progress', input: '' }),
      piece('custom_tool_call_input.delta', 0, { delta: 'ls\n' }),
      piece('custom_tool_call_input.delta', 0, { delta: '-l' }),
      piece('custom_tool_call_input.done', 0, { input: custom.input }),
      done(0, custom),
      added(1, { ...code, code: '' }),
      piece('code_interpreter_call_code.delta', 1, { delta: 'print' }),
      piece('code_interpreter_call_code.delta', 1, { delta: '(1)' }),
      piece('code_interpreter_call_code.done', 1, { code: 'print(1)' }),
      done(1, code),
      added(2, { ...mcp, arguments: '', output: null }),
      piece('mcp_call_arguments.delta', 2, { delta: '{"a":1}' }),
      piece('mcp_call_arguments.done', 2, { arguments: '{"a":1}' }),
      done(2, mcp),
      end([custom, code, mcp], usage(25, 0, 9, 0)),
    ],
    firstContent: 2,
    finishedAt: 16,
    endsAt: 16,
    usageOnly: [],
    source: custom,
    more: [code, mcp],
    stopReason: 'completed',
    usage: { inputTokens: 25, outputTokens: 9, cachedTokens: 0, reasoningTokens: 0 },
    whole: response({ status: 'completed', output: [custom, code, mcp], usage: usage(25, 0, 9, 0) }),
  },
  'reasoning in the open that ends in a limit': {
    events: [
      ...created(),
      added(0, { ...loud, content: [] }),
      piece('content_part.added', 0, { content_index: 0, part: { type: 'reasoning_text', text: '' } }),
      piece('reasoning_text.delta', 0, { content_index: 0, delta: 'Hm. ' }),
      piece('reasoning_text.delta', 0, { content_index: 0, delta: 'So.' }),
      piece('reasoning_text.done', 0, { content_index: 0, text: 'Hm. So.' }),
      done(0, loud),
      added(1, { ...cut, status: 'in_progress', content: [] }),
      piece('content_part.added', 1, { content_index: 0, part: { type: 'output_text', annotations: [], text: '' } }),
      piece('output_text.delta', 1, { content_index: 0, delta: 'Once up' }),
      done(1, cut),
      end([loud, cut], usage(25, 0, 16, 12), {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      }),
    ],
    firstContent: 4,
    finishedAt: 12,
    endsAt: 12,
    usageOnly: [],
    source: [loud, cut],
    stopReason: 'max_output_tokens',
    usage: { inputTokens: 25, outputTokens: 16, cachedTokens: 0, reasoningTokens: 12 },
    whole: response({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [loud, cut],
      usage: usage(25, 0, 16, 12),
    }),
  },
  'a compaction and a kind of item nobody knows': {
    events: [
      ...created(),
      added(0, compaction),
      done(0, compaction),
      added(1, { id: 'bn_1', type: 'brand_new_item' }),
      piece('brand_new_item.delta', 1, { delta: { sides: 6 } }),
      done(1, strange),
      end([compaction, strange], usage(25, 0, 9, 0)),
    ],
    firstContent: 2,
    finishedAt: 7,
    endsAt: 7,
    usageOnly: [],
    source: compaction,
    more: [strange],
    stopReason: 'completed',
    usage: { inputTokens: 25, outputTokens: 9, cachedTokens: 0, reasoningTokens: 0 },
    whole: response({ status: 'completed', output: [compaction, strange], usage: usage(25, 0, 9, 0) }),
  },
  'a server that repeats nothing at the end': {
    events: [
      ...created(),
      ...messageEvents(0, said),
      added(1, { ...calls[0], arguments: '' }),
      piece('function_call_arguments.delta', 1, { delta: calls[0].arguments }),
      done(1, calls[0]),
      event('response.completed', { response: { id: 'resp_1', status: null, usage: usage(25, 0, 9, 0) } }),
    ],
    firstContent: 4,
    finishedAt: 12,
    endsAt: 12,
    usageOnly: [],
    source: said,
    more: [calls[0]],
    stopReason: 'completed',
    usage: { inputTokens: 25, outputTokens: 9, cachedTokens: 0, reasoningTokens: 0 },
  },
  'a server that says no item’s beginning, nor its end': {
    events: [
      event('response.created', { response: response() }),
      event('response.reasoning_text.delta', { item_id: 'rs_2', output_index: 0, content_index: 0, delta: 'Hm. So.' }),
      event('response.output_text.delta', { item_id: 'msg_1', output_index: 1, content_index: 0, delta: 'It ' }),
      event('response.output_text.delta', { item_id: 'msg_1', output_index: 1, content_index: 0, delta: 'rains.' }),
      event('response.completed', { response: response({ status: 'completed' }) }),
    ],
    firstContent: 1,
    finishedAt: 4,
    endsAt: 4,
    usageOnly: [],
    source: [
      { id: 'rs_2', type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'Hm. So.' }] },
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'It rains.' }],
      },
    ],
    stopReason: 'completed',
    usage: null,
  },
  'a server that says everything at the end': {
    events: [...created(), end([said], usage(25, 0, 9, 0))],
    firstContent: 2,
    finishedAt: 2,
    endsAt: 2,
    usageOnly: [],
    source: said,
    stopReason: 'completed',
    usage: { inputTokens: 25, outputTokens: 9, cachedTokens: 0, reasoningTokens: 0 },
    whole: response({ status: 'completed', output: [said], usage: usage(25, 0, 9, 0) }),
  },
};

foldsStreams(responses, streams);

function fold(...events: readonly (readonly [data: string, event: string | null])[]) {
  const folder = responses.folder();
  const meanings = events.map(([data, name]) => folder.push(data, name));
  return { meanings, reply: folder.reply() };
}
const unnamed = (events: readonly string[]) => events.map((data) => [data, null] as const);

describe('a reply', () => {
  const reply = responses.readReply(response({ status: 'completed', output: agentOutput }));

  test('is its messages one after the other, and every id names its message, the whole’s the last, SPEC 1.7', () => {
    expect(reply).toMatchObject({ follows: true, finished: true, error: null, unread: null });
    expect(reply?.references).toEqual([
      { id: 'rs_1', message: 0 },
      { id: 'msg_1', message: 0 },
      { id: 'fc_a', message: 1 },
      { id: 'fc_b', message: 2 },
      { id: 'resp_1', message: 2 },
    ]);
  });

  test('of nothing has no message, and nothing to refer to', () => {
    const empty = response({ status: 'completed', usage: usage(9, 0, 0, 0) });
    expect(responses.readReply(empty)).toMatchObject({ messages: [], references: [], finished: true });
  });

  test.each([
    [{ status: 'completed' }, 'completed', true],
    [{ status: 'incomplete', incomplete_details: { reason: 'content_filter' } }, 'content_filter', true],
    [{ status: 'incomplete', incomplete_details: null }, 'incomplete', true],
    [{ status: 'cancelled' }, 'cancelled', false],
    [{ status: 'in_progress' }, null, false],
    [{ status: 'queued' }, null, false],
    [{ status: undefined }, 'completed', true],
  ])('with %j has the stop reason %s', (members, stopReason, finished) => {
    expect(responses.readReply(response({ output: [said], ...members }))).toMatchObject({ stopReason, finished });
  });

  test('that was cut is known as cut, and a full window by its reason, SPEC 6.2', () => {
    const reasonOf = (reason: string) =>
      responses.readReply(response({ status: 'incomplete', incomplete_details: { reason } }))?.stopReason ?? null;
    expect(isCut(reasonOf('max_output_tokens'))).toBe(true);
    expect(overflowFromStop(reasonOf('context_length_exceeded'))).toMatchObject({ kind: 'context' });
  });

  test('an error body is an error, and what is neither is no reply', () => {
    const error = { message: 'x', code: 'server_error' };
    for (const body of [{ error }, response({ status: 'failed', error })]) {
      expect(responses.readReply(body)).toMatchObject({
        error: JSON.stringify({ error }),
        finished: false,
        messages: [],
      });
    }
    expect(responses.readReply(response({ status: 'failed' }))?.error).toContain('failed');
    for (const body of [null, 'x', [], {}, { output: 'x' }]) expect(responses.readReply(body)).toBeNull();
  });

  test('with an item that cannot be read is not all that was said', () => {
    const odd = response({ status: 'completed', output: [said, { ...said, content: 7 }, calls[0]] });
    expect(responses.readReply(odd)).toMatchObject({
      unread: 'malformed',
      messages: [{}, {}],
      references: [{ id: 'msg_1' }, { id: 'fc_a', message: 1 }, { id: 'resp_1', message: 1 }],
    });
  });

  test.each([
    [undefined, null],
    [{}, null],
    [usage(0, 0, 0, 0), null],
    [
      { input_tokens: 0, output_tokens: 3 },
      { inputTokens: null, outputTokens: 3, cachedTokens: null, reasoningTokens: null },
    ],
    [
      { input_tokens: 8, output_tokens: 0, input_tokens_details: { cached_tokens: 0 } },
      { inputTokens: 8, outputTokens: 0, cachedTokens: 0, reasoningTokens: null },
    ],
  ])('with the usage %j reports %j, SPEC 9.4', (reported, expected) => {
    expect(responses.readReply(response({ status: 'completed', usage: reported }))?.usage).toEqual(expected);
  });

  test('only `completed` is the normal stop', () => {
    const reasons = ['completed', 'max_output_tokens', 'content_filter', 'incomplete', 'failed', 'cancelled', 'stop'];
    expect(reasons.filter((reason) => responses.isNormalStop(reason))).toEqual(['completed']);
  });
});

describe('a stream that breaks', () => {
  const [, inProgress = ''] = created();
  const failure = { code: 'context_length_exceeded', message: 'Your input exceeds the context window of this model.' };
  const recognised = (body: string): string =>
    recogniseOverflow({
      status: 200,
      body,
      upstreamHost: null,
      clientWrote: () => false,
      estimatedTokens: null,
      windowTokens: null,
    }).kind;

  test('in the middle of an item has what was done and what was said of the open one, SPEC 2.3', () => {
    const [first] = Object.values(streams);
    const { reply } = fold(...unnamed((first?.events ?? []).slice(0, 12)));
    expect(reply).toMatchObject({
      messages: [{ text: 'Let ', reasoning: 'Thinking about echo.', signed: true }],
      stopReason: null,
      finished: false,
      unread: null,
    });
    const { reply: calling } = fold(...unnamed((first?.events ?? []).slice(0, 18)));
    expect(calling.messages).toMatchObject([
      { text: said.content[0]?.text },
      { calls: [{ arguments: '{"command":"ec' }] },
    ]);
  });

  test.each([
    ['a failed response', event('response.failed', { response: response({ status: 'failed', error: failure }) }), true],
    ['an error', event('error', { ...failure, param: 'input' }), false],
    ['an error in an envelope', event('error', { error: { ...failure, type: 'invalid_request_error' } }), false],
    ['an envelope', JSON.stringify({ error: failure }), false],
  ])('with %s is known as the overflow it tells of, SPEC 6.2', (_name, data, ends) => {
    const { meanings, reply } = fold([inProgress, null], [data, null]);
    expect(meanings[1]).toEqual({ hasContent: false, usageOnly: false, hasError: true, ends });
    expect(reply).toMatchObject({ messages: [], finished: false });
    expect(JSON.parse(reply.error ?? '')).toMatchObject({ error: failure });
    expect(recognised(data)).toBe('context');
    expect(recognised(reply.error ?? '')).toBe('context');
  });

  test('keeps the first error, and what was said before it', () => {
    const { reply } = fold(
      ...unnamed(messageEvents(0, said)),
      [event('error', { code: 'server_error', message: 'first' }), 'error'],
      [event('response.failed', { response: response({ status: 'failed', error: failure }) }), null],
    );
    expect(reply).toMatchObject({ messages: [{ text: said.content[0]?.text }], finished: false });
    expect(reply.error).toBe('{"error":{"code":"server_error","message":"first"}}');
  });

  test('an error event of another form is an error all the same', () => {
    expect(fold(['{"message":"no"}', 'error']).meanings[0]?.hasError).toBe(true);
    expect(fold(['upstream went away', 'error']).reply.error).toBe(
      '{"error":{"message":"upstream went away","code":null}}',
    );
  });

  test('because it was cancelled ends and is not finished', () => {
    const { meanings, reply } = fold([
      event('response.cancelled', { response: response({ status: 'cancelled' }) }),
      null,
    ]);
    expect(meanings).toMatchObject([{ ends: true, hasError: false }]);
    expect(reply).toMatchObject({ stopReason: 'cancelled', finished: false });
  });

  test.each([
    '',
    'null',
    '7',
    '"x"',
    '[]',
    '[DONE]',
    '{}',
    '{"type":7}',
    '{"type":"response.completed_maybe","status":"failed"}',
    '{"type":"response.output_item.added","item":7}',
    '{"type":"response.content_part.added","part":{"type":"output_text","text":""}}',
    '{"type":"response.output_text.delta","delta":""}',
    '{"type":"keepalive","sequence_number":3}',
  ])('survives %s', (data) => {
    const { meanings, reply } = fold([data, null]);
    expect(meanings).toEqual([{ hasContent: false, usageOnly: false, hasError: false, ends: false }]);
    expect(reply).toMatchObject({ messages: [], error: null, unread: null });
  });

  test('tells when a part of it could not be read', () => {
    expect(fold(['{"type":"response.output_text.del', null]).reply.unread).toBe('malformed');
    const lost = event('response.function_call_arguments.delta', { item_id: 'fc_a', output_index: 0, delta: '{' });
    expect(fold([lost, null])).toMatchObject({ meanings: [{ hasContent: true }], reply: { unread: 'malformed' } });
    // The end makes up for it.
    expect(fold([lost, null], [end([calls[0]], null), null]).reply).toMatchObject({ unread: null, messages: [{}] });
    expect(fold([lost, null], [done(0, calls[0]), null]).reply).toMatchObject({ unread: null, messages: [{}] });
    const deep = `{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"b","arguments":${'['.repeat(1e5)}${']'.repeat(1e5)}}}`;
    expect(fold([deep, null]).reply.unread).not.toBeNull();
  });

  test('a part of a picture or a recording is content, SPEC 6.3', () => {
    const picture = { partial_image_index: 0, partial_image_b64: 'AAAA' };
    expect(fold([piece('image_generation_call.partial_image', 0, picture), null]).meanings[0]?.hasContent).toBe(true);
    expect(fold([event('response.audio.delta', { delta: 'AAAA' }), null]).meanings[0]?.hasContent).toBe(true);
  });

  test('events of a server that numbers no items belong to the item they name, or to the last', () => {
    const { reply } = fold(
      [JSON.stringify({ type: 'response.output_item.added', item: { ...said, content: [] } }), null],
      [JSON.stringify({ type: 'response.output_text.delta', item_id: 'msg_1', delta: 'a' }), null],
      [JSON.stringify({ type: 'response.output_item.added', item: { ...calls[0], arguments: '' } }), null],
      [JSON.stringify({ type: 'response.output_text.delta', item_id: 'msg_1', delta: 'b' }), null],
      [JSON.stringify({ type: 'response.function_call_arguments.delta', delta: '{}' }), null],
    );
    expect(reply.messages).toMatchObject([{ text: 'ab' }, { calls: [{ id: 'call_a', arguments: '{}' }] }]);
  });
});
