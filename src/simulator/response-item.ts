import { isRecord, stringsIn } from './json-value.js';
import type { Item } from './responses-request.js';
import type { Seal } from './seal.js';

/** The kind of an item; a message may leave it out, and so may a reference. */
export function typeOf({ type, role }: Item): string {
  if (typeof type === 'string') return type;
  return role === undefined ? 'item_reference' : 'message';
}

export function idOf({ id }: Item): string | null {
  return typeof id === 'string' ? id : null;
}

/** The id by which a call and its output belong together; null for items that are neither. */
export function callIdOf(item: Item): string | null {
  const paired = /_call(_output)?$/.test(typeOf(item));
  return paired && typeof item['call_id'] === 'string' ? item['call_id'] : null;
}

/** What the assistant said or did, reasoning aside. */
export function isAssistants(item: Item): boolean {
  const type = typeOf(item);
  return type === 'message' ? item['role'] === 'assistant' : type.endsWith('_call');
}

/** The text of a message's content or of an output. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(isRecord)
    .flatMap(({ text, refusal }) => stringsIn([text, refusal]))
    .join('');
}

/** An item as the model reads it: without its names and notes, and with what it carries in secret. */
export function readable(item: Item, seal: Seal): Item {
  const { id: _id, status: _status, encrypted_content: sealed, ...words } = item;
  if (typeof sealed !== 'string') return words;
  const type = typeOf(item);
  return { type, text: seal.open(type, sealed) ?? '' };
}
