import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';

const text = 'Compacted 12 messages.\n"Done" 🙂';
const reply = { model: 'gpt-4o', id: '1', createdAt: 1_764_600_000_999 };

/** The official client, with our bytes as the provider's response. */
function clientOf(body: string, status: number, type: string): OpenAI {
  return new OpenAI({
    apiKey: 'none',
    maxRetries: 0,
    fetch: () => Promise.resolve(new Response(body, { status, headers: { 'content-type': type } })),
  });
}

const request = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: '/compact' }] };

describe('an answer of our own', () => {
  test('is a completion to the official client, and to us', async () => {
    const body = chatCompletions.answer(text, { ...reply, stream: false });
    const completion = await clientOf(body, 200, 'application/json').chat.completions.create(request);
    expect(completion).toMatchObject({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_764_600_000,
      model: 'gpt-4o',
    });
    expect(completion.choices).toMatchObject([
      { message: { role: 'assistant', content: text }, finish_reason: 'stop' },
    ]);
    expect(chatCompletions.readReply(JSON.parse(body))).toMatchObject({
      messages: [{ text }],
      finished: true,
      usage: null,
      error: null,
    });
  });

  test('streamed is a stream to the official client, and folds to the same message', async () => {
    const bytes = chatCompletions.answer(text, { ...reply, stream: true });
    const streamed = await clientOf(bytes, 200, 'text/event-stream')
      .chat.completions.stream(request)
      .finalChatCompletion();
    expect(streamed.choices).toMatchObject([{ message: { role: 'assistant', content: text }, finish_reason: 'stop' }]);
    const events = bytes
      .split('\n\n')
      .filter((event) => event !== '')
      .map((event) => event.replace(/^data: /, ''));
    expect(events.at(-1)).toBe('[DONE]');
    const folder = chatCompletions.folder();
    for (const event of events) folder.push(event, null);
    const whole = chatCompletions.readReply(JSON.parse(chatCompletions.answer(text, { ...reply, stream: false })));
    expect(folder.reply()).toEqual(whole);
  });

  test("an error is OpenAI's envelope, as its client reads it", async () => {
    const form = {
      status: 400,
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      message: 'Too long.',
      field: 'messages',
      overflow: null,
    };
    const body = chatCompletions.errorBody(form);
    expect(JSON.parse(body)).toEqual({
      error: {
        message: 'Too long.',
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    });
    await expect(clientOf(body, 400, 'application/json').chat.completions.create(request)).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
      param: 'messages',
      type: 'invalid_request_error',
    });
  });

  test('only `stop` is the normal stop', () => {
    expect(['stop', 'length', 'tool_calls', 'content_filter', 'error'].map(chatCompletions.isNormalStop)).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});
