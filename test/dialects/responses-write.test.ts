import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { WireItem, WireMessage } from '../../src/dialects/dialect.js';
import { withoutMember } from '../../src/dialects/json-edits.js';
import { responses } from '../../src/dialects/responses.js';
import { codex, plain, references } from './responses-captures.js';

const options = { askForUsage: false, alternate: false };
const content = '[Previous conversation summary]\nWe chose port 9090.';
const summary: WireItem = { kind: 'summary', content };
const summarySource = responses.summaryMessage(content).source;
const kept = (...indices: readonly number[]): WireMessage[] => indices.map((index) => ({ kind: 'kept', index }));

interface Sent {
  readonly input: readonly unknown[];
}

function sent(body: object, items: readonly WireItem[]): readonly unknown[] {
  const written = JSON.parse(responses.write(JSON.stringify(body), items, options)) as Sent;
  const { previous_response_id: _, ...rest } = body as { readonly previous_response_id?: unknown };
  expect(written).toEqual({ ...rest, input: expect.anything() });
  return written.input;
}

const user = (said: unknown) => ({ role: 'user', content: said });
const thought = (more: object = {}) => ({ type: 'reasoning', id: 'rs_1', summary: [], ...more });
const call = (call_id: string) => ({ type: 'function_call', id: 'fc_1', call_id, name: 'look', arguments: '{}' });
const output = (call_id: string, said: unknown) => ({ type: 'function_call_output', call_id, output: said });

describe('a rewritten request, SPEC 4.3', () => {
  const first = '{ "role":"user",\n  "content" : "caf\\u00e9 \\/ 🙂", "vendor": 12345678901234567890 }';
  const hidden = '{"type":"reasoning", "id":"rs_1","summary":[],"encrypted_content":"gA\\u003d"}';
  const calling = '{"arguments":"{\\"big\\":1e400}","type":"function_call","name":"f","call_id":"c"}';
  const result = '{"type":"function_call_output","call_id":"c","output":"ok","n":1.0}';
  const body = `\n{"model" : "m", "input" : [\n ${first},\n ${hidden} , ${calling},${result}\n ],\t"instructions":"Be kind." , "top_p": 1.0 }\n`;

  test('kept messages and all other fields are the very characters that came in, reasoning among them', () => {
    const written = responses.write(body, kept(0, 2, 3), options);
    const before = body.slice(0, body.indexOf('[\n'));
    const after = body.slice(body.indexOf('],\t') + 1);
    expect(written).toBe(`${before}[${hidden},${calling},${result}]${after}`);
  });

  test('indices count from the first message where `instructions` says nothing', () => {
    for (const instructions of ['', null]) {
      expect(sent({ instructions, input: [user('a'), user('b')] }, kept(1))).toEqual([user('b')]);
    }
  });

  test('instructions in the list stay in it, and the field in its place', () => {
    const input = [{ role: 'developer', content: 'b' }, user('c'), user('d')];
    expect(sent({ instructions: 'a', input }, [...kept(0, 1), summary, ...kept(3)])).toEqual([
      input[0],
      summarySource,
      user('d'),
    ]);
    const items = codex.input;
    expect(sent(codex, [...kept(0, 1), summary, ...kept(3, 4)])).toEqual([
      ...items.slice(0, 2),
      summarySource,
      ...items.slice(3, 6),
    ]);
  });

  test('the same summary gives the same bytes, SPEC 4.5, as a user message, SPEC 4.4', () => {
    const items = [...kept(0), summary, ...kept(1)];
    const written = responses.write(body, items, options);
    expect(JSON.parse(written)).toMatchObject({ input: [summarySource, JSON.parse(first)] });
    expect(responses.write(body, items, options)).toBe(written);
    expect(responses.readMessage(summarySource)).toEqual(responses.summaryMessage(content));
  });

  test('a string for an input becomes the list it stands for, in its very characters', () => {
    const written = responses.write('{"input": "caf\\u00e9", "n":1.0}', [summary, ...kept(0)], options);
    expect(written).toBe(
      `{"input": [${JSON.stringify(summarySource)},{"role":"user","content":"caf\\u00e9"}], "n":1.0}`,
    );
  });

  test('an index that the request does not have is a defect and throws', () => {
    expect(() => responses.write(body, kept(4), options)).toThrow(RangeError);
    expect(() => responses.write('{"model":"m"}', [], options)).toThrow(RangeError);
  });

  test('what asks for a compaction stays last', () => {
    const trigger = { type: 'compaction_trigger' };
    expect(sent({ input: [user('a'), call('c'), output('c', ''), trigger] }, [summary, ...kept(1, 2)])).toEqual([
      summarySource,
      call('c'),
      output('c', ''),
      trigger,
    ]);
  });

  test('no option changes anything: usage is reported unasked, and user messages may follow one another', () => {
    const written = responses.write(body, [summary, ...kept(1)], options);
    expect(responses.write(body, [summary, ...kept(1)], { askForUsage: true, alternate: true })).toBe(written);
  });
});

describe('a history that the upstream held, SPEC 1.7', () => {
  const stored = plain.slice(0, 1).map((source): WireItem => ({ kind: 'stored', source }));

  test('is sent whole, and no longer referred to', () => {
    const body = { input: [output('c', 'ok')], previous_response_id: 'resp_1', store: true };
    const reply: WireItem = { kind: 'stored', source: [thought(), call('c')] };
    expect(sent(body, [...stored, reply, ...kept(0)])).toEqual([plain[0], thought(), call('c'), output('c', 'ok')]);
  });

  test.each([
    ['{"previous_response_id":"r","input":"x"}', '{"input":[]}'],
    ['{ "previous_response_id" : "r" , "input":"x"}', '{ "input":[]}'],
    ['{"input":"x", "previous_response_id":"r"}', '{"input":[]}'],
    ['{"a":1,\n "previous_response_id":"r",\n "input":"x" }', '{"a":1,\n "input":[] }'],
    ['{"previous_response_id":"q","input":"x","previous_response_id":"r"}', '{"input":[]}'],
  ])('of %s only the reference goes', (text, expected) => {
    expect(responses.write(text, [], options)).toBe(expected);
  });

  test('has its references resolved in their places', () => {
    const source = { type: 'message', role: 'assistant', content: 'Let me run that.' };
    expect(sent({ input: references }, [...kept(0, 1), { kind: 'stored', source }, ...kept(4)])).toEqual([
      ...references.slice(0, 2),
      source,
      references[4],
    ]);
  });

  test('that the upstream does not store keeps no reasoning that only it could read, nor the ids that ask for it, G4', () => {
    const readable = [thought({ encrypted_content: 'zz' }), call('d')];
    const items: WireItem[] = [
      { kind: 'stored', source: [thought(), call('c')] },
      { kind: 'stored', source: readable },
      { kind: 'stored', source: thought({ encrypted_content: null }) },
      { kind: 'stored', source: call('e') },
    ];
    const { id: _, ...nameless } = call('c');
    expect(sent({ input: [user('a')], store: false }, items)).toEqual([nameless, ...readable, call('e')]);
    // Its id is what the answer to it names.
    const asking = { type: 'mcp_approval_request', id: 'mcpr_1', name: 'f', arguments: '{}' };
    const asked: WireItem = { kind: 'stored', source: [thought(), asking] };
    expect(sent({ input: [user('a')], store: false }, [asked])).toEqual([asking]);
    for (const store of [true, null, undefined]) expect(sent({ input: [user('a')], store }, items)).toHaveLength(6);
  });
});

describe('a result in other words, SPEC 7.3', () => {
  const results = new Map([['c', 'short']]);
  const image = { type: 'input_image', image_url: 'https://x/y' };

  test('changes the output’s text and no other character', () => {
    const item = '{"output" :"long", "call_id":"c","type":"function_call_output", "n":1.0}';
    const reduced: WireItem = { kind: 'reduced', item: { kind: 'kept', index: 0 }, results };
    expect(responses.write(`{"input":[${item}]}`, [reduced], options)).toBe(
      `{"input":[${item.replace('"long"', '"short"')}]}`,
    );
  });

  test.each([
    ['a string', 'long', 'short'],
    [
      'parts, whose media stay',
      [{ type: 'input_text', text: 'lo', more: 1 }, image, { type: 'input_text', text: 'ng' }],
      [{ type: 'input_text', text: 'short', more: 1 }, image],
    ],
    [
      'what commands put out, whose ends stay',
      [
        { stdout: 'lo', stderr: 'n', outcome: { type: 'exit', exit_code: 1 } },
        { stdout: 'g', stderr: '', outcome: { type: 'timeout' } },
      ],
      [
        { stdout: 'short', stderr: '', outcome: { type: 'exit', exit_code: 1 } },
        { stdout: '', stderr: '', outcome: { type: 'timeout' } },
      ],
    ],
  ])('stands in %s', (_name, said, expected) => {
    const source = output('c', said);
    const message = responses.readMessage(source);
    if (message === null) throw new Error('unreadable');
    const shortened = responses.withResults(message, results);
    expect(shortened).toMatchObject({ results: [{ callId: 'c', text: 'short' }], source: output('c', expected) });
    expect(shortened.media).toEqual(message.media);
    for (const item of [{ kind: 'kept', index: 0 } as const, { kind: 'stored', source } as const]) {
      expect(sent({ input: [source] }, [{ kind: 'reduced', item, results }])).toEqual([shortened.source]);
    }
  });

  test.each([
    ['another call', output('d', 'long')],
    ['media alone', output('c', [image])],
    ['tools that were found', { type: 'tool_search_output', call_id: 'c', tools: [{ name: 'f' }] }],
    ['an approval', { type: 'mcp_approval_response', approval_request_id: 'c', approve: true }],
    ['a call', call('c')],
  ])('leaves %s alone', (_name, source) => {
    const message = responses.readMessage(source);
    if (message === null) throw new Error('unreadable');
    expect(responses.withResults(message, results)).toBe(message);
    const item: WireItem = { kind: 'reduced', item: { kind: 'kept', index: 0 }, results };
    expect(sent({ input: [source, user('x')] }, [item])).toEqual([source]);
  });
});

const json = fc.jsonValue({ maxDepth: 2 });
const item = fc.oneof(
  fc.record({ role: fc.constantFrom('user', 'assistant'), content: fc.string() }),
  fc.record({ type: fc.constant('reasoning'), id: fc.string(), summary: fc.constant([]) }),
  fc.record({ type: fc.constant('function_call'), call_id: fc.string(), name: fc.string(), arguments: fc.string() }),
  fc.record({ type: fc.constant('function_call_output'), call_id: fc.string(), output: fc.string() }),
  fc.record({ type: fc.constant('brand_new'), value: json }),
);

test('whatever the body, only the input differs and each kept message is deep-equal', () => {
  const requests = fc.record({
    rest: fc.dictionary(fc.string(), json),
    items: fc.array(item, { minLength: 1, maxLength: 8 }),
    indent: fc.nat(2),
  });
  fc.assert(
    fc.property(requests, ({ rest, items, indent }) => {
      const { instructions: _i, previous_response_id: _p, store: _s, input: _n, ...others } = rest;
      const body = { ...others, input: items };
      const read = responses.read({ input: items });
      if (read === null) throw new Error('unreadable');
      const all = kept(...read.messages.keys());
      const written = JSON.parse(responses.write(JSON.stringify(body, null, indent), all, options)) as Sent;
      expect(written).toEqual(JSON.parse(JSON.stringify(body)));
      const backwards = JSON.parse(responses.write(JSON.stringify(body), all.toReversed(), options)) as Sent;
      const sources = read.messages.toReversed().flatMap((message) => message.source);
      expect(backwards.input).toEqual(JSON.parse(JSON.stringify(sources)));
    }),
  );
});

test('an object without a member has all its others', () => {
  const objects = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'gone'), json), { maxLength: 6 });
  fc.assert(
    fc.property(objects, fc.constantFrom('', ' ', '\n '), (members, space) => {
      const text = `{${space}${members
        .map(([name, value]) => `${JSON.stringify(name)}${space}:${JSON.stringify(value)}${space}`)
        .join(`,${space}`)}}`;
      const { gone: _, ...rest } = JSON.parse(text) as Record<string, unknown>;
      expect(JSON.parse(withoutMember(text, 'gone'))).toEqual(rest);
    }),
  );
});
