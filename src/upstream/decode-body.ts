import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { SpillwayError } from '../core/errors.js';
import { leaveOpen } from './leave-open.js';

const DEFAULT_BODY_LIMIT_BYTES = 32 * 1024 * 1024;

/** Every layer costs a pass over the body; no client stacks more. */
const MOST_CODINGS = 3;

export interface RequestBody {
  /** As it came, to be forwarded when nothing has to change. */
  readonly original: Uint8Array;
  /** Without its content codings, for reading; the same object when there were none. */
  readonly decoded: Uint8Array;
}

type Decompress = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Promise<Uint8Array>;

/**
 * Reads a request body whole and undoes its `content-encoding` (null or empty for none). Rejects with `body_too_large`
 * when it or what it inflates to passes `limitBytes`, without reading or inflating further; `unsupported_encoding`;
 * `invalid_request` when the bytes are not what the encoding says.
 */
export async function decodeBody(
  body: AsyncIterable<Uint8Array> | null,
  contentEncoding: string | null,
  limitBytes: number = DEFAULT_BODY_LIMIT_BYTES,
): Promise<RequestBody> {
  const codings = (contentEncoding ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > MOST_CODINGS) throw unsupported(codings.join(', '));
  const original = body === null ? new Uint8Array(0) : await readAll(body, limitBytes);
  let decoded = original;
  // The last coding named is the outermost.
  for (const coding of codings.toReversed()) decoded = await undo(coding, decoded, limitBytes);
  return { original, decoded };
}

async function readAll(body: AsyncIterable<Uint8Array>, limitBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let totalBytes = 0;
  for await (const chunk of leaveOpen(body)) {
    totalBytes += chunk.length;
    if (totalBytes > limitBytes) throw tooLarge(limitBytes, 'the request body');
    chunks.push(chunk);
  }
  const [first] = chunks;
  return first && chunks.length === 1 ? first : Buffer.concat(chunks, totalBytes);
}

async function undo(coding: string, bytes: Uint8Array, limitBytes: number): Promise<Uint8Array> {
  const decompress = decompressor(coding, bytes);
  if (!decompress) throw unsupported(coding);
  try {
    return await decompress(bytes, { maxOutputLength: limitBytes });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
      throw tooLarge(limitBytes, 'the request body, decoded,');
    }
    throw new SpillwayError('invalid_request', `the request body is not valid ${coding}`, 'content-encoding', error);
  }
}

function decompressor(coding: string, bytes: Uint8Array): Decompress | null {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return promisify(zlib.gunzip);
    case 'deflate':
      // By the standard a zlib stream; some clients send it without zlib's header.
      return ((bytes[0] ?? 0) & 0x0f) === 8 ? promisify(zlib.inflate) : promisify(zlib.inflateRaw);
    case 'br':
      return promisify(zlib.brotliDecompress);
    case 'zstd': {
      // In Node since 22.15.
      const zstd: unknown = Reflect.get(zlib, 'zstdDecompress');
      return isDecompressor(zstd) ? promisify(zstd) : null;
    }
    default:
      return null;
  }
}

function isDecompressor(value: unknown): value is typeof zlib.gunzip {
  return typeof value === 'function';
}

function unsupported(coding: string): SpillwayError {
  return new SpillwayError('unsupported_encoding', `cannot decode ${JSON.stringify(coding)}`, 'content-encoding');
}

function tooLarge(limitBytes: number, what: string): SpillwayError {
  return new SpillwayError(
    'body_too_large',
    `${what} is larger than the limit of ${limitBytes} bytes (SPILLWAY_BODY_LIMIT)`,
  );
}
