import type { TokenCounter } from '../core/ports.js';

const MOST_TEXTS = 20_000;

/** A counter that counts a text once: histories come again with every request. */
export function rememberingCounter(counter: TokenCounter): TokenCounter {
  const counts = new Map<string, number>();
  return {
    tokenizer: counter.tokenizer,
    countMedia: (media) => counter.countMedia(media),
    count: (text) => {
      const known = counts.get(text);
      if (known !== undefined) return known;
      if (counts.size >= MOST_TEXTS) counts.clear();
      const tokens = counter.count(text);
      counts.set(text, tokens);
      return tokens;
    },
  };
}
