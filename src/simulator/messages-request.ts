import type { Refusal } from './answer.js';
import { anthropicError } from './anthropic-errors.js';
import { isRecord } from './json-value.js';

export type Block = Readonly<Record<string, unknown>>;

export interface MessagesMessage {
  readonly role: 'user' | 'assistant' | 'system';
  /** A text is one text block, and an empty one none. */
  readonly content: readonly Block[];
}

export interface Thinking {
  readonly type: 'enabled' | 'adaptive';
  /** The text of thinking stays with the provider. */
  readonly isOmitted: boolean;
}

/** A Messages request whose members have the types the API wants. */
export interface MessagesRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly system: readonly Block[];
  readonly messages: readonly MessagesMessage[];
  readonly tools: readonly Block[];
  /** Null for a count of tokens, which needs none. */
  readonly maxTokens: number | null;
  /** Null where it is not enabled. */
  readonly thinking: Thinking | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reads a parsed body; the refusal names the first member at fault, in Anthropic's words. */
export function readMessagesRequest(body: unknown, needsCap: boolean): MessagesRequest | Refusal {
  if (!isRecord(body)) return anthropicError(400, 'Input should be an object');
  const { model, messages, max_tokens: cap } = body;
  if (typeof model !== 'string' || model === '') return required('model');
  if (cap == null && needsCap) return required('max_tokens');
  if (cap != null && (typeof cap !== 'number' || !Number.isInteger(cap))) return wrong('max_tokens', 'a valid integer');
  if (cap != null && cap < 1) return wrong('max_tokens', 'greater than or equal to 1');
  if (messages == null) return required('messages');
  if (!Array.isArray(messages)) return wrong('messages', 'a valid list');
  if (messages.length === 0) return anthropicError(400, 'messages: at least one message is required');
  const system = blocksOf(body['system'] ?? [], 'system');
  if ('kind' in system) return system;
  const read: MessagesMessage[] = [];
  for (const [index, entry] of messages.entries()) {
    const message = readMessage(entry, index);
    if ('kind' in message) return message;
    read.push(message);
  }
  const thinking = readThinking(body['thinking'], cap ?? null);
  if (thinking !== null && 'kind' in thinking) return thinking;
  const tools = Array.isArray(body['tools']) ? body['tools'].filter(isRecord) : [];
  const stream = body['stream'] === true;
  return { model, stream, system: system.blocks, messages: read, tools, maxTokens: cap ?? null, thinking, body };
}

function readMessage(message: unknown, index: number): MessagesMessage | Refusal {
  if (!isRecord(message)) return wrong(`messages.${index}`, 'an object');
  const { role, content } = message;
  // Instructions in the middle of a conversation are a message of their own.
  if (role !== 'user' && role !== 'assistant' && !(role === 'system' && index > 0)) {
    return anthropicError(
      400,
      role === 'system'
        ? 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as ' +
            'an input message role.'
        : `messages: Unexpected role "${String(role)}". Allowed roles are "user" or "assistant"`,
    );
  }
  const read = blocksOf(content, `messages.${index}.content`);
  return 'kind' in read ? read : { role, content: read.blocks };
}

function blocksOf(content: unknown, param: string): { readonly blocks: readonly Block[] } | Refusal {
  if (content == null) return required(param);
  if (typeof content === 'string') return { blocks: content === '' ? [] : [{ type: 'text', text: content }] };
  if (!Array.isArray(content)) return wrong(param, 'a valid list');
  const stray = content.findIndex((block) => !isRecord(block) || typeof block['type'] !== 'string');
  return stray < 0 ? { blocks: content.filter(isRecord) } : required(`${param}.${stray}.type`);
}

function readThinking(thinking: unknown, cap: number | null): Thinking | Refusal | null {
  if (!isRecord(thinking)) return null;
  const { type, budget_tokens: budget, display } = thinking;
  const isOmitted = display === 'omitted';
  if (type === 'adaptive') return { type, isOmitted };
  if (type !== 'enabled') return null;
  if (typeof budget !== 'number') return required('thinking.enabled.budget_tokens');
  if (budget < 1024) return wrong('thinking.enabled.budget_tokens', 'greater than or equal to 1024');
  if (cap !== null && cap <= budget) {
    return anthropicError(
      400,
      '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at ' +
        'https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size',
    );
  }
  return { type, isOmitted };
}

function required(param: string): Refusal {
  return anthropicError(400, `${param}: Field required`);
}

function wrong(param: string, expected: string): Refusal {
  return anthropicError(400, `${param}: Input should be ${expected}`);
}
