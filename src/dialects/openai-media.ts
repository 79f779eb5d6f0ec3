import type { Media } from '../core/message.js';
import { isJsonObject, stableJson, type JsonObject } from './json-value.js';

/** A URL, or an object with one and with the resolution that is asked for. */
export function readUrl(kind: Media['kind'], value: unknown): Media | null {
  const url = isJsonObject(value) ? value['url'] : value;
  if (typeof url !== 'string') return null;
  const detail = isJsonObject(value) ? value['detail'] : null;
  return { kind, ...locate(url), name: null, detail: detail === 'low' || detail === 'high' ? detail : null };
}

/** A recording in `data`, as base64 or as a data URL. */
export function readAudio(value: unknown): Media | null {
  if (!isJsonObject(value) || typeof value['data'] !== 'string') return null;
  const { data, format } = value;
  const mimeType = typeof format === 'string' ? `audio/${format}` : null;
  const place = data.startsWith('data:') ? locate(data) : { inline: true, data, mimeType };
  return { kind: 'audio', ...place, name: null, detail: null };
}

/** A file by what it holds, by its id, or by its URL. */
export function readFile(value: unknown): Media | null {
  if (!isJsonObject(value)) return null;
  const name = typeof value['filename'] === 'string' ? value['filename'] : null;
  const data = value['file_data'];
  const id = value['file_id'] ?? value['file_url'];
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
export function unknownPart(part: JsonObject): Media {
  const { cache_control: _cacheMark, ...rest } = part;
  return { kind: 'other', inline: false, data: stableJson(rest), mimeType: null, name: null, detail: null };
}
