import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anthropicMessages } from '../../src/dialects/anthropic-messages.js';
import type { WireItem } from '../../src/dialects/dialect.js';

const plain = { askForUsage: false, alternate: false };
const alternate = { askForUsage: false, alternate: true };
const content = '[Previous conversation summary]\nWe chose port 9090.';
const summary: WireItem = { kind: 'summary', content };
const summarySource = anthropicMessages.summaryMessage(content).source;
const kept = (...indices: readonly number[]): WireItem[] => indices.map((index) => ({ kind: 'kept', index }));

function sent(body: object, items: readonly WireItem[], options = plain): readonly unknown[] {
  const written: unknown = JSON.parse(anthropicMessages.write(JSON.stringify(body), items, options));
  expect(written).toEqual({ ...body, messages: expect.anything() });
  return (written as { readonly messages: readonly unknown[] }).messages;
}

const user = (said: unknown) => ({ role: 'user', content: said });
const assistant = (said: unknown) => ({ role: 'assistant', content: said });
const system = (said: unknown, more: object = {}) => ({ role: 'system', content: said, ...more });
const text = (words: string) => ({ type: 'text', text: words });
const call = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
const result = (id: string, said: unknown, more: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: said,
  ...more,
});
const mark = { cache_control: { type: 'ephemeral' } };
const request = (...messages: readonly object[]) => ({ model: 'claude-opus-4-6', system: 'Be kind.', messages });

describe('a rewritten request, SPEC 4.3', () => {
  const first = '{ "role":"user",\n  "content" : "caf\\u00e9 \\/ 🙂", "vendor": 12345678901234567890 }';
  const second = '{"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],"role":"user"}';
  const third = '{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"big":1e400}}]}';
  const body = `\n{"model" : "m", "system":[{"type":"text","text":"x"}], "messages" : [\n ${first},\n ${second} , ${third}\n ],\t"top_k": 1.0 }\n`;

  test('kept messages and all other fields are the very characters that came in, `system` among them', () => {
    const written = anthropicMessages.write(body, kept(0, 3, 1), plain);
    const before = body.slice(0, body.indexOf('[\n'));
    const after = body.slice(body.indexOf('],\t') + 1);
    expect(written).toBe(`${before}[${third},${first}]${after}`);
  });

  test('indices count from the first message where `system` says nothing', () => {
    expect(sent({ system: '', messages: [user('a'), user('b')] }, kept(1))).toEqual([user('b')]);
  });

  test('the same summary gives the same bytes, SPEC 4.5, as a user message, SPEC 4.4', () => {
    const items = [...kept(0), summary, ...kept(2)];
    const written = anthropicMessages.write(body, items, plain);
    expect(JSON.parse(written).messages).toEqual([summarySource, JSON.parse(second)]);
    expect(anthropicMessages.write(body, items, plain)).toBe(written);
  });

  test('an index that the request does not have is a defect and throws', () => {
    expect(() => anthropicMessages.write(body, kept(4), plain)).toThrow(RangeError);
    expect(() => anthropicMessages.write('{"model":"m"}', [], plain)).toThrow(RangeError);
  });

  test('cache marks of kept messages stay where they were, and none is added', () => {
    const marked = user([{ ...text('a'), ...mark }, text('b')]);
    expect(sent(request(user('x'), marked), [...kept(0), summary, ...kept(2)])).toEqual([summarySource, marked]);
  });

  test('a message from the ledger is sent without the marks of an earlier request', () => {
    const source = user([{ ...text('a'), ...mark }, result('c', [{ ...text('b'), ...mark }], mark)]);
    const calling = assistant([{ ...call('d'), input: { cache_control: 'mine' } }]);
    const items: WireItem[] = [
      { kind: 'stored', source },
      { kind: 'stored', source: calling },
    ];
    expect(sent(request(user('x')), items)).toEqual([user([text('a'), result('c', [text('b')])]), calling]);
  });

  test('an empty reply from the ledger is left out, for the provider takes no message without content', () => {
    const items: WireItem[] = [...kept(1), { kind: 'stored', source: assistant([]) }, ...kept(2)];
    expect(sent(request(user('a'), user('b')), items)).toEqual([user('a'), user('b')]);
  });

  test('whatever the body, only the message list differs and each kept message is deep-equal', () => {
    const messages = fc.array(
      fc.record({
        role: fc.constantFrom('user', 'assistant'),
        content: fc.string({ unit: 'binary' }),
        extra: fc.jsonValue(),
      }),
      { minLength: 1, maxLength: 6 },
    );
    const value = fc.record({ model: fc.string(), messages, tools: fc.jsonValue(), system: fc.constantFrom('', 'x') });
    fc.assert(
      fc.property(value, fc.nat({ max: 4 }), (generated, indent) => {
        const source = JSON.stringify(generated, null, indent);
        const offset = generated.system === '' ? 0 : 1;
        const indices = generated.messages.map((_, index) => index + offset).toReversed();
        const written = JSON.parse(anthropicMessages.write(source, kept(...indices), plain));
        const parsed = JSON.parse(source);
        const whole = parsed.messages.filter((message: { content: string }) => message.content !== '').toReversed();
        expect(written).toEqual({ ...parsed, messages: whole });
      }),
    );
  });
});

describe('a result sent in fewer words, SPEC 7.3', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
  const reduce = (message: object, results: readonly (readonly [string, string])[]) =>
    sent(request(message), [{ kind: 'reduced', item: { kind: 'kept', index: 1 }, results: new Map(results) }])[0];

  test.each<readonly [string, object, object]>([
    [
      'its call id, error mark and cache mark stay',
      user([result('a', 'long', { is_error: true, ...mark }), result('b', 'other')]),
      user([result('a', 'short', { is_error: true, ...mark }), result('b', 'other')]),
    ],
    [
      'media in it stays',
      user([result('a', [text('lo'), image, text('ng')])]),
      user([result('a', [text('short'), image])]),
    ],
    [
      'a mark on its text stays, once',
      user([result('a', [text('lo'), image, { ...text('ng'), ...mark }])]),
      user([result('a', [image, { ...text('short'), ...mark }])]),
    ],
    [
      'text that came as a document or search result is replaced with it',
      user([result('a', [{ type: 'search_result', source: 's', title: 't', content: [text('long')] }])]),
      user([result('a', [text('short')])]),
    ],
    ['text beside it stays', user([result('a', 'long'), text('Go on.')]), user([result('a', 'short'), text('Go on.')])],
    ['one without text stays', user([result('a', [image])]), user([result('a', [image])])],
    [
      'one without content stays',
      user([{ type: 'tool_result', tool_use_id: 'a' }]),
      user([{ type: 'tool_result', tool_use_id: 'a' }]),
    ],
    ['a message of other results stays', user([result('b', 'other')]), user([result('b', 'other')])],
    ['a message that is a string stays', user('a'), user('a')],
  ])('%s, as it is counted', (_name, message, expected) => {
    expect(reduce(message, [['a', 'short']])).toEqual(expected);
    const read = anthropicMessages.readMessage(message);
    if (read === null) throw new Error('unreadable');
    const counted = anthropicMessages.withResults(read, new Map([['a', 'short']]));
    expect(counted.source).toEqual(expected);
    if (read.results.every(({ text: said }) => said !== '')) {
      expect(counted).toEqual(anthropicMessages.readMessage(expected));
    }
  });

  test('all its other characters stay', () => {
    const message = '{ "role":"user","content":[ {"tool_use_id":"a","n":1.0,"type":"tool_result","content":"long"} ]}';
    const written = anthropicMessages.write(
      `{"messages":[${message}]}`,
      [{ kind: 'reduced', item: { kind: 'kept', index: 0 }, results: new Map([['a', 'x"y']]) }],
      plain,
    );
    expect(written).toBe(`{"messages":[${message.replace('"long"', '"x\\"y"')}]}`);
  });
});

describe('system messages in the middle of a history, SPEC 4.8', () => {
  const env = system('Environment', { output_config: { effort: 'medium' } });
  const date = system([{ ...text('New date'), ...mark }]);

  test('stay where they are while nothing before them is substituted', () => {
    const body = request(user('a'), env, assistant('b'), user('c'), date);
    expect(sent(body, kept(0, 1, 2, 3, 4, 5))).toEqual(body.messages);
  });

  test('that were pinned stand behind the user messages that follow, as the provider wants them', () => {
    const body = request(user('a'), env, assistant('b'), user('c'), assistant('d'));
    expect(sent(body, [...kept(0, 2), summary, ...kept(4, 5)])).toEqual([
      summarySource,
      user('c'),
      env,
      assistant('d'),
    ]);
  });

  test('become one with those that stand there, for it takes no two in a row', () => {
    const body = request(user('a'), env, assistant('b'), user('c'), date);
    expect(sent(body, [...kept(0, 2), summary, ...kept(4, 5)])).toEqual([
      summarySource,
      user('c'),
      system([text('Environment'), { ...text('New date'), ...mark }]),
    ]);
  });

  test('before a checkpoint stand behind it', () => {
    const body = request(user('a'), env, assistant([call('c')]), user([result('c', 'x')]), assistant('d'), user('e'));
    expect(sent(body, [...kept(0, 1, 2), summary, ...kept(5, 6)])).toEqual([
      user('a'),
      summarySource,
      env,
      assistant('d'),
      user('e'),
    ]);
  });

  test('that were meant for one user message alone have had their time', () => {
    const once = system('Now only', { clear_at: 'next_user_message' });
    const body = request(user('a'), once, assistant('b'), user('c'));
    expect(sent(body, [...kept(0, 2), summary, ...kept(4)])).toEqual([summarySource, user('c')]);
  });

  test('that the client’s list begins with stay there', () => {
    const body = { model: 'm', messages: [env, user('a'), assistant('b'), user('c')] };
    expect(sent(body, [...kept(0), summary, ...kept(3)])).toEqual([env, summarySource, user('c')]);
  });
});

describe('thinking behind a substitution', () => {
  const thought = { type: 'thinking', thinking: 'Hm', signature: 'sig' };
  const hidden = { type: 'redacted_thinking', data: 'x' };
  const thinking = (model: string) => ({
    model,
    messages: [
      user('a'),
      assistant([thought, call('c')]),
      user([result('c', 'long')]),
      assistant([thought, hidden, text('b')]),
      user('d'),
    ],
  });
  const reduced: WireItem = {
    kind: 'reduced',
    item: { kind: 'kept', index: 2 },
    results: new Map([['c', 'short']]),
  };
  const behind = [assistant([text('b')]), user('d')];

  test.each(['claude-opus-5-5', 'us.anthropic.claude-fable-5-1-v1:0', 'claude-sonnet-5.5', 'anthropic/claude-opus-6'])(
    'is left out for %s, which refuses it behind anything but what it was thought behind',
    (model) => {
      const body = thinking(model);
      expect(sent(body, [summary, ...kept(3, 4)])).toEqual([summarySource, ...behind]);
      expect(sent(body, [...kept(0, 1), reduced, ...kept(3, 4)])).toEqual([
        ...body.messages.slice(0, 2),
        user([result('c', 'short')]),
        ...behind,
      ]);
    },
  );

  test.each(['claude-opus-5', 'claude-opus-4-5-20251101', 'claude-sonnet-4-20250514', 'claude-3-7-sonnet', 'glm-5'])(
    'stays as it came for %s, G1',
    (model) => {
      const body = thinking(model);
      expect(sent(body, [summary, ...kept(3, 4)])).toEqual([summarySource, ...body.messages.slice(3)]);
    },
  );

  test('stays where nothing is substituted', () => {
    const body = thinking('claude-opus-5-5');
    expect(sent(body, kept(0, 1, 2, 3, 4))).toEqual(body.messages);
  });

  test('takes a message of nothing else with it', () => {
    const body = { model: 'claude-opus-5-5', messages: [user('a'), assistant([thought]), user('b')] };
    expect(sent(body, [summary, ...kept(1, 2)])).toEqual([summarySource, user('b')]);
  });
});

describe('an upstream that insists on alternation, SPEC 4.4', () => {
  const part = text(anthropicMessages.summaryMessage(content).text);

  test('gets a summary and the user messages beside it as parts of one', () => {
    const marked = user([{ ...text('c'), ...mark }]);
    expect(sent(request(user('a'), assistant('b'), marked), [...kept(0), summary, ...kept(3)], alternate)).toEqual([
      user([part, { ...text('c'), ...mark }]),
    ]);
    const body = request(user('a'), assistant([call('c')]), user([result('c', 'x')]), assistant('b'));
    expect(sent(body, [...kept(0, 1), summary, ...kept(4)], alternate)).toEqual([
      user([text('a'), part]),
      assistant('b'),
    ]);
  });

  test('gets the results of a message first', () => {
    const body = request(assistant([call('c')]), user([result('c', 'x'), text('y')]));
    expect(sent(body, [...kept(0, 1), summary, ...kept(2)], alternate)).toEqual([
      assistant([call('c')]),
      user([result('c', 'x'), part, text('y')]),
    ]);
  });

  test('gets what the client itself sent in a row as it came', () => {
    const body = request(user('a'), user('b'), assistant('c'), user('d'));
    expect(sent(body, kept(0, 1, 2, 3, 4), alternate)).toEqual(body.messages);
  });

  test('every other one takes user messages in a row', () => {
    expect(sent(request(user('a')), [...kept(0), summary, ...kept(1)])).toEqual([summarySource, user('a')]);
  });
});
