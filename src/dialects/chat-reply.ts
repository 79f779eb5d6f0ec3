import type { Usage } from '../core/message.js';
import { readChatMessage } from './chat-message.js';
import type { Reply } from './dialect.js';
import { isEmpty, isJsonObject, tokenCount, unlessTooDeep, type JsonObject } from './json-value.js';

/** One choice of a reply: what was said, and why it ended (null: not yet). */
export interface Choice {
  readonly message: JsonObject;
  readonly finishReason: string | null;
}

/** Reads a whole reply; null if the body is neither one nor an error. */
export function readReply(body: unknown): Reply | null {
  if (!isJsonObject(body)) return null;
  const list: readonly unknown[] = Array.isArray(body['choices']) ? body['choices'] : [];
  const error = errorOf(body) ?? list.map(errorOf).find((found) => found !== null) ?? null;
  if (error === null && !Array.isArray(body['choices'])) return null;
  const choices: [index: number, choice: Choice][] = [];
  list.forEach((choice, position) => {
    if (!isJsonObject(choice) || !isJsonObject(choice['message'])) return;
    const index = typeof choice['index'] === 'number' ? choice['index'] : position;
    choices.push([index, { message: choice['message'], finishReason: finishReason(choice) }]);
  });
  const ordered = choices.toSorted(([a], [b]) => a - b).map(([, choice]) => choice);
  return replyOf(ordered, { expected: 1, usage: readUsage(body['usage']), error, unread: null });
}

/**
 * The reply made of `choices`, in order; `expected` of them must have stopped before it is finished. A reply with an
 * error in it never finishes (SPEC 2.3), whatever stop reason came along.
 */
export function replyOf(
  choices: readonly Choice[],
  rest: Pick<Reply, 'usage' | 'error' | 'unread'> & { readonly expected: number },
): Reply {
  const stopped = choices.filter((choice) => choice.finishReason !== null).length;
  const read = choices.flatMap(sourceOf).map((source) => unlessTooDeep(() => ({ message: readChatMessage(source) })));
  const gap = read.includes(null) ? 'too_deep' : read.some((one) => one?.message === null) ? 'malformed' : null;
  return {
    messages: read.map((one) => one?.message ?? null).filter((message) => message !== null),
    follows: false,
    references: [],
    stopReason: choices[0]?.finishReason ?? null,
    finished: rest.error === null && stopped >= Math.max(rest.expected, choices.length),
    usage: rest.usage,
    unread: rest.unread ?? gap,
    error: rest.error,
  };
}

/** The choice's message, if it said something or has stopped. */
function sourceOf(choice: Choice): readonly JsonObject[] {
  const source = assistantSource(choice.message);
  const said = Object.keys(source).length > 2 || !isEmpty(source['content']);
  return said || choice.finishReason !== null ? [source] : [];
}

/**
 * The assistant message as the provider accepts it back: members without a value dropped, stream positions too, audio
 * by the id of what the provider holds.
 */
function assistantSource(message: JsonObject): JsonObject {
  const members: [string, unknown][] = [];
  for (const [key, value] of Object.entries(message)) {
    if (key === 'role' || key === 'content' || isEmpty(value)) continue;
    if (key === 'tool_calls' && Array.isArray(value)) members.push([key, value.map(withoutIndex)]);
    else if (key !== 'audio' || !isJsonObject(value)) members.push([key, value]);
    else if (typeof value['id'] === 'string') members.push([key, { id: value['id'] }]);
  }
  const content = isEmpty(message['content']) ? (members.length > 0 ? null : '') : message['content'];
  return Object.fromEntries([['role', 'assistant'], ['content', content], ...members]);
}

function withoutIndex(call: unknown): unknown {
  return isJsonObject(call) ? Object.fromEntries(Object.entries(call).filter(([key]) => key !== 'index')) : call;
}

/** Why a choice ended. Some vendors write an empty string until it did. */
export function finishReason(choice: JsonObject): string | null {
  const reason = choice['finish_reason'];
  return typeof reason === 'string' && reason !== '' ? reason : null;
}

/** The error in a body, a choice or a chunk, in the envelope an HTTP error has; null if there is none. */
export function errorOf(value: unknown): string | null {
  if (!isJsonObject(value)) return null;
  if (!isEmpty(value['error'])) return JSON.stringify({ error: value['error'] });
  return value['object'] === 'error' || isBareError(value) ? JSON.stringify({ error: value }) : null;
}

/** An error without an envelope: no reply and no chunk of one, but a message, or a status in a vendor's own member. */
function isBareError(value: JsonObject): boolean {
  if (Array.isArray(value['choices'])) return false;
  const status = value['base_resp'];
  return (
    ['message', 'detail', 'error_message'].some((key) => typeof value[key] === 'string' && value[key] !== '') ||
    (isJsonObject(status) && typeof status['status_code'] === 'number' && status['status_code'] !== 0)
  );
}

/**
 * Usage as reported; null when nothing was. No prompt is empty, so zero input tokens are "not reported" (SPEC 9.4), and
 * zero output tokens beside them as well. Some vendors name the cached tokens in places of their own.
 */
export function readUsage(value: unknown): Usage | null {
  if (!isJsonObject(value)) return null;
  const input = tokenCount(value, 'prompt_tokens') || null;
  const output = tokenCount(value, 'completion_tokens');
  const usage = {
    inputTokens: input,
    outputTokens: input === null ? output || null : output,
    cachedTokens:
      tokenCount(value['prompt_tokens_details'], 'cached_tokens') ??
      tokenCount(value, 'prompt_cache_hit_tokens') ??
      tokenCount(value, 'cached_tokens'),
    reasoningTokens: tokenCount(value['completion_tokens_details'], 'reasoning_tokens'),
  };
  return usage.inputTokens === null && usage.outputTokens === null ? null : usage;
}
