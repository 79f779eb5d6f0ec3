import { CallList } from './chat-call-list.js';
import { foldFunction } from './chat-function.js';
import { isEmpty, isJsonObject, type JsonObject } from './json-value.js';

/** Members whose text arrives in pieces. Of any other the last value counts. */
const SPLIT_TEXTS = new Set(['content', 'refusal', 'reasoning_content', 'reasoning', 'reasoning_text']);

/** One choice of a stream while it is said. */
export class ChoiceMessage {
  readonly #members = new Map<string, unknown>();
  readonly #calls = new CallList();

  /** Adds a delta; true if it held content (SPEC 6.3): anything with a value but a role or name. */
  add(delta: JsonObject): boolean {
    let content = false;
    for (const [key, value] of Object.entries(delta)) {
      if (key === 'role' || key === 'name' || isEmpty(value)) continue;
      content ||= typeof value === 'string' || typeof value === 'object';
      this.#addMember(key, value);
    }
    return content;
  }

  /** What was said so far, as the message of a whole reply. */
  message(): JsonObject {
    const calls = this.#calls.wire();
    return Object.fromEntries(calls.length > 0 ? [...this.#members, ['tool_calls', calls]] : this.#members);
  }

  #addMember(key: string, value: unknown): void {
    const before = this.#members.get(key);
    if (key === 'tool_calls') {
      if (Array.isArray(value)) value.filter(isJsonObject).forEach((entry) => this.#calls.add(entry));
    } else if (key === 'content' && (Array.isArray(value) || Array.isArray(before))) {
      this.#members.set(key, foldParts(partsOf(before), partsOf(value)));
    } else if (key === 'function_call' && isJsonObject(value)) {
      this.#members.set(key, foldFunction(isJsonObject(before) ? before : {}, value));
    } else if (Array.isArray(value)) {
      this.#members.set(key, foldParts(Array.isArray(before) ? before : [], value));
    } else if (SPLIT_TEXTS.has(key) && typeof value === 'string' && typeof before === 'string') {
      this.#members.set(key, before + value);
    } else if (isJsonObject(value) && isJsonObject(before)) {
      const given = Object.entries(value).filter(([, member]) => !isEmpty(member));
      this.#members.set(key, { ...before, ...Object.fromEntries(given) });
    } else {
      this.#members.set(key, value);
    }
  }
}

function partsOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return isEmpty(content) ? [] : [{ type: 'text', text: content }];
}

/** Kinds of parts that arrive in pieces. All others arrive whole. */
const SPLIT_TYPES: ReadonlySet<unknown> = new Set([
  'text',
  'thinking',
  'reasoning.text',
  'reasoning.summary',
  'reasoning.encrypted',
]);

function foldParts(before: readonly unknown[], added: readonly unknown[]): readonly unknown[] {
  const parts = [...before];
  for (const part of added) {
    const last = parts.at(-1);
    if (continues(last, part)) parts[parts.length - 1] = foldPart(last, part);
    else parts.push(part);
  }
  return parts;
}

/** A piece goes on with the last part if both are of one kind and position; a signature ends a part without position. */
function continues(last: unknown, part: unknown): last is JsonObject {
  if (!isJsonObject(last) || !isJsonObject(part)) return false;
  if (!SPLIT_TYPES.has(part['type']) || last['type'] !== part['type']) return false;
  if (last['index'] !== undefined || part['index'] !== undefined) return last['index'] === part['index'];
  return isEmpty(last['signature']);
}

const SPLIT_MEMBERS = new Set(['text', 'thinking', 'summary', 'data']);

function foldPart(last: JsonObject, part: unknown): JsonObject {
  if (!isJsonObject(part)) return last;
  const folded: [string, unknown][] = Object.entries(part).map(([key, value]) => {
    const before = last[key];
    if (value === null) return [key, before ?? null];
    if (!SPLIT_MEMBERS.has(key)) return [key, value];
    if (typeof before === 'string' && typeof value === 'string') return [key, before + value];
    return [key, Array.isArray(before) && Array.isArray(value) ? foldParts(before, value) : value];
  });
  return { ...last, ...Object.fromEntries(folded) };
}
