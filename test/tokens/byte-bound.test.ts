import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BpeEncoder } from '../../src/tokens/bpe-encoder.js';
import { byteBound } from '../../src/tokens/byte-bound.js';
import { packRanks } from '../../src/tokens/packed-ranks.js';
import { hostileText } from './hostile-text.js';
import { part, png, wav } from './media-parts.js';
import { PUBLISHED } from './ranks.js';

/** What a chat message costs beside its text: three tokens of frame, and one more for a name. */
const FRAME_TOKENS = 4;

describe('the byte bound, SPEC 7.9', () => {
  const encoder = new BpeEncoder('cl100k_base', packRanks(PUBLISHED.cl100k_base.bpe_ranks));

  it('is at least the tokens of every message and its frame, whatever the text and however JSON writes it', () => {
    fc.assert(
      fc.property(fc.array(hostileText, { minLength: 1, maxLength: 5 }), fc.boolean(), (texts, escapesAll) => {
        const messages = texts.map((content) => ({ role: 'user', content }));
        const json = JSON.stringify({ model: 'm', messages });
        const body = escapesAll
          ? json.replaceAll(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
          : json;
        const tokens = texts.reduce((sum, text) => sum + encoder.count(text) + encoder.count('user') + FRAME_TOKENS, 0);
        expect(byteBound(Buffer.byteLength(body), [])).toBeGreaterThanOrEqual(tokens);
      }),
      { numRuns: 500 },
    );
  });

  it('takes inline images and recordings out of the bytes and adds their own bound', () => {
    const image = part({ data: png(1024, 1024) + 'A'.repeat(1_000_000) });
    const recording = part({ kind: 'audio', data: wav(48_000, 479_956) });
    const body = JSON.stringify({ text: 'hello', parts: [image.data, recording.data, image.data] });
    const rest = body.length - 2 * image.data.length - recording.data.length;
    expect(byteBound(body.length, [image, recording, image])).toBe(rest + 2 * 765 + 100);
  });

  it.each([
    ['an image by URL', part({ inline: false, data: 'https://example.com/a.png' })],
    ['a file by id', part({ kind: 'file', inline: false, data: 'file-1' })],
    ['an inline document', part({ kind: 'file', data: 'JVBERi0=' })],
    ['an inline video', part({ kind: 'video', data: 'AAAA' })],
    ['a part of an unknown kind', part({ kind: 'other', inline: false, data: '{}' })],
  ])('does not exist for %s', (_, media) => {
    expect(byteBound(1_000, [part({ data: png(1, 1) }), media])).toBeNull();
  });

  it('is the length of the body where there is no media', () => {
    expect(byteBound(1_234, [])).toBe(1_234);
  });
});
