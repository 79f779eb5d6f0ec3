import type { Usage } from '../core/message.js';
import { readAnthropicMessage } from './anthropic-message.js';
import type { Reply } from './dialect.js';
import { isJsonObject, tokenCount, unlessTooDeep, type JsonObject } from './json-value.js';

/** Reads a whole reply; null if the body is neither one nor an error. */
export function readReply(body: unknown): Reply | null {
  if (!isJsonObject(body)) return null;
  const error = errorOf(body);
  const { content } = body;
  if (error === null && !Array.isArray(content)) return null;
  return replyOf({
    id: body['id'],
    content: Array.isArray(content) ? content : [],
    stopReason: stopReasonOf(body),
    usage: readUsage(body['usage']),
    error,
    unread: null,
  });
}

/** A reply with this content. It is finished once its stop reason is there, but never with an error (SPEC 2.3). */
export function replyOf(
  said: Pick<Reply, 'stopReason' | 'usage' | 'error' | 'unread'> & {
    readonly id: unknown;
    readonly content: readonly unknown[];
  },
): Reply {
  const { id, content, stopReason, usage, error, unread } = said;
  const isSaid = content.some(saysSomething) || stopReason !== null;
  const message = isSaid ? unlessTooDeep(() => readAnthropicMessage({ role: 'assistant', content })) : null;
  return {
    messages: message === null ? [] : [message],
    follows: false,
    references: message !== null && typeof id === 'string' && id !== '' ? [{ id, message: 0 }] : [],
    stopReason,
    finished: error === null && stopReason !== null,
    usage,
    unread: unread ?? (isSaid && message === null ? 'malformed' : null),
    error,
  };
}

/** A block whose text is still to come says nothing yet; any other block does by being there. */
export function saysSomething(block: unknown): boolean {
  if (!isJsonObject(block)) return true;
  switch (block['type']) {
    case 'text':
      return block['text'] !== '';
    case 'thinking':
      return !isEmpty(block['thinking']) || !isEmpty(block['signature']);
    case 'compaction':
      return !isEmpty(block['content']) || !isEmpty(block['encrypted_content']);
    default:
      return true;
  }
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

export function stopReasonOf(value: JsonObject): string | null {
  const reason = value['stop_reason'];
  return typeof reason === 'string' && reason !== '' ? reason : null;
}

/** The error in a body or an event, as a body has it; null if there is none. */
export function errorOf(value: JsonObject): string | null {
  const hasError = isJsonObject(value['error']) || (typeof value['error'] === 'string' && value['error'] !== '');
  return hasError || value['type'] === 'error' ? JSON.stringify(value) : null;
}

/**
 * Usage as reported; null when nothing was. Cached tokens are no part of `input_tokens` here. No prompt is empty, so zero input tokens
 * are "not reported" (SPEC 9.4), and zero output tokens beside them as well. Where the provider's own tools made it sample more than
 * once, the first time is what read the request that was sent.
 */
export function readUsage(value: unknown): Usage | null {
  if (!isJsonObject(value)) return null;
  const read = firstSampling(value['iterations']) ?? value;
  const input =
    (tokenCount(read, 'input_tokens') ?? 0) +
    (tokenCount(read, 'cache_creation_input_tokens') ?? 0) +
    (tokenCount(read, 'cache_read_input_tokens') ?? 0);
  const output = tokenCount(value, 'output_tokens');
  const usage = {
    inputTokens: input || null,
    outputTokens: input === 0 ? output || null : output,
    cachedTokens: tokenCount(read, 'cache_read_input_tokens'),
    reasoningTokens: tokenCount(value['output_tokens_details'], 'thinking_tokens'),
  };
  return usage.inputTokens === null && usage.outputTokens === null ? null : usage;
}

function firstSampling(iterations: unknown): JsonObject | null {
  const first: unknown = Array.isArray(iterations) ? iterations[0] : null;
  return isJsonObject(first) && first['type'] === 'message' ? first : null;
}
