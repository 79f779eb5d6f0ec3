import type { TokenCounter } from '../core/ports.js';
import { BpeEncoder } from './bpe-encoder.js';
import { CountCache, keyOf } from './count-cache.js';
import type { Encoding } from './encoding.js';
import { mediaTokens } from './media.js';

/** Texts from this length on are worth remembering: tools and instructions come again with every request of a client. */
const REMEMBERED_CHARS = 2_000;
const REMEMBERED_TEXTS = 10_000;

/** Merge steps after which others get their turn: some hundredths of a second. */
const SLICE_STEPS = 100_000;

/** A counter that can do its work beforehand. */
export interface PatientCounter extends TokenCounter {
  /**
   * Counts texts in slices, between which the process serves others: a few megabytes take a second. The counter it resolves to
   * knows these texts.
   */
  ahead(texts: Iterable<string>): Promise<TokenCounter>;
}

/** Where packed ranks come from: a file, an imported asset. Asked once per encoding, when it is first needed. */
export type ReadPackedRanks = (encoding: Encoding) => Promise<Uint8Array>;

/** Rejects if the ranks cannot be read; the next call then tries again. */
export type LoadCounter = (encoding: Encoding) => Promise<PatientCounter>;

/** The counters of one process, each built when first asked for and shared from then on. */
export function createCounterLoader(readPackedRanks: ReadPackedRanks): LoadCounter {
  const counters = new Map<Encoding, Promise<PatientCounter>>();
  return (encoding) => {
    const known = counters.get(encoding);
    if (known !== undefined) return known;
    const counter = readPackedRanks(encoding).then((packed) => createCounter(encoding, packed));
    counters.set(encoding, counter);
    counter.catch(() => counters.delete(encoding));
    return counter;
  };
}

function createCounter(encoding: Encoding, packedRanks: Uint8Array): PatientCounter {
  const encoder = new BpeEncoder(encoding, packedRanks);
  const cache = new CountCache(REMEMBERED_TEXTS);

  function* counting(text: string, isDue: () => boolean): Generator<void, number> {
    if (text.length < REMEMBERED_CHARS) return yield* encoder.countInRuns(text, isDue);
    const key = keyOf(text);
    const known = cache.get(key);
    if (known !== undefined) return known;
    const counted = yield* encoder.countInRuns(text, isDue);
    cache.set(key, counted);
    return counted;
  }

  function count(text: string): number {
    if (text.length < REMEMBERED_CHARS) return encoder.count(text);
    const key = keyOf(text);
    const known = cache.get(key) ?? encoder.count(text);
    cache.set(key, known);
    return known;
  }

  return {
    tokenizer: encoding,
    countMedia: mediaTokens,
    count,
    async ahead(texts) {
      const counts = new Map<string, number>();
      let restedAt = encoder.steps;
      const isDue = (): boolean => encoder.steps - restedAt >= SLICE_STEPS;
      for (const text of texts) {
        if (counts.has(text)) continue;
        const work = counting(text, isDue);
        let slice = work.next();
        for (; slice.done !== true; slice = work.next()) {
          await new Promise((resolve) => setTimeout(resolve, 0));
          restedAt = encoder.steps;
        }
        counts.set(text, slice.value);
      }
      return { tokenizer: encoding, countMedia: mediaTokens, count: (text) => counts.get(text) ?? count(text) };
    },
  };
}
