import type { Refusal } from './answer.js';
import { isRecord } from './json-value.js';
import type { PromptMessage } from './model-request.js';
import { openaiError } from './openai-errors.js';

/** A message as it came: its members, and what is read of them. */
export interface ChatMessage extends PromptMessage {
  readonly source: Readonly<Record<string, unknown>>;
  /** Ids of its tool calls, in order. */
  readonly callIds: readonly string[];
}

/** A chat-completions request whose members have the types the API wants. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly choices: number;
  readonly outputCap: number | null;
  /** Alternatives wanted per token; null without log probabilities. */
  readonly topLogprobs: number | null;
  readonly toolNames: readonly string[];
  /** Speaks of `functions` and `function_call` instead of tools. */
  readonly legacyFunctions: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reads a parsed body; the refusal names the first member at fault, in OpenAI's words. */
export function readChatRequest(body: unknown): ChatRequest | Refusal {
  if (!isRecord(body))
    return openaiError(400, 'Invalid type for request body: expected an object.', { code: 'invalid_type' });
  const { model, messages } = body;
  if (typeof model !== 'string' || model === '') return openaiError(400, 'you must provide a model parameter');
  if (messages === undefined)
    return invalid("Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter');
  if (!Array.isArray(messages)) return wrongType('messages', 'an array of objects');
  const read: ChatMessage[] = [];
  for (const [index, message] of messages.entries()) {
    if (!isRecord(message)) return wrongType(`messages[${index}]`, 'an object');
    read.push(readMessage(message));
  }
  const badNumber = ['n', 'max_tokens', 'max_completion_tokens', 'top_logprobs'].find(
    (name) => body[name] !== undefined && body[name] !== null && !Number.isInteger(body[name]),
  );
  if (badNumber !== undefined) return wrongType(badNumber, 'an integer');
  const streamOptions = isRecord(body['stream_options']) ? body['stream_options'] : {};
  const functions = namesOf(body['functions']);
  return {
    model,
    messages: read,
    stream: body['stream'] === true,
    includeUsage: streamOptions['include_usage'] === true,
    choices: integer(body['n']) ?? 1,
    outputCap: integer(body['max_completion_tokens']) ?? integer(body['max_tokens']),
    topLogprobs: body['logprobs'] === true ? (integer(body['top_logprobs']) ?? 0) : null,
    toolNames: [...namesOf(body['tools']), ...functions],
    legacyFunctions: functions.length > 0,
    body,
  };
}

function readMessage(source: Readonly<Record<string, unknown>>): ChatMessage {
  const calls = Array.isArray(source['tool_calls']) ? source['tool_calls'].filter(isRecord) : [];
  const { content } = source;
  const parts = Array.isArray(content) ? content.filter(isRecord).map((part) => part['text']) : [content];
  return {
    role: typeof source['role'] === 'string' ? source['role'] : '',
    text: parts.filter((part) => typeof part === 'string').join(''),
    calledTools: namesOf(calls),
    callIds: calls.map((call) => (typeof call['id'] === 'string' ? call['id'] : '')),
    source,
  };
}

/** Names of tools, functions or calls: their own `name`, or that of the `function` or `custom` member they wrap. */
function namesOf(entries: unknown): readonly string[] {
  if (!Array.isArray(entries)) return [];
  return entries.filter(isRecord).flatMap((entry) => {
    const named = [entry, entry['function'], entry['custom']].find(
      (value) => isRecord(value) && typeof value['name'] === 'string',
    );
    return isRecord(named) && typeof named['name'] === 'string' ? [named['name']] : [];
  });
}

function integer(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function invalid(message: string, param: string, code: string | null): Refusal {
  return openaiError(400, message, { param, code });
}

function wrongType(param: string, expected: string): Refusal {
  return invalid(`Invalid type for '${param}': expected ${expected}.`, param, 'invalid_type');
}
