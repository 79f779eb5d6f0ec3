import { readRequestBody, type Decompress, type RequestBody } from './request-body.js';

/** `readRequestBody` where there is no zlib but web streams: gzip and deflate. */
export function decodeBody(
  body: AsyncIterable<Uint8Array> | null,
  contentEncoding: string | null,
  limitBytes: number,
): Promise<RequestBody> {
  return readRequestBody(body, contentEncoding, limitBytes, decompressorFor);
}

function decompressorFor(coding: string, bytes: Uint8Array): Decompress | null {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return inflate('gzip');
    case 'deflate':
      // By the standard a zlib stream; some clients send it without zlib's header.
      return inflate(((bytes[0] ?? 0) & 0x0f) === 8 ? 'deflate' : 'deflate-raw');
    default:
      return null;
  }
}

function inflate(format: 'gzip' | 'deflate' | 'deflate-raw'): Decompress {
  return async (bytes, limitBytes) => {
    if (bytes.byteLength === 0) throw new Error('nothing was compressed');
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    const compressed = new Blob([Uint8Array.from(bytes)]).stream();
    const inflated: ReadableStream<Uint8Array<ArrayBuffer>> = compressed.pipeThrough(new DecompressionStream(format));
    // Leaving the loop ends the work.
    for await (const chunk of inflated) {
      length += chunk.byteLength;
      if (length > limitBytes) return null;
      chunks.push(chunk);
    }
    return new Uint8Array(await new Blob(chunks).arrayBuffer());
  };
}
