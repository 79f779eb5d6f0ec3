import type { Media } from '../core/message.js';
import { isJsonObject, stableJson, type JsonObject } from './json-value.js';

/** The `content` of a chat message, taken apart. */
export interface Content {
  /** Text and refusal parts joined with nothing between: a part array equals the string it stands for (SPEC 1.3). */
  readonly text: string;
  readonly media: readonly Media[];
  /** Thinking parts, as some vendors send them. */
  readonly reasoning: string;
}

/** Reads a string, an array of parts, or nothing. Null for content of a wrong type. */
export function readContent(value: unknown): Content | null {
  if (value === undefined || value === null) return { text: '', media: [], reasoning: '' };
  if (typeof value === 'string') return { text: value, media: [], reasoning: '' };
  if (!Array.isArray(value)) return null;
  let text = '';
  let reasoning = '';
  const media: Media[] = [];
  for (const part of value) {
    if (!isJsonObject(part) || typeof part['type'] !== 'string') return null;
    switch (part['type']) {
      case 'text':
      case 'refusal': {
        const said = part[part['type']];
        if (typeof said !== 'string') return null;
        text += said;
        break;
      }
      case 'thinking':
      case 'redacted_thinking':
      case 'reasoning':
        reasoning += thinkingText(part['thinking'] ?? part['text']);
        break;
      default:
        media.push(readMedia(part, part['type']) ?? unknownPart(part));
    }
  }
  return { text, media, reasoning };
}

/** Thinking is a string, or a list of text parts. */
function thinkingText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return '';
  return value.map((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

function readMedia(part: JsonObject, type: string): Media | null {
  switch (type) {
    case 'image_url':
      return readUrl('image', part[type]);
    case 'video_url':
      return readUrl('video', part[type]);
    case 'audio_url':
      return readUrl('audio', part[type]);
    case 'input_audio':
      return readAudio(part[type]);
    case 'file':
      return readFile(part[type]);
    default:
      return null;
  }
}

function readUrl(kind: Media['kind'], value: unknown): Media | null {
  const url = isJsonObject(value) ? value['url'] : value;
  if (typeof url !== 'string') return null;
  const detail = isJsonObject(value) ? value['detail'] : null;
  return { kind, ...locate(url), name: null, detail: detail === 'low' || detail === 'high' ? detail : null };
}

function readAudio(value: unknown): Media | null {
  if (!isJsonObject(value) || typeof value['data'] !== 'string') return null;
  const { data, format } = value;
  const mimeType = typeof format === 'string' ? `audio/${format}` : null;
  const place = data.startsWith('data:') ? locate(data) : { inline: true, data, mimeType };
  return { kind: 'audio', ...place, name: null, detail: null };
}

function readFile(value: unknown): Media | null {
  if (!isJsonObject(value)) return null;
  const name = typeof value['filename'] === 'string' ? value['filename'] : null;
  const data = value['file_data'];
  const id = value['file_id'];
  if (typeof data === 'string') {
    // A URL is accepted here by some vendors; anything else is bare base64.
    const place = /^[a-z]+:/i.test(data) ? locate(data) : { inline: true, data, mimeType: null };
    return { kind: 'file', ...place, name, detail: null };
  }
  return typeof id === 'string' ? { kind: 'file', inline: false, data: id, mimeType: null, name, detail: null } : null;
}

/** Takes a base64 data URL apart; any other URL stays whole. */
function locate(url: string): Pick<Media, 'inline' | 'data' | 'mimeType'> {
  const comma = url.startsWith('data:') ? url.indexOf(',') : -1;
  if (comma === -1) return { inline: false, data: url, mimeType: null };
  const [mimeType = '', ...parameters] = url.slice('data:'.length, comma).split(';');
  const inline = parameters.includes('base64');
  return { inline, data: inline ? url.slice(comma + 1) : url, mimeType: mimeType === '' ? null : mimeType };
}

/** A part of a kind we do not know, or known and malformed: identified by all of it but cache marks (SPEC 1.3). */
function unknownPart(part: JsonObject): Media {
  const { cache_control: _cacheMark, ...rest } = part;
  return { kind: 'other', inline: false, data: stableJson(rest), mimeType: null, name: null, detail: null };
}
