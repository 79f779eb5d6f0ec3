import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { recogniseOverflow } from '../../src/core/overflow/recognise.js';
import type { ErrorForm } from '../../src/dialects/dialect.js';
import { responses } from '../../src/dialects/responses.js';
import { createSseRewriter } from '../../src/sse/rewrite.js';
import { createSseSplitter } from '../../src/sse/split.js';
import { firstOutput } from './responses-captures.js';

const own = { model: 'gpt-5.1', id: 'abc', createdAt: 1_764_600_000_999 };
const text = 'Compacted 12 messages.\n"Done" 🙂';
const usage = {
  input_tokens: 25,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 34,
};
const whole = (members: object = {}) => ({
  id: 'resp_upstream',
  object: 'response',
  created_at: 1,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'gpt-5.1-2025-11-13',
  output: firstOutput,
  usage,
  ...members,
});
const streamOf = (body: object): string => responses.streamOf(JSON.stringify(body), { includesUsage: true }) ?? '';

/** The official client, with our bytes as the provider's response. */
function clientOf(body: string, status: number, type: string): OpenAI {
  return new OpenAI({
    apiKey: 'none',
    maxRetries: 0,
    fetch: () => Promise.resolve(new Response(body, { status, headers: { 'content-type': type } })),
  });
}
const request = { model: 'gpt-5.1', input: '/compact' };
const streamed = (bytes: string) => clientOf(bytes, 200, 'text/event-stream').responses.stream(request).finalResponse();

interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly response?: { readonly id: string };
}

function eventsOf(bytes: string): readonly Event[] {
  const splitter = createSseSplitter();
  return [...splitter.push(new TextEncoder().encode(bytes)), ...splitter.end()].map((block) => {
    const data = JSON.parse(block.data ?? 'null') as Event;
    expect(data.type).toBe(block.event);
    return data;
  });
}

function fold(bytes: string) {
  const folder = responses.folder();
  for (const event of eventsOf(bytes)) folder.push(JSON.stringify(event), event.type);
  return folder.reply();
}

/** A stream as it goes on behind keep-alives. */
function resumed(bytes: string, sent: number): string {
  const resume = responses.resume(sent);
  if (resume === null) throw new Error('not rewritten');
  const rewriter = createSseRewriter(resume);
  const chunks = [...rewriter.push(new TextEncoder().encode(bytes)), ...rewriter.end()];
  return chunks.map((chunk) => new TextDecoder().decode(chunk)).join('');
}
const keepAlives = (count: number): string =>
  Array.from({ length: count }, (_, sent) => responses.keepAlive(own, sent)).join('');

describe('a reply of Spillway’s own', () => {
  test('is an ordinary response to the official client that reports no tokens, and a reply to us', async () => {
    const body = responses.answer(text, { ...own, stream: false });
    const response = await clientOf(body, 200, 'application/json').responses.create(request);
    expect(response).toMatchObject({
      id: 'resp_abc',
      object: 'response',
      created_at: 1_764_600_000,
      status: 'completed',
      model: 'gpt-5.1',
      output_text: text,
    });
    expect(responses.readReply(JSON.parse(body))).toMatchObject({
      messages: [{ role: 'llm', text }],
      references: [
        { id: 'msg_abc', message: 0 },
        { id: 'resp_abc', message: 0 },
      ],
      stopReason: 'completed',
      finished: true,
      usage: null,
    });
  });

  test('streamed is a stream to the official client, in the order it insists on, and folds to the same reply', async () => {
    const bytes = responses.answer(text, { ...own, stream: true });
    expect(await streamed(bytes)).toMatchObject({ id: 'resp_abc', status: 'completed', output_text: text });
    const events = eventsOf(bytes);
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()]);
    const body = responses.answer(text, { ...own, stream: false });
    expect(fold(bytes)).toEqual(responses.readReply(JSON.parse(body)));
  });
});

describe('a whole body for a client that was promised a stream, SPEC 6.6', () => {
  const outputs: Readonly<Record<string, readonly object[]>> = {
    'reasoning, text and calls': firstOutput,
    nothing: [],
    'empty texts': [
      {
        type: 'message',
        id: 'm',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: '' }],
      },
      { type: 'function_call', id: 'f', call_id: 'c', name: 'f', arguments: '', status: 'completed' },
    ],
    'a refusal, citations and reasoning in the open': [
      { type: 'reasoning', id: 'r', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] },
      {
        type: 'message',
        id: 'm',
        role: 'assistant',
        status: 'completed',
        content: [
          {
            type: 'output_text',
            text: 'a',
            annotations: [{ type: 'file_path', file_id: 'f', index: 0 }],
            logprobs: [],
          },
          { type: 'refusal', refusal: 'b' },
        ],
      },
    ],
    'custom and hosted tools': [
      { type: 'custom_tool_call', id: 'ctc', call_id: 'c', name: 'sh', input: 'ls' },
      { type: 'web_search_call', id: 'ws', status: 'completed', action: { type: 'search', query: 'tea' } },
      { type: 'mcp_call', id: 'mcp', name: 'f', server_label: 's', arguments: '{}', output: 'ok' },
      { type: 'compaction', id: 'cmp', encrypted_content: 'ENC' },
      { type: 'brand_new', id: 'x', deep: { a: 1 } },
    ],
  };

  test.each(Object.entries(outputs))('of %s says the same to the official client and to us', async (_name, output) => {
    const body = whole({ output });
    const bytes = streamOf(body);
    expect(await streamed(bytes)).toMatchObject(body);
    expect(fold(bytes)).toEqual(responses.readReply(body));
    // What was said before the end is all of it.
    expect(fold(bytes.slice(0, bytes.lastIndexOf('event: '))).messages).toEqual(responses.readReply(body)?.messages);
  });

  test('cut off at a limit ends in it', async () => {
    const body = whole({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    expect(await streamed(streamOf(body))).toMatchObject({ status: 'incomplete', usage });
    expect(fold(streamOf(body))).toEqual(responses.readReply(body));
  });

  test.each([
    'no JSON',
    '7',
    '{}',
    '{"output":"x"}',
    '{"output":["x"]}',
    JSON.stringify(whole({ status: 'failed', error: { code: 'server_error', message: 'x' } })),
    JSON.stringify(whole({ status: 'cancelled' })),
    '{"error":{"message":"x"},"output":[]}',
  ])('%s is none', (body) => {
    expect(responses.streamOf(body, { includesUsage: true })).toBeNull();
  });
});

describe('signs of life, SPEC 6.6', () => {
  test('are a response that has begun once, and then that it goes on', () => {
    const events = eventsOf(keepAlives(3));
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.in_progress',
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual([0, 1, 2]);
    expect(events.map(({ response }) => response?.id)).toEqual(['resp_abc', 'resp_abc', 'resp_abc']);
    const meanings = eventsOf(keepAlives(3)).map((event) => responses.folder().push(JSON.stringify(event), event.type));
    for (const meaning of meanings) expect(Object.values(meaning)).toEqual([false, false, false, false]);
  });

  test.each([1, 2, 7])('%d of them and the stream behind them are one stream to the official client', async (sent) => {
    const bytes = `${keepAlives(sent)}${resumed(streamOf(whole()), sent)}`;
    const events = eventsOf(bytes);
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()]);
    expect(events.filter(({ type }) => type === 'response.created')).toHaveLength(1);
    expect(await streamed(bytes)).toMatchObject({
      id: 'resp_upstream',
      status: 'completed',
      output: firstOutput,
      usage,
    });
  });

  test('change nothing in later events but their numbers', () => {
    const later =
      'data: {"n":1.0, "sequence_number" : 4 ,"type":"x","response":{"id":"resp_upstream","sequence_number":9}}\n\n';
    expect(resumed(later, 3)).toBe(later.replace(': 4 ', ': 7 '));
    const created = 'event: response.created\ndata: {"type":"response.created","sequence_number":0}\n\n';
    expect(resumed(`${created}: a comment\n\n${later}`, 3)).toBe(`: a comment\n\n${later.replace(': 4 ', ': 6 ')}`);
    for (const other of ['data: [DONE]\n\n', 'data: {"type":"x"}\n\n', 'data: {"broken\n\n', ': ping\n\n']) {
      expect(resumed(other, 3)).toBe(other);
    }
  });
});

describe('an error', () => {
  const form: ErrorForm = {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
    message: 'About 213456 tokens, and at most 200000 fit.',
    field: 'input',
    overflow: null,
  };
  const body = responses.errorBody(form);

  test('is OpenAI’s envelope, as its client reads it, SPEC 7.7', async () => {
    expect(JSON.parse(body)).toEqual({
      error: { message: form.message, type: form.type, param: 'input', code: form.code },
    });
    await expect(clientOf(body, 400, 'application/json').responses.create(request)).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
      param: 'input',
    });
  });

  test('in a stream that has begun is thrown by the official client, and fails the response for clients that go by that', async () => {
    const bytes = `${keepAlives(2)}${resumed(responses.streamError(body, own), 2)}`;
    await expect(streamed(bytes)).rejects.toMatchObject({ code: 'context_length_exceeded', message: form.message });
    const stream = await clientOf(bytes, 200, 'text/event-stream').responses.create({ ...request, stream: true });
    const seen: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const event of stream) seen.push(event);
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
    expect(seen.at(-1)).toMatchObject({
      type: 'response.failed',
      sequence_number: 2,
      response: { id: 'resp_abc', status: 'failed', error: { code: 'context_length_exceeded', message: form.message } },
    });
    const reply = fold(bytes);
    expect(reply).toMatchObject({ messages: [], finished: false });
    const verdict = recogniseOverflow({
      status: 200,
      body: reply.error ?? '',
      upstreamHost: null,
      clientWrote: () => false,
      estimatedTokens: null,
      windowTokens: null,
    });
    expect(verdict.kind).toBe('context');
  });

  test.each([
    ['no JSON', 'a\n\nb', 'a\n\nb'],
    ['an error without a code', '{"error":{"message":"Not today."}}', 'Not today.'],
    ['an error in words', '{"error":"Not today."}', 'Not today.'],
    ['an envelope without an error', '{"error":null}', '{"error":null}'],
    [
      'a response that failed',
      JSON.stringify(whole({ status: 'failed', error: { code: 'server_error', message: 'Not today.' } })),
      'Not today.',
    ],
  ])('in a stream is two events whatever its body: %s', (_name, given, message) => {
    const [failed, error] = eventsOf(responses.streamError(given, own));
    expect(failed).toMatchObject({ type: 'response.failed', response: { error: { code: 'server_error', message } } });
    expect(error).toMatchObject({ type: 'error', message, error: { message } });
  });
});

describe('a summary request, SPEC 5.6', () => {
  const call = { instructions: 'Write the record.', input: 'The material.', maxOutputTokens: 1_000 };
  const bodyFor = (model: string, host = 'api.openai.com'): unknown =>
    JSON.parse(responses.summaryBody({ ...call, model }, host));

  test('has instructions, one user message and a cap, and is not stored', () => {
    expect(bodyFor('gpt-4o')).toEqual({
      model: 'gpt-4o',
      instructions: 'Write the record.',
      input: [{ role: 'user', content: 'The material.' }],
      max_output_tokens: 1_000,
      stream: false,
      store: false,
    });
    expect(bodyFor('', 'provider.invalid')).not.toHaveProperty('model');
  });

  test.each([
    ['gpt-5.1', 'api.openai.com', { reasoning: { effort: 'none' }, max_output_tokens: 1_000 }],
    ['gpt-5-mini', 'api.openai.com', { reasoning: { effort: 'minimal' }, max_output_tokens: 3_048 }],
    ['o4-mini', 'api.openai.com', { reasoning: { effort: 'low' }, max_output_tokens: 9_192 }],
    ['openai/gpt-5', 'openrouter.ai', { reasoning: { effort: 'minimal' }, max_output_tokens: 3_048 }],
    ['gpt-oss-120b', 'localhost', { reasoning: { effort: 'low' }, max_output_tokens: 9_192 }],
  ])('to %s at %s asks for the least reasoning and leaves room for it', (model, host, expected) => {
    expect(bodyFor(model, host)).toMatchObject({ ...expected, store: false });
    expect(bodyFor(model, host)).not.toHaveProperty('reasoning_effort');
  });

  test('puts the instructions before the material where a model takes no others', () => {
    expect(bodyFor('o1-mini')).toMatchObject({ input: [{ content: 'Write the record.\n\nThe material.' }] });
    expect(bodyFor('o1-mini')).not.toHaveProperty('instructions');
  });
});
