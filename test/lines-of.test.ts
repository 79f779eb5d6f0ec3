import fc from 'fast-check';
import { expect, it } from 'vitest';
import { linesOf } from '../src/lines-of.js';

async function read(chunks: readonly Uint8Array[]): Promise<readonly string[]> {
  async function* source() {
    yield* chunks;
  }
  const lines: string[] = [];
  for await (const line of linesOf(source())) lines.push(line);
  return lines;
}

it('lines come out as they went in, wherever the chunks are cut', async () => {
  const line = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', ''));
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 7 }), async (lines, size) => {
      const bytes = new TextEncoder().encode(lines.map((text) => `${text}\n`).join(''));
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      expect(await read(chunks)).toEqual(lines);
    }),
  );
});

it('other separators than the newline are text, and a last line needs no end', async () => {
  const text = 'a\u2028b\u2029c\rd\u0085\n\ufeffe';
  expect(await read([new TextEncoder().encode(text)])).toEqual(['a\u2028b\u2029c\rd\u0085', '\ufeffe']);
  expect(await read([])).toEqual([]);
});

it('a line that is no UTF-8 is named, cut characters included', async () => {
  for (const bytes of [
    [0x61, 0x0a, 0xff, 0x0a],
    [0x61, 0x0a, 0xe2, 0x82],
  ]) {
    await expect(read([Uint8Array.from(bytes)])).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'line 2: it is not UTF-8',
    });
  }
});

it('a line without an end does not fill the memory', async () => {
  const chunk = new Uint8Array(64 * 1024 * 1024).fill(0x61);
  await expect(read(Array.from({ length: 5 }, () => chunk))).rejects.toMatchObject({
    message: 'line 1: it is longer than 268435456 bytes',
  });
});
