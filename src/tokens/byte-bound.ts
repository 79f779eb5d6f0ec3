import type { Media } from '../core/message.js';
import { mediaTokens } from './media.js';

/**
 * At most how many input tokens a request can be, found without a tokenizer (SPEC 7.9); null where nothing bounds it.
 *
 * `bodyBytes` is the length of the JSON body, which is valid UTF-8, and `media` all its parts that are not text. A
 * token is at least one byte of text, JSON escapes only add bytes, and the punctuation of a message or tool in JSON
 * (over 20 bytes) outweighs what its frame costs in tokens. Inline images and recordings leave the byte count and add
 * their own bound. URLs and ids are prices unknown, and a document or video is compressed: no bound.
 */
export function byteBound(bodyBytes: number, media: readonly Media[]): number | null {
  let bound = bodyBytes;
  for (const part of media) {
    if (!part.inline || (part.kind !== 'image' && part.kind !== 'audio')) return null;
    bound += mediaTokens(part) - part.data.length;
  }
  return bound;
}
