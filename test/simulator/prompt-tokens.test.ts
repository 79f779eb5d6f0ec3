import { describe, expect, test } from 'vitest';
import { readChatRequest } from '../../src/simulator/chat-request.js';
import { chatPromptTokens } from '../../src/simulator/prompt-tokens.js';
import { rememberingCounter } from '../../src/simulator/remembering-counter.js';
import { exactCounter } from './simulate.js';

const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } };
const AUDIO = { type: 'input_audio', input_audio: { data: 'BBBB', format: 'wav' } };
const FILE = { type: 'file', file: { filename: 'a.pdf', file_id: 'file-1' } };

async function count(messages: readonly unknown[], more: object = {}) {
  const counter = await exactCounter();
  const media: unknown[] = [];
  const request = readChatRequest({ model: 'm', messages, ...more });
  if ('kind' in request) throw new Error('the request is refused');
  const tokens = chatPromptTokens(request, {
    ...counter,
    countMedia: (part) => {
      media.push(part);
      return 1000;
    },
  });
  return { ...tokens, media };
}

describe('a prompt is counted by the documented recipe', () => {
  test('3 tokens a message, every string member, 1 a name, 3 to prime the reply', async () => {
    const counter = await exactCounter();
    const content =
      'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.';
    const { messages, functions } = await count([
      { role: 'system', content },
      { role: 'user', name: 'example_user', content: 'New synergies will help drive top-line growth.' },
    ]);
    const texts = ['system', content, 'user', 'example_user', 'New synergies will help drive top-line growth.'];
    expect(messages).toBe(3 + 3 + 3 + 1 + texts.reduce((sum, text) => sum + counter.count(text), 0));
    expect(functions).toBe(0);
  });

  test('tools, functions and the response schema count as JSON text', async () => {
    const counter = await exactCounter();
    const schema = { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } };
    const { functions } = await count([{ role: 'user', content: 'x' }], { tools: TOOLS, response_format: schema });
    expect(functions).toBe(counter.count(JSON.stringify(TOOLS)) + counter.count(JSON.stringify(schema)));
  });

  test('in parts: tools and response schema first, then message by message, which add up to all but the priming', async () => {
    const schema = { type: 'json_object' };
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hello there' },
    ];
    const prompt = await count(messages, { response_format: schema, tools: TOOLS });
    expect(prompt.parts.map(({ text }) => JSON.parse(text))).toEqual([TOOLS, schema, ...messages]);
    const sum = prompt.parts.reduce((tokens, part) => tokens + part.tokens, 0);
    expect(sum + 3).toBe(prompt.messages + prompt.functions);
  });

  test('text parts count as their text, tool calls as JSON text', async () => {
    const text = await count([{ role: 'user', content: 'Hello there' }]);
    const parts = await count([{ role: 'user', content: [{ type: 'text', text: 'Hello there' }] }]);
    expect(parts.messages).toBe(text.messages);
    const counter = await exactCounter();
    const calls = [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"sea"}' } }];
    const calling = await count([{ role: 'assistant', content: null, tool_calls: calls }]);
    expect(calling.messages).toBe(3 + 3 + counter.count('assistant') + counter.count(JSON.stringify(calls)));
  });

  test('media count by the rule of the counter, which is told what they are', async () => {
    const { messages, media } = await count([{ role: 'user', content: [IMAGE, AUDIO, FILE] }]);
    expect(messages).toBe(3 + 3 + 1 + 3 * 1000);
    expect(media).toEqual([
      { kind: 'image', inline: true, data: 'AAAA', mimeType: 'image/png', name: null, detail: 'low' },
      { kind: 'audio', inline: true, data: 'BBBB', mimeType: 'audio/wav', name: null, detail: null },
      { kind: 'file', inline: false, data: 'file-1', mimeType: null, name: 'a.pdf', detail: null },
    ]);
  });
});

test('a text is counted once, and again once very many others came between', () => {
  let counted = 0;
  const counter = rememberingCounter({
    tokenizer: 'letters',
    count: (text) => ((counted += 1), text.length),
    countMedia: () => 0,
  });
  expect([counter.count('abc'), counter.count('abc')]).toEqual([3, 3]);
  expect(counted).toBe(1);
  for (let index = 0; index < 20_000; index += 1) counter.count(`text ${index}`);
  expect(counter.count('abc')).toBe(3);
  expect(counted).toBe(20_002);
});
