import { expect, test } from 'vitest';
import { createSseRewriter } from '../../src/sse/rewrite.js';

const rewrite = (data: string): string | null => (data === 'gone' ? null : data.replace('old', 'new\nlines'));

function rewritten(chunks: readonly Uint8Array[]): string {
  const rewriter = createSseRewriter(rewrite);
  const bytes = [...chunks.flatMap((chunk) => rewriter.push(chunk)), ...rewriter.end()];
  return new TextDecoder().decode(Uint8Array.from(bytes.flatMap((piece) => [...piece])));
}

const stream = ': hi\r\n\r\nevent: a\ndata:same\r\rid: 7\nevent: b\ndata: old ü\n\ndata: gone\n\ndata: ta';
const expected = ': hi\r\n\r\nevent: a\ndata:same\r\revent: b\ndata: new\ndata: lines ü\n\ndata: ta';

test('events whose data stays keep their very bytes, others are written anew or left out, however they are cut', () => {
  const bytes = new TextEncoder().encode(stream);
  expect(rewritten([bytes])).toBe(expected);
  for (let at = 1; at < bytes.length; at++) {
    expect(rewritten([bytes.subarray(0, at), bytes.subarray(at)])).toBe(expected);
  }
});

test('an event is passed on as soon as it is complete', () => {
  const rewriter = createSseRewriter(rewrite);
  expect(rewriter.push(new TextEncoder().encode('data: old'))).toEqual([]);
  expect(rewriter.push(new TextEncoder().encode('\n\n'))).toHaveLength(1);
  expect(rewriter.end()).toEqual([]);
});
