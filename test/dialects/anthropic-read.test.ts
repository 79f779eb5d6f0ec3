import { describe, expect, test } from 'vitest';
import { chainIds, nodeId } from '../../src/core/canonical.js';
import { isTypedUserMessage } from '../../src/core/message.js';
import { turnsOf, unitsOf } from '../../src/core/spine.js';
import { anthropicMessages } from '../../src/dialects/anthropic-messages.js';
import type { ReadRequest } from '../../src/dialects/dialect.js';
import { hash } from '../core/builders.js';
import { claudeCode, sdkThread } from './anthropic-captures.js';

function read(body: unknown): ReadRequest {
  const request = anthropicMessages.read(body);
  if (request === null) throw new Error('unreadable');
  return request;
}

const message = (source: unknown) => {
  const found = anthropicMessages.readMessage(source);
  if (found === null) throw new Error('unreadable');
  return found;
};
const idOf = (source: unknown): string => nodeId(hash, 'root', message(source));
const ids = (body: unknown): readonly string[] => chainIds(hash, 'root', read(body).messages);

const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });
const text = (words: string) => ({ type: 'text', text: words });
const hello = { model: 'm', max_tokens: 10, messages: [user('Hello')] };

describe('a request', () => {
  test('of Claude Code is read with its session, SPEC 1.2', () => {
    const request = read(claudeCode.second);
    expect(request).toMatchObject({
      model: 'claude-opus-5-5',
      stream: true,
      includesUsage: true,
      choices: 1,
      outputCap: 128_000,
      session: 'a5fc76f8-a553-4567-8584-5f67f2632d49',
      continues: null,
    });
    expect(request.instructions.map((instruction) => instruction.role)).toEqual(['system']);
    expect(request.messages.map(({ role }) => role)).toEqual(['user', 'system', 'llm', 'tool', 'llm', 'user']);
    expect(request.fixedJson).toEqual([JSON.stringify(claudeCode.second.tools)]);
  });

  test('has tools, their choice and the output format in its fixed part', () => {
    const request = read({
      ...hello,
      tools: [1],
      tool_choice: { type: 'auto' },
      output_config: { format: { type: 'json_schema' } },
    });
    expect(request.fixedJson).toEqual(['[1]', '{"type":"auto"}', '{"type":"json_schema"}']);
  });

  test('has `system` as its first instruction, a string or blocks, SPEC 1.5', () => {
    const asString = read({ ...hello, system: 'Be kind.' });
    const asBlocks = read({ ...hello, system: [text('Be '), { ...text('kind.'), cache_control: {} }] });
    for (const request of [asString, asBlocks]) {
      expect(request.instructions).toMatchObject([{ role: 'system', text: 'Be kind.' }]);
    }
    for (const system of [undefined, null, '', []]) expect(read({ ...hello, system }).instructions).toEqual([]);
  });

  test('has the system messages that its list begins with as instructions too', () => {
    const request = read({ ...hello, system: 'a', messages: [{ role: 'system', content: 'b' }, user('c')] });
    expect(request.instructions.map((instruction) => instruction.text)).toEqual(['a', 'b']);
    expect(request.messages.map((one) => one.text)).toEqual(['c']);
  });

  test.each([
    ['with a thread of an unknown kind', { ...hello, thread: { type: 'adopt', previous_message_id: 'msg_1' } }],
    ['that continues a thread without saying where', { ...hello, thread: { type: 'continue' } }],
    ['to the provider’s own compaction', { ...hello, compaction: { type: 'summarize' } }],
  ])('%s passes untouched, SPEC 1.7', (_name, body) => {
    expect(anthropicMessages.read(body)).toBeNull();
  });

  test('that creates a server thread is read like any other: it carries its whole history', () => {
    expect(read(sdkThread.create)).toMatchObject({ continues: null, selfContained: true, rewritable: true });
  });

  test('that continues a server thread follows what it names, and cannot be written anew, SPEC 1.7', () => {
    const request = read(sdkThread.continued);
    expect(request).toMatchObject({ continues: 'msg_37d3', selfContained: false, rewritable: false });
    expect(request.messages.map(({ role }) => role)).toEqual(['tool']);
  });

  test.each([
    ['as JSON', JSON.stringify({ device_id: 'd', account_uuid: '', session_id: 'a5fc-76' }), 'a5fc-76'],
    ['as it was formerly written', 'user_0a1b_account_c2d3_session_a5fc-76', 'a5fc-76'],
    ['without one', 'user_0a1b', null],
    ['of a person whose name holds the word', 'my_session_1', null],
  ])('names its session in metadata.user_id, %s, SPEC 1.2', (_name, user_id, session) => {
    expect(read({ ...hello, metadata: { user_id } }).session).toBe(session);
  });

  test('with a null thread, or a container, is read', () => {
    expect(anthropicMessages.read({ ...hello, thread: null, container: 'container_1' })).not.toBeNull();
  });

  test.each([
    ['no object', 'x'],
    ['no messages', { model: 'm' }],
    ['no message but instructions', { ...hello, messages: [{ role: 'system', content: 'x' }] }],
    ['an unknown role', { ...hello, messages: [{ role: 'tool', content: 'x' }] }],
    ['content of a wrong type', { ...hello, messages: [user(7)] }],
    ['a block without a type', { ...hello, messages: [user([{ text: 'x' }])] }],
    ['a text block without text', { ...hello, messages: [user([{ type: 'text' }])] }],
    ['a call without an id', { ...hello, messages: [user('x'), assistant([{ type: 'tool_use', name: 'f' }])] }],
    ['a result without a call id', { ...hello, messages: [user([{ type: 'tool_result', content: 'x' }])] }],
    ['a system of a wrong type', { ...hello, system: 7 }],
    ['a stream of a wrong type', { ...hello, stream: 'yes' }],
  ])('with %s is the provider’s to judge', (_name, body) => {
    expect(anthropicMessages.read(body)).toBeNull();
  });

  test('nested beyond all reason is not read', () => {
    const deep = JSON.parse(`{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`);
    const body = {
      ...hello,
      messages: [user('x'), assistant([{ type: 'tool_use', id: 'a', name: 'f', input: deep }])],
    };
    expect(() => anthropicMessages.read(body)).not.toThrow();
  });
});

describe('what real clients rewrite between turns is no other history, SPEC 1.3', () => {
  test('Claude Code moves its cache mark on', () => {
    const [before, after] = [ids(claudeCode.first), ids(claudeCode.second)];
    expect(after.slice(0, before.length)).toEqual(before);
  });

  test('Claude Code sends a marked text as a plain string once the mark has left it', () => {
    const [before, after] = [ids(claudeCode.second), ids(claudeCode.third)];
    expect(after.slice(0, before.length)).toEqual(before);
  });

  test('Claude Code appends a reminder of the date', () => {
    const [before, after] = [ids(claudeCode.second), ids(claudeCode.nextDay)];
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after).toHaveLength(before.length + 1);
  });

  test('Claude Code’s own compaction is another history and forks', () => {
    expect(ids(claudeCode.compaction)[0]).not.toBe(ids(claudeCode.first)[0]);
  });
});

const call = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1, far: { b: 1, a: 2 } } };
const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' };
const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'tea' } };

describe('what does not count for identity, SPEC 1.3', () => {
  test.each<readonly [string, unknown, unknown]>([
    ['a text block against a string', user('Go on.'), user([text('Go on.')])],
    ['two text blocks against one', user([text('Go '), text('on.')]), user('Go on.')],
    ['cache marks', user([text('a')]), user([{ ...text('a'), cache_control: { type: 'ephemeral', ttl: '1h' } }])],
    [
      'the key order of a call’s input',
      assistant([call]),
      assistant([{ ...call, input: { far: { a: 2, b: 1 }, at: 1 } }]),
    ],
    ['who called', assistant([call]), assistant([{ ...call, caller: { type: 'direct' } }])],
    ['a result in a block against a string', user([result]), user([{ ...result, content: [text('ok')] }])],
    ['an error mark', user([result]), user([{ ...result, is_error: false }])],
    [
      'thinking that is echoed, and that is not',
      assistant([{ type: 'thinking', thinking: 'Hm', signature: 's' }, text('a')]),
      assistant('a'),
    ],
    ['redacted thinking', assistant([{ type: 'redacted_thinking', data: 'x' }, text('a')]), assistant('a')],
    ['citations', assistant([text('a')]), assistant([{ ...text('a'), citations: [{ type: 'char_location' }] }])],
    [
      'blank text that a client may not send back',
      assistant([text('\n\n'), text('a'), call]),
      assistant([text('a'), call]),
    ],
    ['white space at the end of assistant text', assistant('a \n'), assistant('a')],
    [
      'members without a value in the provider’s own blocks',
      assistant([search]),
      assistant([{ ...search, caller: null, cache_control: { type: 'ephemeral' } }]),
    ],
    [
      'settings of a system message',
      { role: 'system', content: 'a' },
      { role: 'system', content: 'a', clear_at: 'never' },
    ],
  ])('%s', (_name, one, other) => {
    expect(idOf(other)).toBe(idOf(one));
  });
});

describe('what counts for identity, SPEC 1.3', () => {
  test.each<readonly [string, unknown, unknown]>([
    ['the role', user('a'), assistant('a')],
    ['text', user('a'), user('b')],
    ['a call’s input', assistant([call]), assistant([{ ...call, input: {} }])],
    ['a call’s id', assistant([call]), assistant([{ ...call, id: 'toolu_2' }])],
    ['a result’s text', user([result]), user([{ ...result, content: 'no' }])],
    ['text beside a result', user([result]), user([result, text('stop')])],
    [
      'an image',
      user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }]),
      user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAB' } }]),
    ],
    ['a document’s text', user([{ type: 'document', source: { type: 'text', data: 'a' } }]), user('b')],
    ['what the provider’s tools were asked', assistant([search]), assistant([{ ...search, input: { query: 'x' } }])],
    ['a block of an unknown kind', assistant([{ type: 'hologram', at: 1 }]), assistant([{ type: 'hologram', at: 2 }])],
  ])('%s', (_name, one, other) => {
    expect(idOf(other)).not.toBe(idOf(one));
  });
});

describe('calls and results', () => {
  const other = { ...call, id: 'toolu_2' };
  const parallel = [user('Look.'), assistant([text('Two.'), call, other])];

  test('in one message are one unit with their calls', () => {
    const messages = read({ ...hello, messages: [...parallel, user([{ ...result, tool_use_id: 'toolu_2' }, result])] });
    expect(unitsOf(messages.messages)).toEqual([
      { from: 0, to: 1, complete: true },
      { from: 1, to: 3, complete: true },
    ]);
    expect(messages.messages[2]).toMatchObject({
      role: 'tool',
      results: [{ callId: 'toolu_2' }, { callId: 'toolu_1' }],
    });
  });

  test('have text beside them that is the user’s and starts no turn', () => {
    const beside = message(user([result, text('And hurry.')]));
    expect(beside).toMatchObject({ role: 'user', text: 'And hurry.', results: [{ text: 'ok' }] });
    expect(isTypedUserMessage(beside)).toBe(false);
    const { messages } = read({ ...hello, messages: [user('Look.'), assistant([call]), user([result, text('x')])] });
    expect(turnsOf(messages)).toHaveLength(1);
  });

  test('keep text and media of a result apart', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
    expect(message(user([{ ...result, content: [text('a'), image, text('b')] }]))).toMatchObject({
      role: 'tool',
      text: '',
      results: [{ callId: 'toolu_1', text: 'ab' }],
      media: [{ kind: 'image', inline: true, data: 'AAAA', mimeType: 'image/png' }],
    });
    expect(message(user([{ type: 'tool_result', tool_use_id: 'a' }])).results).toEqual([{ callId: 'a', text: '' }]);
  });

  test('of the provider’s own tools need no result from the client', () => {
    const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ encrypted_content: 'x' }] };
    const said = message(assistant([search, found, text('Tea.')]));
    expect(said).toMatchObject({ role: 'llm', text: 'Tea.', calls: [], results: [] });
    expect(said.media.map((media) => [media.kind, media.name])).toEqual([
      ['other', 'server_tool_use web_search {"query":"tea"}'],
      ['other', 'web_search_tool_result'],
    ]);
  });
});

describe('thinking', () => {
  test.each([
    ['signed', { type: 'thinking', thinking: 'Hm', signature: 'x' }, { signed: true, reasoning: 'Hm' }],
    ['unsigned', { type: 'thinking', thinking: 'Hm', signature: '' }, { signed: false, reasoning: 'Hm' }],
    ['redacted', { type: 'redacted_thinking', data: 'x'.repeat(400) }, { signed: true, reasoning: 'x'.repeat(100) }],
    ['withheld', { type: 'thinking', thinking: '', signature: 'x'.repeat(8) }, { signed: true, reasoning: 'xx' }],
  ])('that is %s is told and counted', (_name, block, expected) => {
    expect(message(assistant([block, text('a')]))).toMatchObject(expected);
  });
});

describe('media and documents', () => {
  const document = (source: object, more: object = {}) => user([{ type: 'document', source, ...more }]);

  test.each([
    [
      document({ type: 'base64', media_type: 'application/pdf', data: 'JVBE' }, { title: 'Plan' }),
      { kind: 'file', inline: true, data: 'JVBE', mimeType: 'application/pdf', name: 'Plan' },
    ],
    [
      document({ type: 'url', url: 'https://a.example/x.pdf' }),
      { kind: 'file', inline: false, data: 'https://a.example/x.pdf' },
    ],
    [document({ type: 'file', file_id: 'file_1' }), { kind: 'file', inline: false, data: 'file_1' }],
    [
      user([{ type: 'image', source: { type: 'url', url: 'https://a.example/x.png' } }]),
      { kind: 'image', inline: false },
    ],
    [user([{ type: 'image', source: { type: 'file', file_id: 'file_2' } }]), { kind: 'image', data: 'file_2' }],
    [
      user([{ type: 'container_upload', file_id: 'file_3' }]),
      { kind: 'other', inline: true, name: 'container_upload' },
    ],
  ])('%j', (source, media) => {
    expect(message(source).media).toMatchObject([media]);
  });

  test.each([
    [document({ type: 'text', media_type: 'text/plain', data: 'Boil.' }, { title: 'Tea' }), 'Tea\nBoil.'],
    [document({ type: 'content', content: [text('Bo'), text('il.')] }), 'Boil.'],
    [user([{ type: 'search_result', source: 'a.md', title: 'Tea', content: [text('Boil.')] }]), 'Tea\na.md\nBoil.'],
  ])('that are text are text: %j', (source, expected) => {
    expect(message(source)).toMatchObject({ text: expected, media: [] });
  });
});
