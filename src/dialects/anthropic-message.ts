import type { Media, Message, Role, ToolCall, ToolResult } from '../core/message.js';
import { mediaOf, textOf } from './anthropic-media.js';
import { countedCiphertext } from './ciphertext.js';
import { isJsonObject, stableJson, type JsonObject } from './json-value.js';

/**
 * Reads one message of a Messages list: `user`, `assistant`, or `system` in the middle of it. Null for a shape that cannot be read
 * without guessing: no object, an unknown role, content of a wrong type, a call or result without an id. Unknown members and unknown
 * kinds of blocks are left alone.
 *
 * A message of tool results and nothing else is a `tool` message; with text or media beside them it stays the user's.
 */
export function readAnthropicMessage(source: unknown): Message | null {
  if (!isJsonObject(source)) return null;
  switch (source['role']) {
    case 'user':
      return readAs('user', source);
    case 'assistant':
      return readAs('llm', source);
    case 'system':
      return readAs('system', source);
    default:
      return null;
  }
}

/** The request's `system` as the one instruction it is; undefined where it says nothing, null where it cannot be read. */
export function readSystem(system: unknown): Message | null | undefined {
  const isEmpty = system === undefined || system === null || system === '';
  if (isEmpty || (Array.isArray(system) && system.length === 0)) return undefined;
  return readAs('system', { role: 'system', content: system });
}

/** What is gathered from blocks, in their order. */
interface Gathered {
  text: string;
  reasoning: string;
  signed: boolean;
  /** A part of the user's own beside tool results. */
  beside: boolean;
  readonly calls: ToolCall[];
  readonly results: ToolResult[];
  readonly media: Media[];
}

function readAs(role: Role, source: JsonObject): Message | null {
  const content = source['content'];
  // A system message may be there for its settings alone.
  const blocks = role === 'system' && content === undefined ? [] : blocksOf(content);
  if (blocks === null) return null;
  const gathered: Gathered = {
    text: '',
    reasoning: '',
    signed: false,
    beside: false,
    calls: [],
    results: [],
    media: [],
  };
  if (!blocks.every((block) => gather(role, block, gathered))) return null;
  const { text, calls, results, media, reasoning, signed, beside } = gathered;
  const isResult = results.length > 0 && !beside;
  return { role: isResult ? 'tool' : role, text, name: null, calls, results, media, reasoning, signed, source };
}

/** A string is the one text block it stands for (SPEC 1.3). */
function blocksOf(content: unknown): readonly unknown[] | null {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content : null;
}

/** False for a block that cannot be read. */
function gather(role: Role, block: unknown, to: Gathered): boolean {
  if (!isJsonObject(block) || typeof block['type'] !== 'string') return false;
  switch (block['type']) {
    case 'text': {
      if (typeof block['text'] !== 'string') return false;
      // The provider refuses a message of blank text, so clients do not send back a blank block that a model wrote.
      if (role === 'llm' && block['text'].trim() === '') return true;
      to.text += block['text'];
      to.beside ||= block['text'] !== '';
      return true;
    }
    case 'thinking':
    case 'redacted_thinking':
      to.reasoning += thinkingOf(block);
      to.signed ||= block['type'] === 'redacted_thinking' || isFilled(block['signature']);
      return true;
    case 'tool_use': {
      const { id, name, input } = block;
      if (typeof id !== 'string' || typeof name !== 'string') return false;
      to.calls.push({ id, name, arguments: typeof input === 'string' ? input : stableJson(input ?? {}) });
      return true;
    }
    case 'tool_result':
      return gatherResult(block, to);
    default: {
      const text = textOf(block);
      if (text === null) to.media.push(mediaOf(block));
      else to.text += text;
      to.signed ||= isFilled(block['signature']);
      to.beside = true;
      return true;
    }
  }
}

function gatherResult(block: JsonObject, to: Gathered): boolean {
  const callId = block['tool_use_id'];
  const blocks = blocksOf(block['content'] ?? []);
  if (typeof callId !== 'string' || blocks === null || !blocks.every(isJsonObject)) return false;
  let text = '';
  for (const inner of blocks) {
    const said = textOf(inner);
    if (said === null) to.media.push(mediaOf(inner));
    else text += said;
  }
  to.results.push({ callId, text });
  return true;
}

/** What a thinking block is counted by: its text, or where that is withheld, a piece of what hides it. */
function thinkingOf(block: JsonObject): string {
  const { thinking, signature, data } = block;
  if (typeof thinking === 'string' && thinking !== '') return thinking;
  const hidden = typeof data === 'string' ? data : typeof signature === 'string' ? signature : '';
  return countedCiphertext(hidden);
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}
