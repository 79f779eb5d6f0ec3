import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/core/message.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import type { Reply } from '../../src/dialects/dialect.js';

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const optional = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined });
const call = fc.record({
  kind: fc.constantFrom('function', 'custom'),
  name: text,
  input: fc.string({ maxLength: 20 }),
});

/** What a model said in one choice. */
const choice = fc.record({
  content: optional(text),
  refusal: optional(text),
  reasoning: optional(text),
  calls: fc.array(call, { maxLength: 3 }),
  legacy: optional(fc.record({ name: text, arguments: fc.string() })),
  audio: optional(fc.constantFrom('audio_1')),
  finish: fc.constantFrom('stop', 'length', 'tool_calls'),
});
type Said = typeof choice extends fc.Arbitrary<infer Value> ? Value : never;

const wireCalls = (said: Said): object[] =>
  said.calls.map(({ kind, name, input }, index) => ({
    id: `call_${index}`,
    type: kind,
    [kind]: kind === 'custom' ? { name, input } : { name, arguments: input },
  }));

/** The choice in a whole reply, with the empty members a provider writes. */
const wholeMessage = (said: Said): object => ({
  role: 'assistant',
  content: said.content ?? null,
  refusal: said.refusal ?? null,
  ...(said.reasoning === undefined ? {} : { reasoning_content: said.reasoning }),
  ...(said.calls.length > 0 ? { tool_calls: wireCalls(said) } : {}),
  ...(said.legacy === undefined ? {} : { function_call: said.legacy }),
  ...(said.audio === undefined ? {} : { audio: { id: said.audio, data: 'AAAA', transcript: 'hello', expires_at: 1 } }),
  annotations: [],
});

const split = (value: string, sizes: readonly number[]): string[] => {
  const pieces: string[] = [];
  for (let at = 0, turn = 0; at < value.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    pieces.push(value.slice(at, at + size));
    at += size;
  }
  return pieces;
};

/** The choice as deltas: texts in pieces, calls by index, the pieces of parallel calls taking turns. */
function deltas(said: Said, sizes: readonly number[]): object[] {
  const pieces = (value: string | undefined, wrap: (piece: string) => object): object[] =>
    split(value ?? '', sizes).map(wrap);
  const perCall = said.calls.map(({ kind, name, input }, index) => {
    const member = kind === 'custom' ? 'input' : 'arguments';
    const opening = { index, id: `call_${index}`, type: kind, [kind]: { name, [member]: '' } };
    return [opening, ...split(input, sizes).map((piece) => ({ index, [kind]: { [member]: piece } }))];
  });
  const longest = Math.max(0, ...perCall.map((list) => list.length));
  const callDeltas = Array.from({ length: longest }, (_, turn) => ({
    tool_calls: perCall.flatMap((list) => list.slice(turn, turn + 1)).toReversed(),
  }));
  const legacy = said.legacy;
  return [
    { role: 'assistant', content: '', refusal: null },
    ...pieces(said.reasoning, (piece) => ({ reasoning_content: piece })),
    ...pieces(said.content, (piece) => ({ content: piece })),
    ...pieces(said.refusal, (piece) => ({ refusal: piece })),
    ...callDeltas,
    ...(legacy === undefined ? [] : [{ function_call: { name: legacy.name, arguments: '' } }]),
    ...pieces(legacy?.arguments, (piece) => ({ function_call: { arguments: piece } })),
    ...(said.audio === undefined
      ? []
      : [
          { audio: { id: said.audio, transcript: 'hel' } },
          { audio: { id: null, data: 'AA' } },
          { audio: { expires_at: 1 } },
        ]),
  ];
}

const usage = {
  prompt_tokens: 12,
  completion_tokens: 5,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 4 },
};

const withoutSource = (message: Message | null | undefined): unknown => ({ ...message, source: null });

function fold(events: readonly object[], choices = 1): Reply {
  const folder = chatCompletions.folder(choices);
  for (const event of events) folder.push(JSON.stringify(event), null);
  folder.push('[DONE]', null);
  return folder.reply();
}

const delta = (value: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: value, finish_reason: finish }],
});

describe('folding', () => {
  test('a stream folds to the reply of the whole form, and that reads like the echo of a client', () => {
    fc.assert(
      fc.property(
        fc.array(choice, { minLength: 1, maxLength: 3 }),
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }),
        fc.infiniteStream(fc.nat()),
        (choices, sizes, order) => {
          const whole = chatCompletions.readReply({
            object: 'chat.completion',
            choices: choices
              .map((said, index) => ({
                index,
                message: wholeMessage(said),
                finish_reason: said.finish,
                logprobs: null,
              }))
              .toReversed(),
            usage,
          });
          const queues = choices.map((said, index) => [
            ...deltas(said, sizes).map((value) => ({ index, delta: value, finish_reason: null, logprobs: null })),
            { index, delta: {}, finish_reason: said.finish },
          ]);
          const folder = chatCompletions.folder(choices.length);
          // The choices take turns at random; each keeps its own order.
          for (let left = queues.flat().length; left > 0; left--) {
            expect(folder.reply().finished).toBe(false);
            const open = queues.filter((queue) => queue.length > 0);
            const next = open[order.next().value % open.length]?.shift();
            folder.push(JSON.stringify({ choices: [next], usage: null }), null);
          }
          expect(folder.push(JSON.stringify({ choices: [], usage }), null).usageOnly).toBe(true);
          const folded = folder.reply();
          expect(folded).toEqual(whole);
          expect(folded.finished).toBe(true);
          expect(folded.usage).toEqual({ inputTokens: 12, outputTokens: 5, cachedTokens: 4, reasoningTokens: null });
          choices.forEach((said, index) => {
            const message = folded.messages[index];
            expect(withoutSource(chatCompletions.readMessage(wholeMessage(said)))).toEqual(withoutSource(message));
            // The folded wire form itself, sent back, is the same message again.
            expect(chatCompletions.readMessage(JSON.parse(JSON.stringify(message?.source)))).toEqual(message);
          });
        },
      ),
      { numRuns: 120 },
    );
  });

  test('the wire form is what a provider accepts back: no empty members, no positions, audio by id', () => {
    const reply = fold([
      delta({ role: 'assistant', content: null, refusal: null }),
      delta({
        tool_calls: [
          {
            index: 0,
            id: 'c',
            type: 'function',
            function: { name: 'f', arguments: '{}' },
            extra_content: { google: { thought_signature: 's' } },
          },
        ],
      }),
      delta({ audio: { id: 'audio_1', data: 'AAAA' } }, 'tool_calls'),
    ]);
    expect(reply.messages[0]).toMatchObject({ signed: true });
    expect(reply.messages[0]?.source).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'c',
          type: 'function',
          function: { name: 'f', arguments: '{}' },
          extra_content: { google: { thought_signature: 's' } },
        },
      ],
      audio: { id: 'audio_1' },
    });
  });

  test('what was not asked for twice is not finished before it began', () => {
    const folder = chatCompletions.folder(2);
    folder.push(JSON.stringify(delta({ content: 'x' }, 'stop')), null);
    expect(folder.reply()).toMatchObject({ finished: false, stopReason: 'stop' });
    folder.push(JSON.stringify({ choices: [{ index: 1, delta: { content: 'y' }, finish_reason: 'length' }] }), null);
    expect(folder.reply()).toMatchObject({
      finished: true,
      stopReason: 'stop',
      messages: [{ text: 'x' }, { text: 'y' }],
    });
  });

  test('nothing said is no message; a stop without a word is an empty one', () => {
    expect(fold([]).messages).toEqual([]);
    expect(fold([delta({ role: 'assistant', content: '' })]).messages).toEqual([]);
    expect(fold([delta({ role: 'assistant', content: '' }, 'stop')]).messages).toMatchObject([
      { text: '', source: { role: 'assistant', content: '' } },
    ]);
  });

  test('a whole message in place of deltas is taken once, and never after deltas', () => {
    const message = { role: 'assistant', content: 'all' };
    const whole = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
    expect(fold([whole, whole]).messages).toMatchObject([{ text: 'all' }]);
    expect(fold([delta({ content: 'al' }), delta({ content: 'l' }), whole]).messages).toMatchObject([{ text: 'all' }]);
  });

  test('blocks without a position go on until one is signed', () => {
    const block = (members: object): object => delta({ thinking_blocks: [{ type: 'thinking', ...members }] });
    const reply = fold([
      block({ thinking: 'a' }),
      block({ thinking: 'b' }),
      block({ thinking: '', signature: 's' }),
      block({ thinking: 'c' }),
    ]);
    expect(reply.messages[0]?.source).toMatchObject({
      thinking_blocks: [
        { type: 'thinking', thinking: 'ab', signature: 's' },
        { type: 'thinking', thinking: 'c' },
      ],
    });
  });

  test('signed reasoning in pieces becomes the blocks of the whole form', () => {
    const reply = fold([
      delta({ reasoning: 'I ', reasoning_details: [{ type: 'reasoning.text', text: 'I ', index: 0, format: 'f' }] }),
      delta({
        reasoning: 'think',
        reasoning_details: [{ type: 'reasoning.text', text: 'think', index: 0, format: 'f' }],
      }),
      delta({ reasoning_details: [{ type: 'reasoning.text', signature: 'sig', index: 0 }] }),
      delta({ reasoning_details: [{ type: 'reasoning.text', text: 'Then', index: 1 }] }),
      delta({ reasoning_details: [{ type: 'reasoning.text', text: 'Last', index: 2 }] }),
      delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'xx', index: 3 }] }),
      delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'a' }] }] }),
      delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'b' }] }] }),
      delta({ content: 'so ' }),
      delta({ content: 'it is' }, 'stop'),
    ]);
    expect(reply.messages[0]).toMatchObject({ text: 'so it is', reasoning: 'I think', signed: true });
    expect(reply.messages[0]?.source).toEqual({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'ab' }] },
        { type: 'text', text: 'so it is' },
      ],
      reasoning: 'I think',
      reasoning_details: [
        { type: 'reasoning.text', text: 'I think', index: 0, format: 'f', signature: 'sig' },
        { type: 'reasoning.text', text: 'Then', index: 1 },
        { type: 'reasoning.text', text: 'Last', index: 2 },
        { type: 'reasoning.encrypted', data: 'xx', index: 3 },
      ],
    });
  });
});

describe('tool calls of vendors that stray from the form', () => {
  const callsOf = (...lists: object[][]): unknown =>
    fold(lists.map((tool_calls) => delta({ tool_calls }))).messages[0]?.calls;
  const piece = (members: object, fn: object): object => ({ ...members, function: fn });

  test('id and name resent with every piece are one call', () => {
    expect(
      callsOf(
        [piece({ index: 0, id: 'a' }, { name: 'f', arguments: '{' })],
        [piece({ index: 0, id: 'a' }, { name: 'f', arguments: '}' })],
      ),
    ).toEqual([{ id: 'a', name: 'f', arguments: '{}' }]);
  });

  test('an invented id on each nameless piece does not begin a call', () => {
    expect(
      callsOf([piece({ index: 0, id: 'a' }, { name: 'f' })], [piece({ index: 0, id: 'b' }, { arguments: '{}' })]),
    ).toEqual([{ id: 'a', name: 'f', arguments: '{}' }]);
  });

  test('parallel calls that all say index 0 are told apart by their ids', () => {
    expect(
      callsOf([
        piece({ index: 0, id: 'a' }, { name: 'f', arguments: '1' }),
        piece({ index: 0, id: 'b' }, { name: 'f', arguments: '2' }),
      ]),
    ).toEqual([
      { id: 'a', name: 'f', arguments: '1' },
      { id: 'b', name: 'f', arguments: '2' },
    ]);
  });

  test('without an index pieces go by id, else to the last call, and a name begins one', () => {
    expect(
      callsOf(
        [piece({ id: 'a' }, { name: 'f', arguments: '' }), piece({ id: 'b' }, { name: 'g', arguments: '' })],
        [piece({ id: 'a' }, { arguments: '1' })],
        [piece({}, { arguments: '2' })],
        [piece({}, { name: 'h', arguments: '3' })],
      ),
    ).toEqual([
      { id: 'a', name: 'f', arguments: '1' },
      { id: 'b', name: 'g', arguments: '2' },
      { id: '', name: 'h', arguments: '3' },
    ]);
  });
});

describe('what an event means, SPEC 6.3', () => {
  const meaning = (event: unknown, name: string | null = null) =>
    chatCompletions.folder().push(typeof event === 'string' ? event : JSON.stringify(event), name);
  const none = { hasContent: false, usageOnly: false, hasError: false, ends: false };

  test.each([
    ['a role', delta({ role: 'assistant' })],
    [
      'a role with empty everything',
      delta({ role: 'assistant', content: '', refusal: null, tool_calls: [], audio: null, function_call: {} }),
    ],
    ['an empty delta and a stop', delta({}, 'stop')],
    ['an Azure filter report', { choices: [], prompt_filter_results: [{ prompt_index: 0 }] }],
    ['a filter report with usage', { choices: [], usage, prompt_filter_results: [{ prompt_index: 0 }] }],
    ['usage beside a choice', { ...delta({ role: 'assistant', content: '' }), usage }],
    ['no choices', { id: 'x', choices: null }],
    ['no JSON', 'not json'],
    ['a JSON literal', '7'],
  ])('%s is no content', (_name, event) => {
    expect(meaning(event)).toEqual(none);
  });

  test.each([
    ['text', { content: 'x' }],
    ['white space', { content: ' ' }],
    ['reasoning', { reasoning_content: 'x' }],
    ['reasoning under its other name', { reasoning: 'x' }],
    ['a refusal', { refusal: 'x' }],
    ['a tool call', { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] }],
    ['a legacy call', { function_call: { name: 'f' } }],
    ['audio', { audio: { data: 'AAAA' } }],
    ['an image', { images: [{ type: 'image_url' }] }],
    ['a kind of delta we do not know', { hologram: 'x' }],
  ])('%s is content', (_name, value) => {
    expect(meaning(delta(value))).toEqual({ ...none, hasContent: true });
  });

  test('usage alone, an error and the end are what they are', () => {
    expect(meaning({ choices: [], usage })).toEqual({ ...none, usageOnly: true });
    expect(meaning({ error: { message: 'm', code: 400 } })).toEqual({ ...none, hasError: true });
    expect(meaning({ object: 'error', message: 'm', code: 400 })).toEqual({ ...none, hasError: true });
    expect(meaning('overloaded', 'error')).toEqual({ ...none, hasError: true });
    // Without an envelope: no chunk, but a message or a vendor's own status.
    expect(meaning({ type: 'error', error_message: '{"error":{}}' })).toEqual({ ...none, hasError: true });
    expect(meaning({ message: 'Input is too long' })).toEqual({ ...none, hasError: true });
    expect(meaning({ choices: null, base_resp: { status_code: 2013 } })).toEqual({ ...none, hasError: true });
    expect(meaning({ choices: [], base_resp: { status_code: 0, status_msg: '' } })).toEqual(none);
    expect(meaning({ type: 'ping' })).toEqual(none);
    expect(meaning(' [DONE] ')).toEqual({ ...none, ends: true });
  });

  test('an error keeps the form an HTTP error has, and what has one never finishes', () => {
    const error = {
      message: 'too long',
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'messages',
    };
    const reply = fold([
      delta({ content: 'x' }),
      { error, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] },
    ]);
    expect(reply).toMatchObject({ finished: false, stopReason: 'error', messages: [{ text: 'x' }] });
    expect(JSON.parse(reply.error ?? '')).toEqual({ error });
  });

  test('strange events never throw', () => {
    const odd = fc.jsonValue().map((value) => {
      const members = {
        content: value,
        tool_calls: [value],
        audio: value,
        reasoning_details: [value],
        function_call: value,
      };
      return JSON.stringify(delta(members));
    });
    const choices = fc.jsonValue().map((value) => JSON.stringify({ choices: [value] }));
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.json(), fc.string(), choices, odd)), (events) => {
        const folder = chatCompletions.folder();
        for (const event of events) folder.push(event, null);
        folder.reply();
      }),
      { numRuns: 120 },
    );
  });

  test('what nests deeper than the stack is content that cannot be read', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    const folder = chatCompletions.folder();
    expect(folder.push(`{"choices":[{"delta":{"odd":${deep}},"finish_reason":"stop"}]}`, null).hasContent).toBe(true);
    expect(folder.push(`{"error":${deep}}`, null).hasContent).toBe(true);
    expect(folder.reply()).toMatchObject({ messages: [], finished: true, unread: 'too_deep' });
    const after = chatCompletions.folder();
    after.push(`{"error":${deep}}`, null);
    after.push('{"choices":[{"delta":{"content":"Aye."},"finish_reason":"stop"}]}', null);
    expect(after.reply()).toMatchObject({ messages: [{ text: 'Aye.' }], finished: true, unread: 'too_deep' });
  });

  test('a chunk that came garbled leaves a gap in the reply, and words in place of a chunk leave none, SPEC 2.3', () => {
    const folder = chatCompletions.folder();
    for (const words of ['ping', '', '[]']) folder.push(words, null);
    expect(folder.reply().unread).toBeNull();
    folder.push('{"choices":[{"delta":{"content":"fir', null);
    expect(folder.reply().unread).toBe('malformed');
  });

  test('a message that cannot be read leaves a gap in a whole reply, SPEC 2.3', () => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 7 }, finish_reason: 'stop' }];
    expect(chatCompletions.readReply({ choices })).toMatchObject({ messages: [], unread: 'malformed' });
  });
});

describe('a whole reply', () => {
  test.each([
    ['nothing', null],
    ['an array', []],
    ['another object', { object: 'list', data: [] }],
  ])('%s is not one', (_name, body) => {
    expect(chatCompletions.readReply(body)).toBeNull();
  });

  test('an error inside a 200 is told, at the top or in a choice', () => {
    const error = { message: 'm', code: 502 };
    expect(chatCompletions.readReply({ error })).toEqual({
      messages: [],
      follows: false,
      references: [],
      stopReason: null,
      finished: false,
      usage: null,
      unread: null,
      error: JSON.stringify({ error }),
    });
    const inChoice = {
      choices: [{ index: 0, message: { role: 'assistant', content: 'half' }, finish_reason: 'error', error }],
    };
    expect(chatCompletions.readReply(inChoice)).toMatchObject({
      finished: false,
      error: JSON.stringify({ error }),
      messages: [{ text: 'half' }],
    });
  });

  test.each([
    [null, null],
    [{}, null],
    [{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, null],
    [{ prompt_tokens: 7 }, { inputTokens: 7, outputTokens: null, cachedTokens: null, reasoningTokens: null }],
    [
      { prompt_tokens: 7, completion_tokens: 0 },
      { inputTokens: 7, outputTokens: 0, cachedTokens: null, reasoningTokens: null },
    ],
    [
      { prompt_tokens: 0, completion_tokens: 3 },
      { inputTokens: null, outputTokens: 3, cachedTokens: null, reasoningTokens: null },
    ],
    [{ prompt_tokens: '7', completion_tokens: -1 }, null],
    [
      {
        prompt_tokens: 9,
        completion_tokens: 3,
        prompt_tokens_details: { cached_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 2 },
      },
      { inputTokens: 9, outputTokens: 3, cachedTokens: 0, reasoningTokens: 2 },
    ],
    [
      { prompt_tokens: 9, completion_tokens: 3, prompt_cache_hit_tokens: 8 },
      { inputTokens: 9, outputTokens: 3, cachedTokens: 8, reasoningTokens: null },
    ],
  ])('usage %j is %j: zero or absent is unknown, SPEC 9.4', (reported, expected) => {
    const body = {
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage: reported,
    };
    expect(chatCompletions.readReply(body)?.usage).toEqual(expected);
  });
});
