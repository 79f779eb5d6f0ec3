import type { Media } from '../core/message.js';
import { isJsonObject, type JsonObject } from './json-value.js';
import { readAudio, readFile, readUrl, unknownPart } from './openai-media.js';

/** The content of a message or the output of a tool, taken apart. */
export interface Content {
  /** Text and refusal parts joined with nothing between: a part array equals the string it stands for (SPEC 1.3). */
  readonly text: string;
  readonly media: readonly Media[];
}

const TEXT_TYPES: ReadonlySet<unknown> = new Set(['input_text', 'output_text', 'text', 'summary_text']);

/** Reads a string, an array of parts, or nothing. Null for content of a wrong type. */
export function readContent(value: unknown): Content | null {
  if (value === undefined || value === null) return { text: '', media: [] };
  if (typeof value === 'string') return { text: value, media: [] };
  if (!Array.isArray(value)) return null;
  let text = '';
  const media: Media[] = [];
  for (const part of value) {
    if (!isJsonObject(part) || typeof part['type'] !== 'string') return null;
    if (isTextPart(part) || part['type'] === 'refusal') {
      const said = part['type'] === 'refusal' ? part['refusal'] : part['text'];
      if (typeof said !== 'string') return null;
      text += said;
    } else {
      media.push(readMedia(part) ?? unknownPart(part));
    }
  }
  return { text, media };
}

/**
 * Reads what a tool put out: a string, parts, a screenshot, the streams of a shell's commands, or nothing. Null for an output whose
 * shape nobody knows.
 */
export function readOutput(value: unknown): Content | null {
  if (isJsonObject(value)) return readContent([value]);
  if (!isCommandList(value)) return readContent(value);
  return { text: value.map(commandText).join('\n'), media: [] };
}

/** An output with `text` in the place of all its text (SPEC 7.3): media, and how commands ended, stay. */
export function shortenedOutput(output: unknown, text: string): unknown {
  if (isCommandList(output)) {
    return output.map((command, index) => ({ ...command, stdout: index === 0 ? text : '', stderr: '' }));
  }
  if (!Array.isArray(output)) return isJsonObject(output) ? output : text;
  const parts: readonly unknown[] = output;
  const place = parts.find(isTextPart);
  return parts.flatMap((part) => (part === place ? [{ ...place, text }] : isTextPart(part) ? [] : [part]));
}

function isTextPart(part: unknown): part is JsonObject {
  return isJsonObject(part) && TEXT_TYPES.has(part['type']);
}

function readMedia(part: JsonObject): Media | null {
  switch (part['type']) {
    case 'input_image':
    case 'computer_screenshot': {
      const { image_url: url, file_id: id, detail } = part;
      if (typeof url === 'string') return readUrl('image', { url, detail });
      return typeof id === 'string' ? readUrl('image', { url: id, detail }) : null;
    }
    case 'input_file':
      return readFile(part);
    case 'input_audio':
      return readAudio(part['input_audio']);
    default:
      return null;
  }
}

/** What a shell's commands put out, one entry a command: the only parts without a type. */
function isCommandList(value: unknown): value is readonly JsonObject[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((entry) => isJsonObject(entry) && entry['type'] === undefined && typeof entry['stdout'] === 'string')
  );
}

function commandText({ stdout, stderr, outcome }: JsonObject): string {
  const { type, exit_code: code } = isJsonObject(outcome) ? outcome : {};
  const ending = type === 'exit' ? `(exit code ${String(code)})` : typeof type === 'string' ? `(${type})` : '';
  return [stdout, stderr, ending].filter((piece) => typeof piece === 'string' && piece !== '').join('\n');
}
