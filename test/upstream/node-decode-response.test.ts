import { setTimeout } from 'node:timers/promises';
import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeResponse } from '../../src/upstream/node-decode-response.js';

const text = JSON.stringify({ words: Array.from({ length: 2_000 }, (_, index) => `word ${index * 7919}`) });
const CODINGS = [
  ['gzip', zlib.gzipSync(text)],
  ['br', zlib.brotliCompressSync(text)],
  ['deflate', zlib.deflateSync(text)],
] as const;

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(coding: string, bytes: Uint8Array, size: number): Promise<string> {
  const { body } = decodeResponse({ status: 200, headers: [['content-encoding', coding]], body: pieces(bytes, size) });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

describe('a response in a coding that nobody asked for', () => {
  const EACH = CODINGS.flatMap(([coding, bytes]) =>
    [bytes.length, 1_000].map((size) => [coding, size, bytes] as const),
  );

  it.each(EACH)('comes decoded: %s in pieces of %d', async (coding, size, bytes) => {
    expect(await read(coding, bytes, size)).toBe(text);
  });

  it.each(EACH)('that ends before it is whole fails alone: %s in pieces of %d', async (coding, size, bytes) => {
    const uncaught: unknown[] = [];
    const note = (error: unknown): void => void uncaught.push(error);
    process.on('uncaughtException', note);
    try {
      await expect(read(coding, bytes.subarray(0, bytes.length >> 1), size)).rejects.toMatchObject({
        code: 'upstream_unreachable',
      });
      // Long enough for what the decoder says after its end; nothing is waited for.
      await setTimeout(50);
    } finally {
      process.off('uncaughtException', note);
    }
    expect(uncaught).toEqual([]);
  });
});
