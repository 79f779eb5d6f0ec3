import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mediaTokens } from '../../src/tokens/media.js';
import { jpeg, part, png, wav } from './media-parts.js';

const LARGEST_IMAGE = 1_445;

describe('an image', () => {
  it.each([
    [1, 1, 1],
    [512, 512, 1],
    [513, 512, 2],
    [768, 768, 4],
    [1024, 1024, 4],
    [2048, 4096, 6],
    [4096, 8192, 6],
    [2048, 768, 8],
    [100_000, 37_500, 8],
    [4096, 16, 4],
    [16, 1_000_000, 4],
    [1536, 768, 6],
    [3072, 1536, 6],
  ])('of %i × %i pixels costs a flat part and %i tiles', (width, height, tiles) => {
    expect(mediaTokens(part({ data: png(width, height) }))).toBe(85 + 170 * tiles);
    expect(mediaTokens(part({ data: png(height, width), detail: 'high' }))).toBe(85 + 170 * tiles);
  });

  it('of low detail costs the flat part, whatever its size', () => {
    expect(mediaTokens(part({ data: png(4096, 4096), detail: 'low' }))).toBe(85);
    expect(mediaTokens(part({ inline: false, data: 'https://example.com/a.png', detail: 'low' }))).toBe(85);
  });

  it('costs at most the largest one, and no larger one costs less on both sides', () => {
    const side = fc.integer({ min: 1, max: 30_000 });
    fc.assert(
      fc.property(side, side, (width, height) => {
        const tokens = mediaTokens(part({ data: png(width, height) }));
        expect(tokens).toBeGreaterThanOrEqual(85 + 170);
        expect(tokens).toBeLessThanOrEqual(LARGEST_IMAGE);
        expect(mediaTokens(part({ data: png(width * 2, height * 2) }))).toBeGreaterThanOrEqual(tokens);
      }),
    );
  });

  it('has its size read from behind a photograph’s metadata', () => {
    expect(mediaTokens(part({ data: jpeg(512, 512, 14) }))).toBe(255);
    expect(mediaTokens(part({ data: jpeg(512, 512, 150_000) }))).toBe(255);
  });

  it.each([
    ['a URL', part({ inline: false, data: 'https://example.com/a.png' })],
    ['no image at all', part({ data: 'AAAA'.repeat(10_000) })],
    ['not base64', part({ data: 'iVBORw0KGgo§§' })],
    ['cut off before its size', part({ data: png(10, 10).slice(0, 20) })],
    ['of no size', part({ data: png(0, 10) })],
    ['empty', part({})],
    ['a format no provider takes', part({ data: Buffer.from('<svg width="9" height="9"></svg>').toString('base64') })],
    ['a photograph whose size lies too far in', part({ data: jpeg(512, 512, 400_000) })],
  ])('that is %s costs as much as the largest', (_, media) => {
    expect(mediaTokens(media)).toBe(LARGEST_IMAGE);
  });

  it('never fails and never exceeds the largest, whatever bytes it claims to be', () => {
    const head = fc.constantFrom('89504e470d0a1a0a', 'ffd8ffe0', 'ffd8ffe1', '474946383961', '52494646', '');
    fc.assert(
      fc.property(head, fc.uint8Array({ maxLength: 300 }), (signature, rest) => {
        const data = Buffer.concat([Buffer.from(signature, 'hex'), rest]).toString('base64');
        expect(mediaTokens(part({ data }))).toBeLessThanOrEqual(LARGEST_IMAGE);
      }),
    );
  });

  it('costs the same however much base64 follows its head, C6', () => {
    expect(mediaTokens(part({ data: png(1024, 1024) + 'A'.repeat(4_000_000) }))).toBe(765);
  });
});

describe('a recording', () => {
  it('costs ten tokens a second by its WAV header', () => {
    expect(mediaTokens(part({ kind: 'audio', data: wav(48_000, 480_000 - 44) }))).toBe(100);
  });

  it('in another format costs as if it were at the lowest bit rate', () => {
    expect(mediaTokens(part({ kind: 'audio', data: 'SUQz'.repeat(1_000) }))).toBe(30);
  });

  it('with an absurd WAV header is taken at the nearest sensible rate', () => {
    expect(mediaTokens(part({ kind: 'audio', data: wav(0, 29_956) }))).toBe(300);
    expect(mediaTokens(part({ kind: 'audio', data: wav(0xffffffff, 3_072_000) }))).toBe(11);
  });

  it('that is only named, cut off or not base64 still has a price', () => {
    expect(mediaTokens(part({ kind: 'audio', inline: false, data: 'audio_1' }))).toBe(6_000);
    expect(mediaTokens(part({ kind: 'audio', data: 'UklGR' }))).toBe(1);
    expect(mediaTokens(part({ kind: 'audio', data: 'UklGR§'.repeat(100) }))).toBeGreaterThan(0);
  });
});

describe('a document or video', () => {
  it('is priced by its bytes, up to what providers take', () => {
    expect(mediaTokens(part({ kind: 'file', data: 'A'.repeat(4_000) }))).toBe(750);
    expect(mediaTokens(part({ kind: 'other', data: 'A'.repeat(4_000) }))).toBe(750);
    expect(mediaTokens(part({ kind: 'file', data: 'A'.repeat(40_000_000) }))).toBe(300_000);
    expect(mediaTokens(part({ kind: 'video', data: 'A'.repeat(4_000_000) }))).toBe(6_199);
  });

  it('that is only named has a flat price', () => {
    expect(mediaTokens(part({ kind: 'file', inline: false, data: 'file-1' }))).toBe(20_000);
    expect(mediaTokens(part({ kind: 'other', inline: false, data: '{}' }))).toBe(20_000);
    expect(mediaTokens(part({ kind: 'video', inline: false, data: 'https://example.com/v' }))).toBe(16_000);
  });
});
