import type { Media } from '../core/message.js';
import { isRecord } from './json-value.js';

/** The image, recording or file that a content part of any of the formats holds; null for other parts. */
export function mediaOf(part: Readonly<Record<string, unknown>>): Media | null {
  switch (part['type']) {
    case 'image_url':
      return isRecord(part['image_url']) ? image(part['image_url']['url'], part['image_url']['detail']) : null;
    case 'input_image':
      return image(part['image_url'] ?? part['file_id'], part['detail']);
    case 'input_audio':
      return isRecord(part['input_audio']) ? recording(part['input_audio']) : null;
    case 'file':
      return isRecord(part['file']) ? file(part['file']) : null;
    case 'input_file':
      return file(part);
    case 'image':
    case 'document':
      return isRecord(part['source']) ? sourced(part['type'] === 'image' ? 'image' : 'file', part['source']) : null;
    default:
      return null;
  }
}

function image(url: unknown, detail: unknown): Media {
  return {
    ...fromUrl('image', stringOf(url)),
    detail: detail === 'low' || detail === 'high' ? detail : null,
  };
}

function recording({ data, format }: Readonly<Record<string, unknown>>): Media {
  const mimeType = `audio/${stringOf(format)}`;
  return { kind: 'audio', inline: true, data: stringOf(data), mimeType, name: null, detail: null };
}

function file(described: Readonly<Record<string, unknown>>): Media {
  const place = described['file_data'] ?? described['file_id'] ?? described['file_url'];
  return { ...fromUrl('file', stringOf(place)), name: stringOf(described['filename']) || null };
}

/** Anthropic's; one whose source is text is none. */
function sourced(kind: Media['kind'], source: Readonly<Record<string, unknown>>): Media | null {
  const { type, data, media_type: mimeType } = source;
  if (type === 'base64') {
    return {
      kind,
      inline: true,
      data: stringOf(data),
      mimeType: stringOf(mimeType) || null,
      name: null,
      detail: null,
    };
  }
  return type === 'url' || type === 'file' ? fromUrl(kind, stringOf(source['url'] ?? source['file_id'])) : null;
}

function fromUrl(kind: Media['kind'], url: string): Media {
  const [, mimeType, data] = /^data:([^;,]*)[^,]*,(.*)$/s.exec(url) ?? [];
  return { kind, inline: data !== undefined, data: data ?? url, mimeType: mimeType ?? null, name: null, detail: null };
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
