import type { Message } from '../core/message.js';
import { countedCiphertext } from './ciphertext.js';
import { isEmpty, isJsonObject, type JsonObject } from './json-value.js';
import { isAssistants, plainMessage, readItem, typeOf } from './responses-item.js';

/** Items `[from, to)` of a list that are one message. */
export interface Group {
  readonly from: number;
  readonly to: number;
}

/**
 * The messages that a list of items makes, in order: every item is one, but that reasoning belongs to the assistant's item behind it.
 * Reasoning with none behind it is a message of its own.
 */
export function groupsOf(items: readonly unknown[]): readonly Group[] {
  const groups: Group[] = [];
  let from = 0;
  while (from < items.length) {
    let to = from;
    while (to < items.length && typeOf(items[to]) === 'reasoning') to++;
    if (to === from || isAssistants(items[to])) to++;
    groups.push({ from, to });
    from = to;
  }
  return groups;
}

/** The source of a group's message: its item, or with reasoning before it the array of them. */
export function sourceOf(items: readonly unknown[], { from, to }: Group): unknown {
  return to - from === 1 ? items[from] : items.slice(from, to);
}

/** Reads a message from its source: an item, or reasoning items and the one they belong to. Null for what cannot be read. */
export function readGroup(source: unknown): Message | null {
  const items: readonly unknown[] = Array.isArray(source) ? source : [source];
  if (items.length === 0 || !items.every(isJsonObject)) return null;
  const reasoning = items.filter((item) => typeOf(item) === 'reasoning');
  const [item, ...more] = items.slice(reasoning.length);
  if (more.length > 0 || (item !== undefined && typeOf(item) === 'reasoning')) return null;
  const message = item === undefined ? plainMessage('llm', source) : readItem(item);
  if (message === null || reasoning.length === 0) return message;
  return {
    ...message,
    reasoning: reasoning.map(thoughtOf).join('\n'),
    signed: message.signed || reasoning.some((thought) => !isEmpty(thought['encrypted_content'])),
    source,
  };
}

/** What a reasoning item is counted by: its text, or where that is withheld, a piece of what hides it. */
function thoughtOf({ summary, content, encrypted_content: hidden }: JsonObject): string {
  const texts = [summary, content]
    .flatMap((parts): readonly unknown[] => (Array.isArray(parts) ? parts : []))
    .map((part) => (isJsonObject(part) ? part['text'] : null))
    .filter((text) => typeof text === 'string' && text !== '');
  return texts.length > 0 || typeof hidden !== 'string' ? texts.join('\n') : countedCiphertext(hidden);
}
