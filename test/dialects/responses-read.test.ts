import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chainIds, nodeId } from '../../src/core/canonical.js';
import { newFaults } from '../../src/core/check.js';
import { unitsOf } from '../../src/core/spine.js';
import type { ReadRequest } from '../../src/dialects/dialect.js';
import { groupsOf, sourceOf } from '../../src/dialects/responses-group.js';
import { responses } from '../../src/dialects/responses.js';
import { hash } from '../core/builders.js';
import { codex, firstOutput, plain, references, secondInputs } from './responses-captures.js';

function read(body: unknown): ReadRequest {
  const request = responses.read(body);
  if (request === null) throw new Error('unreadable');
  return request;
}

const message = (source: unknown) => {
  const found = responses.readMessage(source);
  if (found === null) throw new Error('unreadable');
  return found;
};
const idOf = (source: unknown): string => nodeId(hash, 'root', message(source));
const ids = (input: unknown): readonly string[] => chainIds(hash, 'root', read({ input }).messages);

const user = (content: unknown) => ({ role: 'user', content });
const thought = (text: string, more: object = {}) => ({
  type: 'reasoning',
  id: 'rs_1',
  summary: text === '' ? [] : [{ type: 'summary_text', text }],
  ...more,
});
const call = (call_id: string, more: object = {}) => ({
  type: 'function_call',
  call_id,
  name: 'look',
  arguments: '{}',
  ...more,
});
const output = (call_id: string, said: unknown) => ({ type: 'function_call_output', call_id, output: said });

describe('a request', () => {
  test('of Codex is read with its session, SPEC 1.2', () => {
    const request = read(codex);
    expect(request).toMatchObject({
      model: 'gpt-5.1',
      stream: true,
      includesUsage: true,
      choices: 1,
      outputCap: null,
      session: '01a231ac-22c8-7c60-a632-b612a1c85e8b',
      continues: null,
      rewritable: true,
      asksToCompact: false,
      // It searches the web.
      selfContained: false,
    });
    expect(request.instructions.map(({ role, text }) => [role, text])).toEqual([
      ['system', 'You are a coding agent.'],
      ['system', '## Skills'],
    ]);
    expect(request.messages.map(({ role }) => role)).toEqual(['user', 'llm', 'llm', 'llm', 'tool', 'tool']);
    expect(request.fixedJson).toEqual([JSON.stringify(codex.tools)]);
    expect(unitsOf(request.messages)).toEqual([
      { from: 0, to: 1, complete: true },
      { from: 1, to: 6, complete: true },
    ]);
  });

  test('may have a string for its input: one user message', () => {
    const request = read({ model: 'm', input: 'Hello', max_output_tokens: 9 });
    expect(request).toMatchObject({ stream: false, outputCap: 9, selfContained: true, session: null });
    expect(request.messages).toMatchObject([{ role: 'user', text: 'Hello' }]);
    expect(ids('Hello')).toEqual(
      ids([{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }]),
    );
  });

  test('has the field `instructions` as its first, then the items that its list begins with, SPEC 1.5', () => {
    const input = [
      { role: 'developer', content: 'b' },
      { type: 'additional_tools', role: 'developer', tools: [7] },
      user('c'),
    ];
    const request = read({ instructions: 'a', input });
    expect(request.instructions.map(({ role, text }) => [role, text])).toEqual([
      ['system', 'a'],
      ['system', 'b'],
      ['system', '{"role":"developer","tools":[7],"type":"additional_tools"}'],
    ]);
    for (const instruction of request.instructions) expect(message(instruction.source)).toEqual(instruction);
    expect(request.instructions[0]?.source).not.toEqual(request.instructions[1]?.source);
    for (const instructions of [undefined, null, '']) {
      expect(read({ instructions, input: 'x' }).instructions).toEqual([]);
    }
  });

  test('has tools and the output format in its fixed part', () => {
    const text = { format: { type: 'json_schema', name: 'n', schema: {} } };
    expect(read({ input: 'x', tools: [{ type: 'custom', name: 'f' }], text }).fixedJson).toEqual([
      '[{"type":"custom","name":"f"}]',
      JSON.stringify(text.format),
    ]);
    expect(read({ input: 'x', tools: [], text: {} }).fixedJson).toEqual([]);
  });

  test('that continues a response names it, SPEC 1.7', () => {
    const request = read({ input: [output('call_1', 'ok')], previous_response_id: 'resp_1' });
    expect(request).toMatchObject({ continues: 'resp_1', selfContained: false, messages: [{ role: 'tool' }] });
    expect(read({ input: 'x', previous_response_id: null })).toMatchObject({ continues: null, selfContained: true });
  });

  test('of the AI SDK names the items it refers to by their places, and groups none, SPEC 1.7', () => {
    const request = read({ input: references });
    expect(request.instructions).toHaveLength(1);
    expect([...request.references]).toEqual([
      [1, 'rs_db52'],
      [2, 'msg_70f4'],
    ]);
    expect(request.messages).toHaveLength(references.length - 1);
    expect(request.selfContained).toBe(false);
    // The type may be left out, and reasoning before a reference stays by itself.
    const bare = read({ input: [user('x'), thought('a'), { id: 'msg_1' }, { id: 'msg_2', type: null }] });
    expect([...bare.references]).toEqual([
      [2, 'msg_1'],
      [3, 'msg_2'],
    ]);
  });

  test('can ask for a compaction at its end, and only there', () => {
    const trigger = { type: 'compaction_trigger' };
    const request = read({ ...codex, input: [...codex.input, trigger] });
    expect(request.asksToCompact).toBe(true);
    expect(request.messages).toEqual(read(codex).messages);
    expect(read({ input: [user('x'), trigger, user('y')] })).toMatchObject({ asksToCompact: false });
    expect(read({ input: [user('x'), thought('a'), trigger] }).messages).toMatchObject([{}, { reasoning: 'a' }]);
  });

  test.each([
    [{ type: 'function', name: 'f' }, true],
    [{ type: 'custom', name: 'f' }, true],
    [{ type: 'namespace', name: 'n', tools: [] }, true],
    [{ type: 'local_shell' }, true],
    [{ type: 'apply_patch' }, true],
    [{ type: 'computer' }, true],
    [{ type: 'tool_search' }, true],
    [{ type: 'shell' }, true],
    [{ type: 'shell', environment: { type: 'local' } }, true],
    [{ type: 'shell', environment: { type: 'container_auto' } }, false],
    [{ type: 'web_search' }, false],
    [{ type: 'file_search' }, false],
    [{ type: 'mcp' }, false],
    [{ type: 'code_interpreter' }, false],
    [{ type: 'of_tomorrow' }, false],
  ])('with the tool %j shows all that the model reads: %s, SPEC 7.9', (tool, isAll) => {
    expect(read({ input: 'x', tools: [tool] }).selfContained).toBe(isAll);
  });

  test('with a stored prompt does not show all that the model reads, SPEC 7.9', () => {
    expect(read({ input: 'x', prompt: { id: 'pmpt_1' } }).selfContained).toBe(false);
  });

  test.each([
    ['in a conversation that the provider holds', { input: 'x', conversation: 'conv_1' }],
    ['in one named by an object', { input: 'x', conversation: { id: 'conv_1' } }],
    ['that runs in the background', { input: 'x', background: true }],
    ['that is no object', 'x'],
    ['without an input', { model: 'm' }],
    ['with an input of a wrong type', { input: 7 }],
    ['with instructions alone', { input: [{ role: 'system', content: 'x' }] }],
    ['with a compaction to ask for and nothing else', { input: [{ type: 'compaction_trigger' }] }],
    ['with an unknown role', { input: [{ role: 'critic', content: 'x' }] }],
    ['with content of a wrong type', { input: [user(7)] }],
    ['with a part without a type', { input: [user([{ text: 'x' }])] }],
    ['with a text part without text', { input: [user([{ type: 'input_text' }])] }],
    ['with an item that is no object', { input: ['x'] }],
    ['with an item of no kind', { input: [user('x'), {}] }],
    ['with an item of a wrong type', { input: [user('x'), { type: 7, id: 'x' }] }],
    ['with a call without an id', { input: [user('x'), { type: 'function_call', name: 'f', arguments: '' }] }],
    ['with a call without a name', { input: [user('x'), { type: 'custom_tool_call', call_id: 'c' }] }],
    ['with a result without a call', { input: [user('x'), { type: 'function_call_output', output: '' }] }],
    ['with instructions of a wrong type', { instructions: ['x'], input: 'x' }],
    ['with a model of a wrong type', { model: 7, input: 'x' }],
    ['with a stream of a wrong type', { stream: 'yes', input: 'x' }],
    ['that continues no string', { previous_response_id: 7, input: 'x' }],
  ])('%s is the provider’s to judge', (_name, body) => {
    expect(responses.read(body)).toBeNull();
  });

  test('with nulls and a background of false is read', () => {
    expect(read({ input: 'x', conversation: null, background: false, prompt: null, tools: null })).toMatchObject({
      selfContained: true,
    });
  });

  test('nested beyond all reason is not read', () => {
    const deep = JSON.parse(`{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`);
    expect(() => responses.read({ input: [user('x'), { type: 'brand_new', deep }] })).not.toThrow();
  });
});

describe('what real clients rewrite between turns is no other history, SPEC 1.3', () => {
  test.each(Object.entries(secondInputs))('%s', (_client, input) => {
    expect(ids(input)).toEqual(ids(plain));
  });

  test('the reply and what clients send back of it are the same nodes', () => {
    const reply = responses.readReply({ id: 'resp_1', status: 'completed', output: firstOutput });
    expect(chainIds(hash, 'root', reply?.messages ?? [])).toEqual(
      chainIds(hash, 'root', read({ input: plain }).messages.slice(1, 4)),
    );
  });

  test.each([
    ['the item’s id', { id: 'ws_2' }],
    ['its status', { status: 'in_progress' }],
    ['who made it', { created_by: 'x' }],
    ['a client’s notes', { internal_chat_message_metadata_passthrough: { turn_id: '2' } }],
    ['members without a value', { error: null, note: '', list: [], map: {} }],
  ])('%s does not tell an item of the provider’s own tools from another', (_name, more) => {
    const search = {
      type: 'web_search_call',
      id: 'ws_1',
      status: 'completed',
      action: { query: 'tea', type: 'search' },
    };
    expect(idOf({ ...search, ...more })).toBe(idOf(search));
    expect(idOf({ ...search, action: { type: 'search', query: 'tea', sources: null } })).toBe(idOf(search));
    expect(idOf({ ...search, action: { query: 'coffee', type: 'search' } })).not.toBe(idOf(search));
  });

  test.each([
    ['the words', { ...plain[0], content: 'PROMPT one: run echo thrice' }, 0],
    ['a call’s arguments', { ...plain[3], arguments: '{}' }, 3],
    ['a call’s id', { ...plain[3], call_id: 'call_other' }, 3],
    ['a result', { ...plain[5], output: 'cleared' }, 5],
  ])('another text in %s is another history', (_name, item, at) => {
    const changed = plain.map((original, index) => (index === at ? item : original));
    expect(ids(changed).at(-1)).not.toBe(ids(plain).at(-1));
  });
});

describe('reasoning', () => {
  const said = { type: 'message', role: 'assistant', content: 'Done.' };

  test('belongs to the assistant’s item behind it and stays whole with it, SPEC 4.7', () => {
    const items = [
      user('x'),
      thought('a', { encrypted_content: 'zz' }),
      thought('b'),
      said,
      thought('c'),
      call('c1'),
      output('c1', ''),
    ];
    const { messages } = read({ input: items });
    expect(messages).toMatchObject([
      { role: 'user', signed: false },
      { role: 'llm', text: 'Done.', reasoning: 'a\nb', signed: true, source: items.slice(1, 4) },
      { role: 'llm', reasoning: 'c', signed: false, calls: [{ id: 'c1' }], source: items.slice(4, 6) },
      { role: 'tool', source: items[6] },
    ]);
    for (const one of messages) expect(message(one.source)).toEqual(one);
  });

  test('is no part of identity', () => {
    expect(idOf([thought('a', { encrypted_content: 'zz' }), said])).toBe(idOf(said));
  });

  test('behind which the assistant says nothing is a message of its own', () => {
    for (const next of [
      [],
      [user('y')],
      [output('c1', '')],
      [{ id: 'msg_1' }],
      [{ role: 'developer', content: 'z' }],
    ]) {
      const { messages } = read({ input: [user('x'), thought('a'), ...next] });
      expect(messages).toHaveLength(2 + next.length);
      expect(messages[1]).toMatchObject({ role: 'llm', text: '', reasoning: 'a', calls: [] });
    }
  });

  test('before an item of the provider’s own tools belongs to that', () => {
    const { messages } = read({
      input: [user('x'), thought('a'), { type: 'web_search_call', id: 'ws_1' }, thought('b'), said],
    });
    expect(messages).toMatchObject([
      {},
      { reasoning: 'a', media: [{ kind: 'other' }] },
      { reasoning: 'b', text: 'Done.' },
    ]);
  });

  test('is counted by its texts, and where they are withheld by a piece of what hides it', () => {
    expect(message(thought('a', { content: [{ type: 'reasoning_text', text: 'b' }] })).reasoning).toBe('a\nb');
    expect(message(thought('', { encrypted_content: 'x'.repeat(400) }))).toMatchObject({
      reasoning: 'x'.repeat(100),
      signed: true,
    });
    expect(message(thought('', { encrypted_content: null }))).toMatchObject({ reasoning: '', signed: false });
  });
});

describe('an item', () => {
  test.each([
    [call('c'), { id: 'c', name: 'look', arguments: '{}' }],
    [call('c', { arguments: { b: 1, a: 2 } }), { id: 'c', name: 'look', arguments: '{"a":2,"b":1}' }],
    [call('c', { arguments: null }), { id: 'c', name: 'look', arguments: '' }],
    [
      { type: 'custom_tool_call', call_id: 'c', name: 'sh', input: 'ls -l' },
      { id: 'c', name: 'sh', arguments: 'ls -l' },
    ],
    [
      {
        type: 'local_shell_call',
        id: 'l',
        call_id: 'c',
        status: 'completed',
        action: { type: 'exec', command: ['ls'], env: {} },
      },
      { id: 'c', name: 'local_shell_call', arguments: expect.stringContaining('{"command":["ls"],"type":"exec"}') },
    ],
    [
      { type: 'shell_call', call_id: 'c', action: { commands: ['ls'] } },
      { id: 'c', name: 'shell_call' },
    ],
    [
      { type: 'apply_patch_call', call_id: 'c', operation: { type: 'delete_file' } },
      { id: 'c', name: 'apply_patch_call' },
    ],
    [
      { type: 'computer_call', call_id: 'c', action: { type: 'wait' } },
      { id: 'c', name: 'computer_call' },
    ],
    [
      { type: 'tool_search_call', call_id: 'c', arguments: {} },
      { id: 'c', name: 'tool_search_call' },
    ],
    [
      { type: 'mcp_approval_request', id: 'mcpr_1', name: 'f', arguments: '{}' },
      { id: 'mcpr_1', name: 'mcp_approval_request' },
    ],
  ])('%j wants a result', (item, expected) => {
    expect(message(item)).toMatchObject({ role: 'llm', text: '', calls: [expected], results: [], source: item });
  });

  test.each([
    [output('c', 'ok'), 'ok'],
    [
      output('c', [
        { type: 'input_text', text: 'a' },
        { type: 'input_text', text: 'b' },
      ]),
      'ab',
    ],
    [{ type: 'custom_tool_call_output', call_id: 'c', output: 'ok' }, 'ok'],
    [{ type: 'local_shell_call_output', id: 'c', output: 'ok' }, 'ok'],
    [{ type: 'local_shell_call_output', id: 'l', call_id: 'c', output: 'ok' }, 'ok'],
    [{ type: 'apply_patch_call_output', call_id: 'c', status: 'completed', output: null }, ''],
    [
      {
        type: 'shell_call_output',
        call_id: 'c',
        output: [
          { stdout: 'a', stderr: 'no', outcome: { type: 'exit', exit_code: 1 } },
          { stdout: 'b', stderr: '', outcome: { type: 'timeout' } },
        ],
      },
      'a\nno\n(exit code 1)\nb\n(timeout)',
    ],
    [{ type: 'of_tomorrow_call_output', call_id: 'c', output: 'ok' }, 'ok'],
  ])('%j is the result of a call', (item, expected) => {
    expect(message(item)).toMatchObject({
      role: 'tool',
      text: '',
      results: [{ callId: 'c', text: expected }],
      media: [],
    });
  });

  test.each([
    [output('c', [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }]), { kind: 'image', data: 'AAAA' }],
    [
      { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: 'https://x/y' } },
      { kind: 'image', inline: false, data: 'https://x/y' },
    ],
    [
      { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'file_1' } },
      { kind: 'image', inline: false, data: 'file_1' },
    ],
    [{ type: 'tool_search_output', call_id: 'c', tools: [{ name: 'f' }] }, { kind: 'other' }],
    [{ type: 'mcp_approval_response', approval_request_id: 'c', approve: true }, { kind: 'other' }],
    [output('c', { rows: 7 }), { kind: 'other' }],
    [output('c', 7), { kind: 'other' }],
  ])('%j is a result that cannot be told in other words', (item, media) => {
    expect(message(item)).toMatchObject({ role: 'tool', results: [{ callId: 'c', text: '' }], media: [media] });
  });

  test.each([
    [
      { type: 'web_search_call', id: 'w', action: { type: 'search', query: 'tea' } },
      'web_search_call {"action":{"query":"tea","type":"search"}}',
    ],
    [
      { type: 'mcp_call', id: 'm', name: 'f', arguments: '{}', output: 'ok' },
      'mcp_call {"arguments":"{}","name":"f","output":"ok"}',
    ],
    [
      { type: 'tool_search_call', id: 't', call_id: null, execution: 'server' },
      'tool_search_call {"execution":"server"}',
    ],
    [{ type: 'compaction_trigger' }, 'compaction_trigger'],
    [{ type: 'program', id: 'p', call_id: 'c', code: '1' }, 'program {"call_id":"c","code":"1"}'],
    [{ type: 'brand_new', deep: [{ a: 1 }] }, 'brand_new {"deep":[{"a":1}]}'],
  ])('%j is kept as it is, whatever it may be', (item, name) => {
    const found = message(item);
    expect(found).toMatchObject({ role: 'llm', text: '', calls: [], results: [], source: item });
    expect(found.media).toMatchObject([{ kind: 'other', inline: true, name }]);
  });

  test('in which the provider keeps an earlier history stays like an instruction, each for itself (SPEC 4.8)', () => {
    const [one, other] = ['ENC1', 'ENC2'].map((encrypted_content) =>
      message({ type: 'compaction', encrypted_content }),
    );
    expect(one).toMatchObject({ role: 'system', source: { type: 'compaction', encrypted_content: 'ENC1' } });
    expect(other?.text).not.toBe(one?.text);
  });

  test('of an unknown kind that answers a call is a tool’s', () => {
    expect(message({ type: 'program_output', call_id: 'c', result: '1' })).toMatchObject({ role: 'tool', results: [] });
  });

  test('that is a picture the provider made is media', () => {
    const item = {
      type: 'image_generation_call',
      id: 'ig_1',
      status: 'completed',
      result: 'AAAA',
      output_format: 'webp',
    };
    expect(message(item)).toMatchObject({
      role: 'llm',
      media: [{ kind: 'image', inline: true, data: 'AAAA', mimeType: 'image/webp' }],
    });
  });

  test.each([
    [
      { type: 'input_image', image_url: 'https://x/y', detail: 'low' },
      { kind: 'image', data: 'https://x/y', detail: 'low' },
    ],
    [
      { type: 'input_image', file_id: 'file_1' },
      { kind: 'image', inline: false, data: 'file_1' },
    ],
    [
      { type: 'input_file', file_id: 'file_1' },
      { kind: 'file', inline: false, data: 'file_1' },
    ],
    [
      { type: 'input_file', file_url: 'https://x/y.pdf' },
      { kind: 'file', inline: false, data: 'https://x/y.pdf' },
    ],
    [
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' },
      { kind: 'file', inline: true, data: 'AAAA', name: 'a.pdf', mimeType: 'application/pdf' },
    ],
    [
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { kind: 'audio', inline: true, data: 'AAAA' },
    ],
    [
      { type: 'input_hologram', sides: 6 },
      { kind: 'other', data: '{"sides":6,"type":"input_hologram"}' },
    ],
  ])('with the part %j has media', (part, media) => {
    expect(message(user([{ type: 'input_text', text: 'See' }, part]))).toMatchObject({ text: 'See', media: [media] });
  });

  test('with a refusal says it', () => {
    const item = { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] };
    expect(message(item)).toMatchObject({ role: 'llm', text: 'No.' });
  });

  test('of a run of calls with approvals and shells is paired', () => {
    const { messages } = read({
      input: [
        user('x'),
        { type: 'mcp_approval_request', id: 'mcpr_1', name: 'f', arguments: '{}' },
        { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
        { type: 'shell_call', call_id: 's', action: { commands: ['ls'] } },
        { type: 'custom_tool_call', call_id: 'c', name: 'sh', input: '' },
        { type: 'custom_tool_call_output', call_id: 'c', output: '' },
        { type: 'shell_call_output', call_id: 's', output: [] },
      ],
    });
    expect(newFaults([], messages)).toEqual([]);
  });
});

test('a source is read by hand of its own: what is no item, or items that are no message, are not', () => {
  for (const source of [null, 'x', [], {}, [user('x'), user('y')], [user('x'), thought('a')], [['x']]]) {
    expect(responses.readMessage(source)).toBeNull();
  }
});

test('whatever the items, each belongs to one message, in order', () => {
  const item = fc.constantFrom(
    user('x'),
    thought('a'),
    call('c'),
    output('c', 'ok'),
    { id: 'msg_1' },
    { type: 'brand_new' },
    { role: 'assistant', content: 'y' },
    { role: 'developer', content: 'z' },
  );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 12 }), (items) => {
      const groups = groupsOf(items);
      expect(groups.flatMap(({ from, to }) => items.slice(from, to))).toEqual(items);
      for (const group of groups) {
        const found = message(sourceOf(items, group));
        // Reasoning never joins what is not the assistant's.
        if (group.to - group.from > 1) expect(found.role).toBe('llm');
        if (group.to - group.from > 1 || 'summary' in (items[group.from] ?? {})) expect(found.reasoning).not.toBe('');
      }
    }),
  );
});
