import { describe, expect, test } from 'vitest';
import { recogniseOverflow } from '../../src/core/overflow/recognise.js';
import { anthropicMessages } from '../../src/dialects/anthropic-messages.js';
import type { ErrorForm } from '../../src/dialects/dialect.js';
import { createSseSplitter } from '../../src/sse/split.js';

const reply = { model: 'claude-x', id: 'abc', createdAt: 1_700_000_000_000 };

function eventsOf(text: string) {
  const splitter = createSseSplitter();
  return [...splitter.push(new TextEncoder().encode(text)), ...splitter.end()].map((block) => {
    const data: unknown = JSON.parse(block.data ?? 'null');
    expect(data).toMatchObject({ type: block.event });
    return { event: block.event, data };
  });
}

describe('a reply of Spillway’s own', () => {
  test('is an ordinary message that reports no tokens', () => {
    const body = anthropicMessages.answer('Compacted.', { ...reply, stream: false });
    expect(anthropicMessages.readReply(JSON.parse(body))).toMatchObject({
      messages: [{ role: 'llm', text: 'Compacted.' }],
      stopReason: 'end_turn',
      finished: true,
      usage: null,
    });
    expect(JSON.parse(body)).toMatchObject({ id: 'msg_abc', type: 'message', role: 'assistant', model: 'claude-x' });
  });

  test('streamed has its events in the order that clients insist on', () => {
    const events = eventsOf(anthropicMessages.answer('Compacted.', { ...reply, stream: true }));
    expect(events.map(({ event }) => event)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
  });
});

describe('a whole body for a client that was promised a stream, SPEC 6.6', () => {
  test.each(['no JSON', '7', '{}', '{"content":"x"}', '{"content":["x"]}'])('%s is none', (body) => {
    expect(anthropicMessages.streamOf(body, { includesUsage: true })).toBeNull();
  });

  test('an error is none', () => {
    const body = '{"type":"error","error":{"type":"api_error","message":"x"},"content":[]}';
    expect(anthropicMessages.streamOf(body, { includesUsage: true })).toBeNull();
  });

  test('other members of the message are carried over', () => {
    const body = { id: 'msg_1', content: [], container: { id: 'c' }, stop_reason: 'refusal', stop_details: { a: 1 } };
    const events = eventsOf(anthropicMessages.streamOf(JSON.stringify(body), { includesUsage: true }) ?? '');
    expect(events[0]?.data).toMatchObject({ message: { id: 'msg_1', container: { id: 'c' }, stop_reason: null } });
    expect(events[1]?.data).toMatchObject({ delta: { stop_reason: 'refusal', stop_details: { a: 1 } } });
  });
});

test('a sign of life is a ping, SPEC 6.6', () => {
  expect(anthropicMessages.keepAlive(reply, 0)).toBe('event: ping\ndata: {"type":"ping"}\n\n');
});

describe('an error', () => {
  const form: ErrorForm = {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
    message: 'About 213456 tokens, and at most 200000 fit.',
    field: 'messages',
    overflow: { usedTokens: 213_456, limitTokens: 200_000 },
  };

  test('of an overflow has the words by which clients know it, SPEC 7.7', () => {
    const body = anthropicMessages.errorBody(form);
    expect(JSON.parse(body)).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'prompt is too long: 213456 tokens > 200000 maximum. About 213456 tokens, and at most 200000 fit.',
        details: { error_code: 'context_length_exceeded', param: 'messages' },
      },
    });
    const verdict = recogniseOverflow({
      status: 400,
      body,
      upstreamHost: null,
      clientWrote: () => false,
      estimatedTokens: null,
      windowTokens: null,
    });
    expect(verdict.kind).toBe('context');
  });

  test.each([
    [401, 'authentication_error'],
    [403, 'permission_error'],
    [404, 'not_found_error'],
    [409, 'conflict_error'],
    [413, 'request_too_large'],
    [415, 'invalid_request_error'],
    [502, 'api_error'],
    [503, 'api_error'],
    [504, 'timeout_error'],
  ])('of status %d is of type %s', (status, type) => {
    const body = anthropicMessages.errorBody({ ...form, status, code: 'x', overflow: null });
    expect(JSON.parse(body)).toMatchObject({ error: { type, message: form.message } });
  });

  test('in a stream that has begun is one error event, whatever the body', () => {
    const body = anthropicMessages.errorBody(form);
    expect(eventsOf(anthropicMessages.streamError(body, reply))).toEqual([{ event: 'error', data: JSON.parse(body) }]);
    expect(eventsOf(anthropicMessages.streamError('a\n\nb', reply))).toEqual([
      { event: 'error', data: { type: 'error', error: { type: 'api_error', message: 'a\n\nb' } } },
    ]);
    expect(eventsOf(anthropicMessages.streamError('{"error":{"message":"x"}}', reply))).toMatchObject([
      { event: 'error' },
    ]);
  });
});

test('only `end_turn` is the normal stop', () => {
  const reasons = ['end_turn', 'stop_sequence', 'max_tokens', 'tool_use', 'pause_turn', 'refusal', 'compaction'];
  expect(reasons.filter((reason) => anthropicMessages.isNormalStop(reason))).toEqual(['end_turn']);
});

describe('a summary request, SPEC 5.6', () => {
  const call = { instructions: 'Write the record.', input: 'The material.', maxOutputTokens: 1_000 };
  const bodyFor = (model: string, host = 'api.anthropic.com'): unknown =>
    JSON.parse(anthropicMessages.summaryBody({ ...call, model }, host));

  test('has instructions, one user message and a cap, and asks for no thinking where none is the default', () => {
    expect(bodyFor('claude-sonnet-4-5')).toEqual({
      model: 'claude-sonnet-4-5',
      max_tokens: 1_000,
      system: 'Write the record.',
      messages: [{ role: 'user', content: 'The material.' }],
      stream: false,
    });
  });

  test('asks for the least where thinking cannot be turned off, and leaves room for it', () => {
    for (const model of ['claude-opus-5-5', 'claude-fable-5', 'claude-mythos-preview', 'claude-haiku-6']) {
      expect(bodyFor(model)).toMatchObject({ max_tokens: 9_192, output_config: { effort: 'low' } });
    }
  });

  test('turns it off at another vendor whose switch is the same', () => {
    expect(bodyFor('deepseek-v4', 'api.deepseek.com')).toMatchObject({ thinking: { type: 'disabled' } });
  });

  test('names no model where none is known', () => {
    expect(bodyFor('')).not.toHaveProperty('model');
  });
});
