import { describe, expect, it } from 'vitest';
import { decodeBody } from '../../src/upstream/fetch-decode-body.js';

const LIMIT = 1_000_000;
const text = JSON.stringify({ model: 'm', messages: ['ä'.repeat(500)] });
const bytes = new TextEncoder().encode(text);

async function compressed(format: 'gzip' | 'deflate' | 'deflate-raw', input: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([Uint8Array.from(input)]).stream().pipeThrough(new CompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function* pieces(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body.subarray(0, 5);
  yield body.subarray(5);
}

describe('decodeBody in a Worker', () => {
  it.each([
    ['gzip', 'gzip'],
    ['X-GZIP', 'gzip'],
    ['deflate', 'deflate'],
    ['deflate', 'deflate-raw'],
  ] as const)('decodes %s, compressed as %s, and keeps the original beside it', async (coding, format) => {
    const encoded = await compressed(format, bytes);
    const body = await decodeBody(pieces(encoded), coding, LIMIT);
    expect(new TextDecoder().decode(body.decoded)).toBe(text);
    expect(body.original).toEqual(encoded);
  });

  it('yields the bytes themselves without a coding', async () => {
    const body = await decodeBody(pieces(bytes), null, LIMIT);
    expect(body.original).toEqual(bytes);
    expect(body.decoded).toBe(body.original);
  });

  it.each(['br', 'zstd', 'compress'])('refuses %s, which nothing there undoes', async (coding) => {
    const refused = { code: 'unsupported_encoding', field: 'content-encoding' };
    await expect(decodeBody(pieces(bytes), coding, LIMIT)).rejects.toMatchObject(refused);
  });

  it.each(['gzip', 'deflate'] as const)('refuses bytes that are not %s, or only half of them', async (coding) => {
    const half = (await compressed(coding, bytes)).subarray(0, 30);
    for (const wrong of [bytes, half, new Uint8Array(0)]) {
      await expect(decodeBody(pieces(wrong), coding, LIMIT)).rejects.toMatchObject({
        code: 'invalid_request',
        field: 'content-encoding',
      });
    }
  });

  it('holds a bomb to the limit', async () => {
    const bomb = await compressed('gzip', new Uint8Array(8 * 1024 * 1024));
    await expect(decodeBody(pieces(bomb), 'gzip', LIMIT)).rejects.toMatchObject({ code: 'body_too_large' });
  });
});
