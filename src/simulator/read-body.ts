import type { IncomingMessage } from 'node:http';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';

/** Reads a body to its end, telling of each piece; rejects if the client leaves before. */
export async function readBody(request: IncomingMessage, received: (bytes: number) => void): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const bytes of request as AsyncIterable<Buffer>) {
    pieces.push(bytes);
    received(bytes.length);
  }
  return Buffer.concat(pieces);
}

/** The JSON of a body, decompressed if need be; undefined if it is none. */
export function parseBody(bytes: Buffer, contentEncoding: string): unknown {
  try {
    return JSON.parse(decompressed(bytes, contentEncoding).toString('utf8'));
  } catch {
    return undefined;
  }
}

function decompressed(bytes: Buffer, contentEncoding: string): Buffer {
  switch (contentEncoding) {
    case 'gzip':
      return gunzipSync(bytes);
    case 'deflate':
      return inflateSync(bytes);
    case 'br':
      return brotliDecompressSync(bytes);
    default:
      return bytes;
  }
}
