import { setImmediate } from 'node:timers/promises';
import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeResponse } from '../../src/upstream/node-decode-response.js';

const text = JSON.stringify({ words: Array.from({ length: 2_000 }, (_, index) => `word ${index * 7919}`) });
const CODINGS = [
  ['gzip', zlib.gzipSync(text)],
  ['br', zlib.brotliCompressSync(text)],
  ['deflate', zlib.deflateSync(text)],
] as const;

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 1_000) yield bytes.subarray(at, at + 1_000);
}

async function read(coding: string, bytes: Uint8Array): Promise<string> {
  const { body } = decodeResponse({ status: 200, headers: [['content-encoding', coding]], body: pieces(bytes) });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

describe('a response in a coding that nobody asked for', () => {
  it.each(CODINGS)('comes decoded: %s', async (coding, bytes) => {
    expect(await read(coding, bytes)).toBe(text);
  });

  it.each(CODINGS)('that ends before it is whole fails alone: %s', async (coding, bytes) => {
    const uncaught: unknown[] = [];
    const note = (error: unknown): void => void uncaught.push(error);
    process.on('uncaughtException', note);
    try {
      await expect(read(coding, bytes.subarray(0, bytes.length >> 1))).rejects.toMatchObject({
        code: 'upstream_unreachable',
      });
      for (let turn = 0; turn < 20; turn++) await setImmediate();
    } finally {
      process.off('uncaughtException', note);
    }
    expect(uncaught).toEqual([]);
  });
});
