import type { TokenCounter } from '../core/ports.js';
import { BpeEncoder } from './bpe-encoder.js';
import { CountCache } from './count-cache.js';
import type { Encoding } from './encoding.js';
import { mediaTokens } from './media.js';

/** Texts of these lengths are worth remembering: tools and instructions come again with every request of a client. */
const CACHED_MIN_CHARS = 2_000;
const CACHED_MAX_CHARS = 500_000;
const CACHE_LIMIT_CHARS = 2_000_000;

/** Where packed ranks come from: a file, an imported asset. Asked once per encoding, when it is first needed. */
export type ReadPackedRanks = (encoding: Encoding) => Promise<Uint8Array>;

/** Rejects if the ranks cannot be read; the next call then tries again. */
export type LoadCounter = (encoding: Encoding) => Promise<TokenCounter>;

/** The counters of one process, each built when first asked for and shared from then on. */
export function createCounterLoader(readPackedRanks: ReadPackedRanks): LoadCounter {
  const counters = new Map<Encoding, Promise<TokenCounter>>();
  return (encoding) => {
    const known = counters.get(encoding);
    if (known !== undefined) return known;
    const counter = readPackedRanks(encoding).then((packed) => createCounter(encoding, packed));
    counters.set(encoding, counter);
    counter.catch(() => counters.delete(encoding));
    return counter;
  };
}

function createCounter(encoding: Encoding, packedRanks: Uint8Array): TokenCounter {
  const encoder = new BpeEncoder(encoding, packedRanks);
  const cache = new CountCache(CACHE_LIMIT_CHARS);
  return {
    tokenizer: encoding,
    countMedia: mediaTokens,
    count(text) {
      if (text.length < CACHED_MIN_CHARS || text.length > CACHED_MAX_CHARS) return encoder.count(text);
      const known = cache.get(text);
      if (known !== undefined) return known;
      const count = encoder.count(text);
      cache.add(text, count);
      return count;
    },
  };
}
