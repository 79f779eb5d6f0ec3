import { SpillwayError } from '../core/errors.js';
import { leaveOpen } from './leave-open.js';

/** Every layer costs a pass over the body; no client stacks more. */
const MOST_CODINGS = 3;

export interface RequestBody {
  /** As it came, to be forwarded when nothing has to change. */
  readonly original: Uint8Array;
  /** Without its content codings, for reading; the same object when there were none. */
  readonly decoded: Uint8Array;
}

/** Undoes one coding; null if more than `limitBytes` come out, without going on. Rejects if the bytes are not in that coding. */
export type Decompress = (bytes: Uint8Array, limitBytes: number) => Promise<Uint8Array | null>;

/** What undoes a coding, by its lower-case name, on some platform; null if nothing there does. */
export type DecompressorFor = (coding: string, bytes: Uint8Array) => Decompress | null;

/**
 * Reads a request body whole and undoes its `content-encoding` (null or empty for none). Rejects with `body_too_large`
 * when it or what it inflates to passes `limitBytes`, without reading or inflating further; `unsupported_encoding`;
 * `invalid_request` when the bytes are not what the encoding says.
 */
export async function readRequestBody(
  body: AsyncIterable<Uint8Array> | null,
  contentEncoding: string | null,
  limitBytes: number,
  decompressorFor: DecompressorFor,
): Promise<RequestBody> {
  const codings = (contentEncoding ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > MOST_CODINGS) throw unsupported(codings.join(', '));
  const original = body === null ? new Uint8Array(0) : await readAll(body, limitBytes);
  let decoded = original;
  // The last coding named is the outermost.
  for (const coding of codings.toReversed()) {
    const decompress = decompressorFor(coding, decoded);
    if (decompress === null) throw unsupported(coding);
    decoded = await undo(coding, decompress, decoded, limitBytes);
  }
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
  if (first !== undefined && chunks.length === 1) return first;
  const whole = new Uint8Array(totalBytes);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}

async function undo(
  coding: string,
  decompress: Decompress,
  bytes: Uint8Array,
  limitBytes: number,
): Promise<Uint8Array> {
  const decoded = await decompress(bytes, limitBytes).catch((error: unknown) => {
    throw new SpillwayError('invalid_request', `the request body is not valid ${coding}`, 'content-encoding', error);
  });
  if (decoded === null) throw tooLarge(limitBytes, 'the request body, decoded,');
  return decoded;
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
