import { createHash } from 'node:crypto';
import type { TokenCounter } from '../core/ports.js';
import { createPrefixCache } from './prefix-cache.js';
import type { PrefixCache } from './prefix-cache.js';
import type { PromptPart } from './prompt-tokens.js';

/** As Anthropic caches: no prefix below this many tokens. */
const SMALLEST_PREFIX_TOKENS = 1_024;

/** How far before a mark an earlier one is found. */
const LOOKED_BACK_PARTS = 20;

/** A cache that keeps what was marked and nothing else. A hit is a whole prefix, up to an earlier mark. */
export function createMarkedCache(counter: TokenCounter): PrefixCache {
  const order = createPrefixCache(counter);
  const kept = new Set<string>();
  return {
    meet: (model, prompt) => {
      const prefixes = prefixesOf(model, prompt);
      const marks = [...prefixes.keys()].filter(
        (index) => prompt[index]?.isMarked === true && (prefixes[index]?.tokens ?? 0) >= SMALLEST_PREFIX_TOKENS,
      );
      const inReach = marks.flatMap((mark) => prefixes.slice(Math.max(0, mark + 1 - LOOKED_BACK_PARTS), mark + 1));
      const cachedTokens = Math.max(0, ...inReach.filter(({ id }) => kept.has(id)).map(({ tokens }) => tokens));
      const markedTokens = Math.max(0, ...marks.map((mark) => prefixes[mark]?.tokens ?? 0));
      for (const mark of marks) kept.add(prefixes[mark]?.id ?? '');
      return { broken: order.meet(model, prompt).broken, cachedTokens, writtenTokens: markedTokens - cachedTokens };
    },
  };
}

/** For each part the prefix that it ends: an id, and its tokens. */
function prefixesOf(model: string, prompt: readonly PromptPart[]) {
  let id = model;
  let tokens = 0;
  return prompt.map((part) => {
    id = createHash('sha256').update(`${id}\n${part.text}`).digest('base64');
    tokens += part.tokens;
    return { id, tokens };
  });
}
