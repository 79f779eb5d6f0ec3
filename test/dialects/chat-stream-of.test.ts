import { describe, expect, it } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';

const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };

function completion(choices: readonly object[], more: object = {}): Record<string, unknown> {
  return { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices, usage, ...more };
}

const call = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{"path":"a"}' } });

const replies: Readonly<Record<string, Record<string, unknown>>> = {
  text: completion([
    { index: 0, message: { role: 'assistant', content: 'Aye.', refusal: null }, finish_reason: 'stop' },
  ]),
  'parallel calls': completion([
    {
      index: 0,
      message: { role: 'assistant', content: null, tool_calls: [call('a', 'read'), call('b', 'read')] },
      finish_reason: 'tool_calls',
    },
  ]),
  'two choices': completion([
    { index: 1, message: { role: 'assistant', content: 'Second' }, finish_reason: 'length' },
    { index: 0, message: { role: 'assistant', content: 'First' }, finish_reason: 'stop' },
  ]),
  reasoning: completion([
    { index: 0, message: { role: 'assistant', content: 'Aye.', reasoning_content: 'Hm.' }, finish_reason: 'stop' },
  ]),
  'an old function call': completion([
    {
      index: 0,
      message: { role: 'assistant', content: null, function_call: { name: 'read', arguments: '{}' } },
      finish_reason: 'function_call',
    },
  ]),
};

function eventsOf(stream: string | null): readonly string[] {
  return (stream ?? '')
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''));
}

describe('a whole completion as a stream', () => {
  it.each(Object.entries(replies))('folds to the same reply, SPEC 6.6: %s', (_, body) => {
    const folder = chatCompletions.folder(Array.isArray(body['choices']) ? body['choices'].length : 1);
    for (const event of eventsOf(chatCompletions.streamOf(JSON.stringify(body), { includesUsage: true }))) {
      folder.push(event, null);
    }
    expect(folder.reply()).toEqual(chatCompletions.readReply(body));
  });

  it('says role and content, the stop reason, the usage, and that it is done', () => {
    const body = completion(
      [{ index: 0, message: { role: 'assistant', content: 'Aye.' }, logprobs: null, finish_reason: 'stop' }],
      { system_fingerprint: 'fp' },
    );
    const events = eventsOf(chatCompletions.streamOf(JSON.stringify(body), { includesUsage: true }));
    const head = {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      system_fingerprint: 'fp',
    };
    expect(events.at(-1)).toBe('[DONE]');
    expect(events.slice(0, -1).map((event): unknown => JSON.parse(event))).toEqual([
      {
        ...head,
        choices: [{ index: 0, delta: { role: 'assistant', content: 'Aye.' }, logprobs: null, finish_reason: null }],
      },
      { ...head, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { ...head, choices: [], usage },
    ]);
  });

  it('tells no usage that was not asked for', () => {
    const stream = chatCompletions.streamOf(JSON.stringify(replies['text']), { includesUsage: false });
    expect(stream).not.toContain('usage');
    expect(stream).toContain('Aye.');
  });

  it.each([
    '',
    'no JSON',
    '[]',
    '{}',
    '{"error":{"message":"no"}}',
    '{"choices":[7]}',
    '{"choices":[{"error":{"message":"no"}}]}',
    '{"object":"error","message":"no","choices":null}',
  ])('is none where the body is no completion: %s', (body) => {
    expect(chatCompletions.streamOf(body, { includesUsage: true })).toBeNull();
  });
});
