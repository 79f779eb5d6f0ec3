import type { Message } from '../core/message.js';
import { readAnthropicMessage, readSystem } from './anthropic-message.js';
import type { ReadRequest } from './dialect.js';
import { isJsonObject, positiveInteger, type JsonObject } from './json-value.js';

/**
 * Reads a Messages request. The instructions are `system`, if it says anything, and then the system messages that `messages` begins
 * with; so the indices of `kept` items are those of `messages`, behind one for `system` where there is one.
 *
 * Null for what cannot be read without guessing, and for what must reach the provider untouched: a request to its own compaction
 * (`compaction`). May run out of stack on hostile nesting.
 */
export function readRequest(body: unknown): ReadRequest | null {
  if (!isJsonObject(body) || !Array.isArray(body['messages'])) return null;
  const previous = continuedBy(body['thread']);
  if (previous === undefined || isGiven(body['compaction'])) return null;
  const model = body['model'] ?? '';
  const stream = body['stream'] ?? false;
  const system = readSystem(body['system']);
  if (typeof model !== 'string' || typeof stream !== 'boolean' || system === null) return null;
  const messages: Message[] = [];
  for (const source of body['messages']) {
    const message = readAnthropicMessage(source);
    if (message === null) return null;
    messages.push(message);
  }
  const first = messages.findIndex((message) => message.role !== 'system');
  if (first === -1) return null;
  const format = isJsonObject(body['output_config']) ? body['output_config']['format'] : undefined;
  return {
    model,
    stream,
    // Every stream reports it.
    includesUsage: true,
    choices: 1,
    instructions: [...(system === undefined ? [] : [system]), ...messages.slice(0, first)],
    messages: messages.slice(first),
    fixedJson: [body['tools'], body['tool_choice'], format, body['output_format']]
      .filter(isGiven)
      .map((value) => JSON.stringify(value)),
    outputCap: positiveInteger(body['max_tokens']),
    session: sessionOf(body['metadata']),
    continues: previous,
    references: new Map(),
    selfContained: previous === null,
    rewritable: previous === null,
    asksToCompact: false,
  };
}

/** The message that a server thread goes on after; null where the request carries its whole history, undefined if unknown. */
function continuedBy(thread: unknown): string | null | undefined {
  if (!isGiven(thread)) return null;
  if (!isJsonObject(thread)) return undefined;
  if (thread['type'] === 'create') return null;
  const id = thread['previous_message_id'];
  return thread['type'] === 'continue' && typeof id === 'string' && id !== '' ? id : undefined;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Claude Code writes its session's id into `metadata.user_id`: in JSON, formerly behind the last `_session_` (SPEC 1.2). */
function sessionOf(metadata: unknown): string | null {
  const userId = isJsonObject(metadata) ? metadata['user_id'] : null;
  if (typeof userId !== 'string') return null;
  const session = parsedObject(userId)['session_id'] ?? /^user_.*_session_([\w-]+)$/.exec(userId)?.[1];
  return typeof session === 'string' && session !== '' ? session : null;
}

function parsedObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
