import { Readable, pipeline } from 'node:stream';
import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { SpillwayError } from '../core/errors.js';
import { BodyQueue } from './body-queue.js';
import type { UpstreamResponse } from './upstream.js';

/** What is no longer true of a body once it is decoded. */
const OF_THE_CODING = new Set(['content-encoding', 'content-length', 'content-md5', 'content-digest']);

/**
 * Undoes a response's content coding, piece by piece as it comes, for whoever asked for none and is given one all the same. One in
 * a coding that is not known here, or in several, comes back as it is.
 */
export function decodeResponse(response: UpstreamResponse): UpstreamResponse {
  const coding =
    response.headers
      .find(([name]) => name === 'content-encoding')?.[1]
      .trim()
      .toLowerCase() ?? '';
  const decoder = decoderOf(coding);
  if (decoder === null) return response;
  return {
    status: response.status,
    headers: response.headers.filter(([name]) => !OF_THE_CODING.has(name)),
    body: decoded(response.body, coding, decoder),
  };
}

/** What decodes a body, by its first bytes; null for a coding that is not known. */
function decoderOf(coding: string): ((first: Uint8Array) => Transform) | null {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return () => zlib.createGunzip();
    case 'br':
      return () => zlib.createBrotliDecompress();
    case 'deflate':
      // By the standard a zlib stream; some servers send it without zlib's header.
      return (first) => (((first[0] ?? 0) & 0x0f) === 8 ? zlib.createInflate() : zlib.createInflateRaw());
    default:
      return null;
  }
}

function decoded(
  body: AsyncIterable<Uint8Array>,
  coding: string,
  decoderFor: (first: Uint8Array) => Transform,
): AsyncIterable<Uint8Array> {
  const source = body[Symbol.asyncIterator]();
  let decoder: Transform | null = null;
  let sourceError: unknown = null;
  const queue = new BodyQueue({
    pause: () => decoder?.pause(),
    resume: () => decoder?.resume(),
    stop() {
      decoder?.destroy();
      void source.return?.();
    },
  });
  async function* encoded(first: IteratorResult<Uint8Array, unknown>): AsyncGenerator<Uint8Array> {
    try {
      for (let step = first; step.done !== true; step = await source.next()) yield step.value;
    } catch (error) {
      sourceError = error;
      throw error;
    }
  }
  source.next().then(
    (first) => {
      // A body of no bytes, as of a HEAD, has nothing to decode.
      if (first.done === true) return queue.end();
      // Its own end tells, and not that of the pipeline, which does not wait for what is found missing at the last.
      decoder = decoderFor(first.value)
        .on('data', (chunk: Uint8Array) => queue.push(chunk))
        .on('end', () => queue.end())
        .on('error', (error) => {
          void source.return?.();
          queue.fail(sourceError ?? invalid(coding, error));
        });
      pipeline(Readable.from(encoded(first)), decoder, () => undefined);
    },
    (error: unknown) => queue.fail(error),
  );
  return queue;
}

function invalid(coding: string, cause: Error): SpillwayError {
  return new SpillwayError('upstream_unreachable', `the response is not valid ${coding}`, null, cause);
}
