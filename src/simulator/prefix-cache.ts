import type { TokenCounter } from '../core/ports.js';
import type { PromptPart } from './prompt-tokens.js';

/** As OpenAI caches: from this many tokens on, in blocks. */
const SMALLEST_PREFIX_TOKENS = 1_024;
const BLOCK_TOKENS = 128;

/** Past this many characters everything is forgotten, as by a provider after a while. */
const MOST_CHARACTERS = 64_000_000;

/** How many of the parts that once followed a prefix are looked at for a common beginning, newest first. */
const COMPARED_PARTS = 64;

/** What a prompt met in the cache. */
export interface PrefixHit {
  /** Tokens that were read from it: whole blocks of the longest prefix that any earlier prompt of the model shares. */
  readonly cachedTokens: number;
  /** Tokens that were newly put into it, where the provider reports that. */
  readonly writtenTokens?: number | undefined;
  /**
   * The prompt does not go on from the newest earlier one that begins like it: something before that one's end was changed.
   * Tells of a conversation as long as its model serves no other.
   */
  readonly broken: boolean;
}

/** A provider's prompt cache. */
export interface PrefixCache {
  /** Looks a prompt up and remembers it. Parts in the order the model reads them, fixed ones first. */
  meet(model: string, prompt: readonly PromptPart[]): PrefixHit;
}

/** A place in the prompts of one model, which is a tree: what is shared is kept once. */
interface Place {
  readonly next: Map<string, Place>;
  /** The newest prompt that came by here ended here. */
  newestEnds: boolean;
}

export function createPrefixCache(counter: TokenCounter): PrefixCache {
  const roots = new Map<string, Place>();
  let characters = 0;
  return {
    meet(model, prompt) {
      if (characters > MOST_CHARACTERS) {
        roots.clear();
        characters = 0;
      }
      // Before any prompt nothing is behind the root that could be changed.
      const root = roots.get(model) ?? { next: new Map(), newestEnds: true };
      roots.set(model, root);
      const path = pathOf(prompt, root);
      const known = prompt.slice(0, path.length - 1);
      const fresh = prompt.slice(known.length);
      let place = path.at(-1) ?? root;
      const broken = !place.newestEnds;
      const [first] = fresh;
      const partly = first === undefined ? 0 : Math.min(first.tokens, counter.count(sharedStart(first.text, place)));
      const tokens = known.reduce((sum, part) => sum + part.tokens, partly);

      for (const passed of path) passed.newestEnds = false;
      for (const { text } of fresh) {
        const next: Place = { next: new Map(), newestEnds: false };
        place.next.set(text, next);
        characters += text.length;
        place = next;
      }
      place.newestEnds = true;
      const blocks = Math.floor(tokens / BLOCK_TOKENS) * BLOCK_TOKENS;
      return { cachedTokens: blocks >= SMALLEST_PREFIX_TOKENS ? blocks : 0, broken };
    },
  };
}

/** The places a prompt comes by as long as it is known: the root, and one for each known part. */
function pathOf(prompt: readonly PromptPart[], root: Place): readonly Place[] {
  const path = [root];
  for (const { text } of prompt) {
    const next = path.at(-1)?.next.get(text);
    if (next === undefined) break;
    path.push(next);
  }
  return path;
}

/** The longest beginning of a part that an earlier part at the same place has too. */
function sharedStart(text: string, { next }: Place): string {
  const newest = [...next.keys()].slice(-COMPARED_PARTS);
  return text.slice(0, Math.max(0, ...newest.map((other) => sharedLength(text, other))));
}

function sharedLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}
