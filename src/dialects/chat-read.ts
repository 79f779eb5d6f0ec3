import type { Message } from '../core/message.js';
import { readChatMessage } from './chat-message.js';
import type { ReadRequest } from './dialect.js';
import { isJsonObject, positiveInteger, type JsonObject } from './json-value.js';

/**
 * Reads a chat-completions request. Null for what cannot be read without guessing: no object, `messages` that is no
 * array, has no message after its instructions (there is then nothing to chain), or holds one that cannot be read; a
 * `model` or `stream` of a wrong type. Unknown fields are fine. May run out of stack on hostile nesting.
 */
export function readRequest(body: unknown): ReadRequest | null {
  if (!isJsonObject(body) || !Array.isArray(body['messages'])) return null;
  const model = body['model'] ?? '';
  const stream = body['stream'] ?? false;
  if (typeof model !== 'string' || typeof stream !== 'boolean') return null;
  const messages: Message[] = [];
  for (const source of body['messages']) {
    const message = readChatMessage(source);
    if (message === null) return null;
    messages.push(message);
  }
  const first = messages.findIndex((message) => message.role !== 'system');
  if (first === -1) return null;
  return {
    model,
    stream,
    includesUsage: !stream || asksForUsage(body),
    choices: positiveInteger(body['n']) ?? 1,
    instructions: messages.slice(0, first),
    messages: messages.slice(first),
    fixedJson: [body['tools'], body['functions'], body['response_format']]
      .filter((value) => value !== undefined && value !== null)
      .map((value) => JSON.stringify(value)),
    outputCap: positiveInteger(body['max_completion_tokens'] ?? body['max_tokens']),
    session: sessionOf(body),
    continues: null,
    references: new Map(),
    selfContained: (body['web_search_options'] ?? null) === null,
    rewritable: true,
    asksToCompact: false,
  };
}

function asksForUsage(body: JsonObject): boolean {
  const options = body['stream_options'];
  return isJsonObject(options) && options['include_usage'] === true;
}

/** Body fields by which real clients name a session (SPEC 1.2). */
function sessionOf(body: JsonObject): string | null {
  for (const field of ['prompt_cache_key', 'session_id']) {
    const value = body[field];
    if (typeof value === 'string' && value !== '') return value;
  }
  return null;
}
