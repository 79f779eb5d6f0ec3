import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { SpillwayError } from '../../src/core/errors.js';
import { decodeBody } from '../../src/upstream/decode-body.js';

async function* chunks(...parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

const text = JSON.stringify({ model: 'm', messages: ['ä'.repeat(500)] });
const bytes = Buffer.from(text);

describe('decodeBody', () => {
  it.each([null, '', 'identity', ' Identity , identity'])(
    'yields the bytes themselves for encoding %j',
    async (encoding) => {
      const body = await decodeBody(chunks(bytes.subarray(0, 7), bytes.subarray(7)), encoding);
      expect(Buffer.from(body.original)).toEqual(bytes);
      expect(body.decoded).toBe(body.original);
    },
  );

  it('yields an empty body where there is none', async () => {
    expect((await decodeBody(null, null)).original).toHaveLength(0);
  });

  it.each([
    ['gzip', zlib.gzipSync(bytes)],
    ['X-GZIP', zlib.gzipSync(bytes)],
    ['deflate', zlib.deflateSync(bytes)],
    ['deflate', zlib.deflateRawSync(bytes)],
    ['br', zlib.brotliCompressSync(bytes)],
    ['gzip, br', zlib.brotliCompressSync(zlib.gzipSync(bytes))],
  ])('decodes %s and keeps the original beside it', async (encoding, encoded) => {
    const body = await decodeBody(chunks(encoded.subarray(0, 5), encoded.subarray(5)), encoding);
    expect(Buffer.from(body.decoded).toString()).toBe(text);
    expect(Buffer.from(body.original)).toEqual(encoded);
  });

  it('decodes zstd exactly where zlib has it', async () => {
    const compress: unknown = Reflect.get(zlib, 'zstdCompressSync');
    const encoded = typeof compress === 'function' ? (compress(bytes) as Buffer) : bytes;
    const outcome = await decodeBody(chunks(encoded), 'zstd').then(
      ({ decoded }) => Buffer.from(decoded).toString(),
      (error: unknown) => (error as SpillwayError).code,
    );
    expect(outcome).toBe(typeof compress === 'function' ? text : 'unsupported_encoding');
  });

  it.each(['compress', 'gzip, nonsense', 'gzip,gzip,gzip,gzip'])('refuses %j as unsupported', async (encoding) => {
    await expect(decodeBody(chunks(zlib.gzipSync(bytes)), encoding)).rejects.toMatchObject({
      code: 'unsupported_encoding',
      field: 'content-encoding',
    });
  });

  it.each(['gzip', 'deflate', 'br'])(
    'says invalid_request for bytes that are not %s, or only half of them',
    async (encoding) => {
      const half = { gzip: zlib.gzipSync, deflate: zlib.deflateSync, br: zlib.brotliCompressSync }[encoding]!(
        bytes,
      ).subarray(0, 30);
      for (const wrong of [bytes, half, new Uint8Array(0)]) {
        await expect(decodeBody(chunks(wrong), encoding)).rejects.toMatchObject({
          code: 'invalid_request',
          field: 'content-encoding',
          message: expect.not.stringContaining('messages'),
        });
      }
    },
  );

  it('takes a body of exactly the limit, and refuses one byte more, naming the limit', async () => {
    expect((await decodeBody(chunks(bytes), null, bytes.length)).decoded).toHaveLength(bytes.length);
    await expect(decodeBody(chunks(bytes), null, bytes.length - 1)).rejects.toMatchObject({
      code: 'body_too_large',
      message: expect.stringContaining(`${bytes.length - 1} bytes`),
    });
  });

  it('stops reading at the limit and leaves the body open, so that an answer can still be sent', async () => {
    let read = 0;
    let isClosed = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          read += 1;
          yield new Uint8Array(10);
        }
      } finally {
        isClosed = true;
      }
    }
    await expect(decodeBody(endless(), null, 95)).rejects.toMatchObject({ code: 'body_too_large' });
    expect([read, isClosed]).toEqual([10, false]);
  });

  it.each([
    ['gzip', zlib.gzipSync],
    ['deflate', zlib.deflateSync],
    [
      'br',
      (input: Uint8Array) => zlib.brotliCompressSync(input, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
    ],
  ])('holds a %s bomb to the same limit without inflating past it', async (encoding, compress) => {
    const bomb = compress(Buffer.alloc(8 * 1024 * 1024));
    // Without its last bytes: whoever inflates to the end finds it broken instead of too large.
    await expect(decodeBody(chunks(bomb.subarray(0, -8)), encoding, 100_000)).rejects.toMatchObject({
      code: 'body_too_large',
      message: expect.stringContaining('100000 bytes'),
    });
  });

  it('holds every layer to the limit, not only the last', async () => {
    const layers = zlib.gzipSync(zlib.gzipSync(Buffer.alloc(4_000_000)));
    expect(layers.length).toBeLessThan(1000);
    await expect(decodeBody(chunks(layers), 'gzip, gzip', 1000)).rejects.toMatchObject({ code: 'body_too_large' });
  });
});
