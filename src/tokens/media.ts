import { imageSize } from 'image-size';
import type { Media } from '../core/message.js';

/** OpenAI's price of an image: a flat part, and for high detail a part for each tile it is cut into after shrinking. */
const IMAGE_TOKENS = 85;
const TILE_TOKENS = 170;
const TILE_PIXELS = 512;
const MAX_LONG_SIDE = 2048;
const MAX_SHORT_SIDE = 768;
/** The most tiles a shrunken image can have, 2048 × 768 pixels: the price of one whose size is unknown. */
const MAX_IMAGE_TOKENS =
  IMAGE_TOKENS + TILE_TOKENS * (MAX_LONG_SIDE / TILE_PIXELS) * Math.ceil(MAX_SHORT_SIDE / TILE_PIXELS);

/** How the formats that providers take (PNG, JPEG, GIF, WebP) begin in base64. No other is parsed. */
const IMAGE_SIGNATURES: readonly string[] = ['iVBORw0KGgo', '/9j/', 'R0lGOD', 'UklGR'];
/** Base64 characters that are decoded to find the size; a second, longer look is for JPEGs that begin with metadata. */
const IMAGE_HEADER_CHARS: readonly number[] = [4_096, 262_144];

/**
 * A token for each tenth of a second. Speech codecs go down to 8 kbit/s; nothing is denser than 8 × 96 kHz × 4 bytes.
 */
const AUDIO_TOKENS_PER_SECOND = 10;
const MIN_AUDIO_BYTES_PER_SECOND = 1_000;
const MAX_AUDIO_BYTES_PER_SECOND = 3_072_000;
const WAV_SIGNATURE = 'UklGR';
const WAV_HEADER_CHARS = 60;
const WAV_BYTE_RATE_OFFSET = 28;
/** Ten minutes, for a recording that is only named. */
const NAMED_AUDIO_TOKENS = 6_000;

/**
 * What a document costs in practice at most: four bytes a token as for plain text, and the 100 pages providers take.
 */
const DOCUMENT_BYTES_PER_TOKEN = 4;
const MAX_DOCUMENT_TOKENS = 300_000;
const NAMED_DOCUMENT_TOKENS = 20_000;

/** 258 tokens a second at 1 Mbit/s; a minute for one that is only named. */
const VIDEO_BYTES_PER_TOKEN = 484;
const NAMED_VIDEO_TOKENS = 16_000;

/**
 * What a part that is not text costs in tokens, never by the length of its base64. Exact by OpenAI's tile rule for an
 * inline image whose size can be read; else an upper bound: the largest image, a recording at the lowest bit rate. A
 * document, a video and whatever is only named by URL or id has no true bound: it gets the ceiling by bytes or the flat
 * one above.
 */
export function mediaTokens(media: Media): number {
  switch (media.kind) {
    case 'image':
      return imageTokens(media);
    case 'audio':
      return media.inline ? audioTokens(media.data) : NAMED_AUDIO_TOKENS;
    case 'video':
      return media.inline ? Math.ceil(byteLength(media.data) / VIDEO_BYTES_PER_TOKEN) : NAMED_VIDEO_TOKENS;
    case 'file':
    case 'other':
      if (!media.inline) return NAMED_DOCUMENT_TOKENS;
      return Math.min(Math.ceil(byteLength(media.data) / DOCUMENT_BYTES_PER_TOKEN), MAX_DOCUMENT_TOKENS);
  }
}

function imageTokens(media: Media): number {
  if (media.detail === 'low') return IMAGE_TOKENS;
  const size = media.inline ? sizeOf(media.data) : null;
  if (size === null) return MAX_IMAGE_TOKENS;
  const long = Math.max(size.width, size.height);
  const short = Math.min(size.width, size.height);
  // Fit into the square, then shrink the shorter side: of the two, the smaller scale holds. Never enlarged.
  const [target, source] =
    short * MAX_LONG_SIDE > long * MAX_SHORT_SIDE
      ? [Math.min(short, MAX_SHORT_SIDE), short]
      : [Math.min(long, MAX_LONG_SIDE), long];
  // Whole numbers up to the one division: a side that is exactly two tiles long must not round up to three.
  const tiles = (side: number): number => Math.ceil((side * target) / (source * TILE_PIXELS));
  return IMAGE_TOKENS + TILE_TOKENS * tiles(long) * tiles(short);
}

function sizeOf(base64: string): { readonly width: number; readonly height: number } | null {
  if (!IMAGE_SIGNATURES.some((signature) => base64.startsWith(signature))) return null;
  for (const chars of IMAGE_HEADER_CHARS) {
    try {
      const { width, height } = imageSize(decode(base64.slice(0, chars)));
      if (width > 0 && height > 0) return { width, height };
    } catch {
      // Cut off before the size, or damaged: look further, then take the largest.
    }
  }
  return null;
}

function audioTokens(base64: string): number {
  const seconds = byteLength(base64) / bytesPerSecond(base64);
  return Math.ceil(seconds * AUDIO_TOKENS_PER_SECOND);
}

/** What a WAV header states, within reason; for every other format the least that speech takes. */
function bytesPerSecond(base64: string): number {
  if (!base64.startsWith(WAV_SIGNATURE) || base64.length < WAV_HEADER_CHARS) return MIN_AUDIO_BYTES_PER_SECOND;
  try {
    const header = decode(base64.slice(0, WAV_HEADER_CHARS));
    const stated = new DataView(header.buffer).getUint32(WAV_BYTE_RATE_OFFSET, true);
    return Math.min(Math.max(stated, MIN_AUDIO_BYTES_PER_SECOND), MAX_AUDIO_BYTES_PER_SECOND);
  } catch {
    return MIN_AUDIO_BYTES_PER_SECOND;
  }
}

function byteLength(base64: string): number {
  return Math.ceil((base64.length * 3) / 4);
}

/** Throws if it is not base64. */
function decode(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
