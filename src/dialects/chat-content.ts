import type { Media } from '../core/message.js';
import { isJsonObject, type JsonObject } from './json-value.js';
import { readAudio, readFile, readUrl, unknownPart } from './openai-media.js';

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
