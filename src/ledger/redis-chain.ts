/**
 * A chain as one value of a script, in which ids of equal width stand behind each other: a script cuts out the few it looks at,
 * where ten thousand values would all be read.
 */
export function packedChain(chain: readonly string[]): {
  readonly chain: Buffer;
  readonly width: number;
  readonly length: number;
} {
  const width = chain.reduce((widest, id) => Math.max(widest, Buffer.byteLength(id)), 1);
  const packed = Buffer.alloc(width * chain.length);
  for (const [index, id] of chain.entries()) packed.write(id, index * width);
  return { chain: packed, width, length: chain.length };
}
