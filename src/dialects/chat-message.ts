import type { Message, Role, ToolCall } from '../core/message.js';
import { readContent, type Content } from './chat-content.js';
import { isJsonObject, stableJson, type JsonObject } from './json-value.js';

/**
 * Reads one message of a chat-completions list, of any role. Null for a shape that cannot be read without guessing: no
 * object, an unknown role, content or calls of a wrong type. Unknown members are left alone.
 */
export function readChatMessage(source: unknown): Message | null {
  if (!isJsonObject(source)) return null;
  const content = readContent(source['content']);
  if (content === null) return null;
  switch (source['role']) {
    case 'system':
    case 'developer':
      return plainMessage('system', source, content);
    case 'user':
      return { ...plainMessage('user', source, content), name: textOrNull(source['name']) };
    case 'assistant':
      return readAssistant(source, content);
    case 'tool':
      return readResult(source, content, idOf(source['tool_call_id']));
    case 'function':
      return readResult(source, content, functionCallId(source['name']));
    default:
      return null;
  }
}

/** Every message has these members in this order: then all are of one shape, and reading them is cheap. */
function plainMessage(role: Role, source: JsonObject, { text, media }: Content): Message {
  return { role, text, name: null, calls: [], results: [], media, reasoning: '', signed: false, source };
}

function readAssistant(source: JsonObject, content: Content): Message | null {
  const calls = readCalls(source);
  const refusal = source['refusal'] ?? '';
  if (calls === null || typeof refusal !== 'string') return null;
  const audio = isJsonObject(source['audio']) ? textOrNull(source['audio']['id']) : null;
  return {
    ...plainMessage('llm', source, content),
    // A refusal is what the model said: some clients echo it as a part, some as a member of its own.
    text: content.text + refusal,
    calls,
    media: audio === null ? content.media : [...content.media, audioReference(audio)],
    reasoning: reasoningOf(source) || content.reasoning,
    signed: carriesSignature(source),
  };
}

/** Audio the provider holds of an earlier reply: a client sends back its id alone. */
function audioReference(id: string): Message['media'][number] {
  return { kind: 'audio', inline: false, data: id, mimeType: null, name: null, detail: null };
}

function readResult(source: JsonObject, content: Content, callId: string | null): Message | null {
  if (callId === null) return null;
  return { ...plainMessage('tool', source, content), text: '', results: [{ callId, text: content.text }] };
}

function readCalls(source: JsonObject): readonly ToolCall[] | null {
  const list = source['tool_calls'] ?? [];
  if (!Array.isArray(list)) return null;
  const calls: ToolCall[] = [];
  for (const entry of list) {
    const call = readCall(entry);
    if (call === null) return null;
    calls.push(call);
  }
  const legacy = source['function_call'] ?? null;
  if (legacy === null) return calls;
  const id = isJsonObject(legacy) ? functionCallId(legacy['name']) : null;
  const call = id === null ? null : nameAndArguments(id, legacy, 'arguments');
  return call === null ? null : [...calls, call];
}

function readCall(entry: unknown): ToolCall | null {
  if (!isJsonObject(entry)) return null;
  const id = idOf(entry['id']);
  if (id === null) return null;
  const type = entry['type'] ?? 'function';
  if (type === 'function') return nameAndArguments(id, entry['function'], 'arguments');
  if (type === 'custom') return nameAndArguments(id, entry['custom'], 'input');
  // A call of a kind we do not know still has an id and wants a result: all of it counts.
  return typeof type === 'string' ? { id, name: type, arguments: stableJson(entry) } : null;
}

function nameAndArguments(id: string, call: unknown, member: 'arguments' | 'input'): ToolCall | null {
  if (!isJsonObject(call) || typeof call['name'] !== 'string') return null;
  const given = call[member] ?? '';
  return { id, name: call['name'], arguments: typeof given === 'string' ? given : stableJson(given) };
}

/** Absent, null and empty are one id; null here means unreadable (SPEC 1.3). */
function idOf(value: unknown): string | null {
  const id = value ?? '';
  return typeof id === 'string' ? id : null;
}

/** The legacy form has no ids: a call and its result are both known by the function's name. */
function functionCallId(name: unknown): string | null {
  return typeof name === 'string' ? `function:${name}` : null;
}

function reasoningOf(source: JsonObject): string {
  for (const member of ['reasoning_content', 'reasoning', 'reasoning_text']) {
    const reasoning = textOrNull(source[member]);
    if (reasoning !== null) return reasoning;
  }
  const details: unknown = source['reasoning_details'];
  if (!Array.isArray(details)) return '';
  return details.map((entry) => (isJsonObject(entry) ? (textOrNull(entry['text']) ?? '') : '')).join('');
}

const SIGNATURES = new Set([
  'signature',
  'thought_signature',
  'encrypted_content',
  'reasoning_opaque',
  'reasoning_signature',
]);
const ENCRYPTED_TYPES: ReadonlySet<unknown> = new Set(['reasoning.encrypted', 'redacted_thinking']);

/** Whether anything in an assistant message proves or encrypts its reasoning (SPEC 4.7). Arguments are not looked into. */
function carriesSignature(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(carriesSignature);
  if (!isJsonObject(value)) return false;
  if (ENCRYPTED_TYPES.has(value['type'])) return true;
  return Object.entries(value).some(([key, member]) => {
    if (typeof member === 'string') return member !== '' && SIGNATURES.has(key);
    return key !== 'arguments' && key !== 'input' && carriesSignature(member);
  });
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
