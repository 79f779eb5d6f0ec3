import { describe, expect, test } from 'vitest';
import { OPENAI_OVERFLOW } from '../../src/simulator/chat-format.js';
import { contextLengthExceeded, openaiError } from '../../src/simulator/openai-errors.js';
import { say } from '../../src/simulator/reply-plan.js';
import { windowOf } from '../../src/simulator/windows.js';
import { eventsOf, jsonOf, postChat, simulate } from './simulate.js';

// 3 to prime, 3 for the message, 1 for each of "user" and "Hello".
const PROMPT_TOKENS = 8;
const request = (more: object = {}) => ({ model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...more });

describe('the window of a model', () => {
  test('is that of the first pattern that matches the whole name, special characters taken literally', () => {
    const windows = { 'gpt-4.1': 1, 'gpt-4*': 2, '*/llama*': 3, '*': 4 };
    const models = ['gpt-4.1', 'gpt-4x1', 'gpt-4', 'meta/llama-3', 'llama'];
    expect(models.map((model) => windowOf(windows, model))).toEqual([1, 2, 2, 3, 4]);
    expect(windowOf({ 'gpt-*': 1 }, 'my-gpt-4')).toBeNull();
  });

  test('lets a prompt in that fills it, and refuses one token more', async () => {
    const full = await simulate({ windows: { m: PROMPT_TOKENS } });
    expect((await postChat(full, request())).status).toBe(200);
    const small = await simulate({ windows: { m: PROMPT_TOKENS - 1 } });
    expect((await postChat(small, request())).status).toBe(400);
    expect(small.requests[0]).toMatchObject({ promptTokens: PROMPT_TOKENS, status: 400, reply: null });
  });

  test('is shared by prompt and explicit output limit', async () => {
    const simulator = await simulate({ windows: { m: PROMPT_TOKENS + 10 } });
    const statusWith = async (cap: object) => (await postChat(simulator, request(cap))).status;
    expect(await statusWith({ max_tokens: 10 })).toBe(200);
    expect(await statusWith({ max_tokens: 11 })).toBe(400);
    expect(await statusWith({ max_completion_tokens: 11 })).toBe(400);
    expect(await statusWith({ max_tokens: null })).toBe(200);
  });

  test('cuts a reply that would not fit into what is left', async () => {
    const simulator = await simulate({ windows: { m: PROMPT_TOKENS + 2 }, script: () => say('one two three') });
    const { choices, usage } = await jsonOf(await postChat(simulator, request()));
    expect(choices[0]).toMatchObject({ message: { content: 'one two' }, finish_reason: 'length' });
    expect(usage.total_tokens).toBe(PROMPT_TOKENS + 2);
  });

  test('may change from one request to the next', async () => {
    let window = 1;
    const simulator = await simulate({ windows: () => window });
    expect((await postChat(simulator, request())).status).toBe(400);
    window = 100;
    expect((await postChat(simulator, request())).status).toBe(200);
  });
});

describe('a refusal for want of room', () => {
  const overflow = { limitTokens: 4097, messageTokens: 4294, functionTokens: 0, outputCap: null };
  const sentence = (more: object) =>
    JSON.parse(JSON.stringify(contextLengthExceeded({ ...overflow, ...more }).body)).error.message;

  test('has the exact form of OpenAI for messages', () => {
    expect(contextLengthExceeded(overflow)).toMatchObject({
      status: 400,
      body: {
        error: {
          message:
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens. Please reduce the length of the messages.",
          type: 'invalid_request_error',
          param: 'messages',
          code: 'context_length_exceeded',
        },
      },
    });
  });

  test('has the exact form of OpenAI for messages and completion, and with functions', () => {
    expect(sentence({ limitTokens: 8192, messageTokens: 64, outputCap: 8192 })).toBe(
      "This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    );
    expect(sentence({ functionTokens: 100 })).toBe(
      "This model's maximum context length is 4097 tokens. However, your messages resulted in 4394 tokens (4294 in the messages, 100 in the functions). Please reduce the length of the messages or functions.",
    );
    expect(sentence({ functionTokens: 106, outputCap: 4000 })).toBe(
      "This model's maximum context length is 4097 tokens. However, you requested 8400 tokens (4294 in the messages, 106 in the functions, and 4000 in the completion). Please reduce the length of the messages, functions, or completion.",
    );
  });

  test('may come in the stream after a 200, before any content', async () => {
    const simulator = await simulate({ windows: { m: 7 }, overflow: { ...OPENAI_OVERFLOW, where: 'stream' } });
    const response = await postChat(simulator, request({ stream: true }));
    expect(response.status).toBe(200);
    const text = await response.text();
    const [first, last, ...rest] = eventsOf(text);
    expect(first.choices[0].delta).toMatchObject({ role: 'assistant', content: '' });
    expect(last.error).toMatchObject({
      code: 'context_length_exceeded',
      message: expect.stringContaining('is 7 tokens. However, your messages resulted in 8 '),
    });
    expect(rest).toEqual([]);
    expect(text).not.toContain('[DONE]');
    expect((await postChat(simulator, request())).status).toBe(400);
  });

  test('may come in the stream after some content', async () => {
    const simulator = await simulate({ windows: { m: 7 }, overflow: { ...OPENAI_OVERFLOW, where: 'after-content' } });
    const events = eventsOf(await (await postChat(simulator, request({ stream: true }))).text());
    expect(
      events
        .slice(0, -1)
        .map(({ choices }) => choices[0].delta.content)
        .join(''),
    ).not.toBe('');
    expect(events.at(-1).error.code).toBe('context_length_exceeded');
  });

  test('may have any other form, with the same numbers', async () => {
    const refusal = ({ limitTokens, messageTokens }: { limitTokens: number; messageTokens: number }) =>
      openaiError(413, `prompt is too long: ${messageTokens} tokens > ${limitTokens} maximum`);
    const simulator = await simulate({ windows: { m: 7 }, overflow: { where: 'http', refusal } });
    const response = await postChat(simulator, request());
    expect(response.status).toBe(413);
    expect((await jsonOf(response)).error.message).toBe('prompt is too long: 8 tokens > 7 maximum');
  });

  test('may be scripted where there is room, and then names a window the prompt just exceeds', async () => {
    const simulator = await simulate({ windows: { m: 1000 }, script: () => ({ kind: 'overflow' }) });
    const { error } = await jsonOf(await postChat(simulator, request()));
    expect(error.message).toContain('maximum context length is 7 tokens. However, your messages resulted in 8 tokens.');
  });
});
