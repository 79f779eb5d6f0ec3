import type { Message, Role, ToolResult } from '../core/message.js';
import { isEmpty, isJsonObject, stableJson, type JsonObject } from './json-value.js';
import { readContent, readOutput } from './responses-content.js';

/** Most characters of an item's own words by which a record names it. */
const LONGEST_NAME = 200;

/** Members that are no part of what an item says: its names, and what servers and clients note of it (SPEC 1.3). */
const NOTES: ReadonlySet<string> = new Set([
  'id',
  'status',
  'created_by',
  'internal_chat_message_metadata_passthrough',
]);

/** Kinds of items that the assistant does not say, so that no reasoning belongs to them. */
const NEVER_SAID: ReadonlySet<string> = new Set([
  'reasoning',
  'item_reference',
  'compaction',
  'compaction_trigger',
  'mcp_approval_response',
]);

/** The kind of an item. A message may leave it out, and so may a reference. Null for what is no item. */
export function typeOf(item: unknown): string | null {
  if (!isJsonObject(item)) return null;
  const { type, role, id } = item;
  if (typeof type === 'string') return type;
  if (type !== undefined && type !== null) return null;
  return typeof role === 'string' ? 'message' : typeof id === 'string' ? 'item_reference' : null;
}

/** Whether an item is something the assistant said or did, so that reasoning before it belongs to it. */
export function isAssistants(item: unknown): boolean {
  const type = typeOf(item);
  if (type === null || !isJsonObject(item)) return false;
  if (type === 'message') return item['role'] === 'assistant';
  if (NEVER_SAID.has(type)) return false;
  return !isSystem(item) && !isOutput(type, item);
}

/**
 * Reads one item that is no reasoning. Null for a shape that cannot be read without guessing: no object, a message of an unknown role
 * or with content of a wrong type, a call without an id. Unknown members and unknown kinds of items are left alone.
 */
export function readItem(item: unknown): Message | null {
  const type = typeOf(item);
  if (type === null || !isJsonObject(item)) return null;
  switch (type) {
    case 'message':
      return readMessageItem(item);
    case 'item_reference':
      return plainMessage('llm', item);
    case 'function_call':
      return readCall(item, item['name'], item['arguments']);
    case 'custom_tool_call':
      return readCall(item, item['name'], item['input']);
    case 'mcp_approval_request':
      return readCall({ ...item, call_id: item['id'] }, type, saidBy(item), item);
    case 'mcp_approval_response':
      return readResult(item, item['approval_request_id'], null);
    case 'function_call_output':
    case 'custom_tool_call_output':
      return readResult(item, item['call_id'], item['output'] ?? '');
    case 'local_shell_call_output':
      return readResult(item, item['call_id'] ?? item['id'], item['output'] ?? '');
    case 'tool_search_output':
      return isNamed(item) ? readResult(item, item['call_id'], null) : opaque(item, type);
    case 'image_generation_call':
      return readImage(item) ?? opaque(item, type);
    default:
      if (isNamed(item) && type.endsWith('_call')) return readCall(item, type, saidBy(item));
      if (isNamed(item) && type.endsWith('_call_output'))
        return readResult(item, item['call_id'], item['output'] ?? '');
      return opaque(item, type);
  }
}

/** Every message has these members in this order: then all are of one shape, and reading them is cheap. */
export function plainMessage(role: Role, source: unknown): Message {
  return { role, text: '', name: null, calls: [], results: [], media: [], reasoning: '', signed: false, source };
}

function readMessageItem(item: JsonObject): Message | null {
  const role = roleOf(item['role']);
  const content = readContent(item['content']);
  return role === null || content === null ? null : { ...plainMessage(role, item), ...content };
}

function roleOf(role: unknown): Role | null {
  switch (role) {
    case 'user':
      return 'user';
    case 'assistant':
      return 'llm';
    case 'system':
    case 'developer':
      return 'system';
    default:
      return null;
  }
}

function readCall(item: JsonObject, name: unknown, given: unknown, source: JsonObject = item): Message | null {
  const id = item['call_id'];
  if (typeof id !== 'string' || typeof name !== 'string') return null;
  const text = given ?? '';
  const call = { id, name, arguments: typeof text === 'string' ? text : stableJson(text) };
  return { ...plainMessage('llm', source), calls: [call] };
}

/** `output` null: there is none that could be told in other words, and all of the item counts. */
function readResult(item: JsonObject, callId: unknown, output: unknown): Message | null {
  if (typeof callId !== 'string') return null;
  const content = output === null ? null : readOutput(output);
  const result: ToolResult = { callId, text: content?.text ?? '' };
  return { ...plainMessage('tool', item), results: [result], media: content?.media ?? [wholeItem(item)] };
}

function readImage(item: JsonObject): Message | null {
  const { result, output_format: format } = item;
  if (typeof result !== 'string' || result === '') return null;
  const mimeType = `image/${typeof format === 'string' ? format : 'png'}`;
  const image = { kind: 'image', inline: true, data: result, mimeType, name: null, detail: null } as const;
  return { ...plainMessage('llm', item), media: [image] };
}

/**
 * An item of the provider's own tools, or of a kind nobody knows yet: kept as it is. One with the role of an instruction is one, and its
 * text then tells it from others.
 */
function opaque(item: JsonObject, type: string): Message {
  // What the provider made of an earlier history, nobody else can read: it stays, as an instruction does (SPEC 4.8).
  if (isSystem(item) || type === 'compaction')
    return { ...plainMessage('system', item), text: stableJson(saidBy(item)) };
  const message = plainMessage(isOutput(type, item) ? 'tool' : 'llm', item);
  return { ...message, media: [wholeItem(item)], signed: !isEmpty(item['encrypted_content']) };
}

function wholeItem(item: JsonObject): Message['media'][number] {
  const said = saidBy(item);
  const { type, encrypted_content: _ciphertext, ...words } = said;
  const name = `${String(type)} ${isEmpty(words) ? '' : stableJson(words)}`.trim().slice(0, LONGEST_NAME);
  return { kind: 'other', inline: true, data: stableJson(said), mimeType: null, name, detail: null };
}

/** An item's members without notes and without those that have no value (SPEC 1.3). */
function saidBy(item: JsonObject): JsonObject {
  const said = Object.entries(item).filter(([name, value]) => !NOTES.has(name) && !isEmpty(value));
  return Object.fromEntries(said.map(([name, value]) => [name, withoutEmpty(value)]));
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isJsonObject(value)) return value;
  const given = Object.entries(value).filter(([, member]) => !isEmpty(member));
  return Object.fromEntries(given.map(([name, member]) => [name, withoutEmpty(member)]));
}

function isNamed(item: JsonObject): boolean {
  return typeof item['call_id'] === 'string';
}

function isSystem(item: JsonObject): boolean {
  return item['role'] === 'system' || item['role'] === 'developer';
}

function isOutput(type: string, item: JsonObject): boolean {
  return type.endsWith('_output') && (isNamed(item) || type === 'local_shell_call_output');
}
