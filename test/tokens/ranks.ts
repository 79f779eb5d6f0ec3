import cl100k from 'js-tiktoken/ranks/cl100k_base';
import o200k from 'js-tiktoken/ranks/o200k_base';
import type { Encoding } from '../../src/tokens/encoding.js';

/** The published data of each tokenizer: what ours is measured against. */
export const PUBLISHED = { o200k_base: o200k, cl100k_base: cl100k } satisfies Record<Encoding, typeof o200k>;

/** Ranks by token, its bytes written as one Latin-1 character each. */
export function readRanks(encoding: Encoding): ReadonlyMap<string, number> {
  const ranks = new Map<string, number>();
  for (const line of PUBLISHED[encoding].bpe_ranks.split('\n')) {
    const [, first, ...tokens] = line.split(' ');
    tokens.forEach((token, index) => ranks.set(Buffer.from(token, 'base64').toString('latin1'), Number(first) + index));
  }
  return ranks;
}
