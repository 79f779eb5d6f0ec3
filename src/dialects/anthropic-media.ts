import type { Media } from '../core/message.js';
import { isJsonObject, stableJson, type JsonObject } from './json-value.js';

/** Most characters of a block's own words by which a record names it. */
const LONGEST_NAME = 200;

/**
 * A block whose content is text: what it says, and null for every other block. Plain-text documents and search results are text on the
 * wire; a text block that says nothing is text all the same.
 */
export function textOf(block: JsonObject): string | null {
  switch (block['type']) {
    case 'text':
      return typeof block['text'] === 'string' ? block['text'] : null;
    case 'document':
      return documentText(block);
    case 'search_result': {
      const text = joinedText(block['content']);
      return text === null ? null : lines([block['title'], block['source'], text]);
    }
    case 'compaction':
      // What the provider's own compaction left of the messages before it.
      return typeof block['content'] === 'string' ? block['content'] : null;
    default:
      return null;
  }
}

function documentText(block: JsonObject): string | null {
  const source = block['source'];
  if (!isJsonObject(source)) return null;
  const text =
    source['type'] === 'text' ? source['data'] : source['type'] === 'content' ? joinedText(source['content']) : null;
  return typeof text === 'string' ? lines([block['title'], block['context'], text]) : null;
}

/** A string, or text blocks joined; null if there is anything else in it. */
function joinedText(content: unknown): string | null {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return null;
  const texts = content.map((block) => (isJsonObject(block) && block['type'] === 'text' ? block['text'] : null));
  return texts.every((text) => typeof text === 'string') ? texts.join('') : null;
}

function lines(parts: readonly unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').join('\n');
}

/** A block that is neither text, thinking, call nor result. */
export function mediaOf(block: JsonObject): Media {
  const kind = block['type'] === 'image' ? 'image' : block['type'] === 'document' ? 'file' : null;
  const source = block['source'];
  const place = kind === null || !isJsonObject(source) ? null : placeOf(source);
  if (kind === null || place === null) return opaque(block);
  return { kind, ...place, name: typeof block['title'] === 'string' ? block['title'] : null, detail: null };
}

function placeOf(source: JsonObject): Pick<Media, 'inline' | 'data' | 'mimeType'> | null {
  const mimeType = typeof source['media_type'] === 'string' ? source['media_type'] : null;
  for (const [member, inline] of [
    ['data', true],
    ['url', false],
    ['file_id', false],
  ] as const) {
    const data = source[member];
    if (typeof data === 'string') return { inline, data, mimeType };
  }
  return null;
}

/**
 * A block of the provider's own tools, or of a kind nobody knows yet: identified by all of it but cache marks and members without a
 * value (SPEC 1.3), named by what it says of itself, priced by its length.
 */
function opaque(block: JsonObject): Media {
  const { cache_control: _cacheMark, ...rest } = block;
  const input = isJsonObject(block['input']) ? stableJson(block['input']) : null;
  const name = [block['type'], block['name'], input].filter((word) => typeof word === 'string').join(' ');
  return {
    kind: 'other',
    inline: true,
    data: stableJson(withoutEmpty(rest)),
    mimeType: null,
    name: name.slice(0, LONGEST_NAME),
    detail: null,
  };
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isJsonObject(value)) return value;
  const given = Object.entries(value).filter(([, member]) => member !== null && member !== '');
  return Object.fromEntries(given.map(([key, member]) => [key, withoutEmpty(member)]));
}
