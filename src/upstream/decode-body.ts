import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { readRequestBody, type Decompress, type RequestBody } from './request-body.js';

const DEFAULT_BODY_LIMIT_BYTES = 32 * 1024 * 1024;

/** `readRequestBody` on Node: gzip, deflate, br, and zstd where zlib has it. */
export function decodeBody(
  body: AsyncIterable<Uint8Array> | null,
  contentEncoding: string | null,
  limitBytes: number = DEFAULT_BODY_LIMIT_BYTES,
): Promise<RequestBody> {
  return readRequestBody(body, contentEncoding, limitBytes, decompressorFor);
}

function decompressorFor(coding: string, bytes: Uint8Array): Decompress | null {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return limited(promisify(zlib.gunzip));
    case 'deflate':
      // By the standard a zlib stream; some clients send it without zlib's header.
      return limited(((bytes[0] ?? 0) & 0x0f) === 8 ? promisify(zlib.inflate) : promisify(zlib.inflateRaw));
    case 'br':
      return limited(promisify(zlib.brotliDecompress));
    case 'zstd': {
      // In Node since 22.15.
      const zstd: unknown = Reflect.get(zlib, 'zstdDecompress');
      return isDecompressor(zstd) ? limited(promisify(zstd)) : null;
    }
    default:
      return null;
  }
}

type Inflate = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Promise<Uint8Array>;

function limited(inflate: Inflate): Decompress {
  return (bytes, limitBytes) =>
    inflate(bytes, { maxOutputLength: limitBytes }).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') return null;
      throw error;
    });
}

function isDecompressor(value: unknown): value is typeof zlib.gunzip {
  return typeof value === 'function';
}
