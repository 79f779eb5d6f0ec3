import { entryTokens } from '../estimate.js';
import type { Ruler } from '../estimate.js';
import { isTypedUserMessage } from '../message.js';
import type { Entry, SpineNode, View } from '../render.js';

/** Where the tokens of a view are that nothing may shorten (SPEC 7.7), by the local estimate. */
export interface ProtectedParts {
  /** Instructions, tools, response schema. */
  readonly fixed: number;
  /** What the user wrote. */
  readonly userText: number;
  /** The latest assistant message and all after it. */
  readonly openGroup: number;
  /** Messages with images, recordings and files, wherever they stand. */
  readonly media: number;
}

export function protectedParts(spine: readonly SpineNode[], view: View, ruler: Ruler): ProtectedParts {
  const latest = view.tail.findLastIndex((entry) => nodeAt(spine, entry)?.message.role === 'llm');
  const sum = (entries: readonly Entry[]): number =>
    entries.reduce((total, entry) => total + entryTokens(entry, ruler), 0);
  const hasMedia = (entry: Entry): boolean => (nodeAt(spine, entry)?.message.media.length ?? 0) > 0;
  const isUser = (entry: Entry): boolean => {
    const node = nodeAt(spine, entry);
    return node !== null && isTypedUserMessage(node.message) && !hasMedia(entry);
  };
  const open = latest < 0 ? [] : view.tail.slice(latest);
  return {
    fixed: ruler.fixedTokens + view.pinned.reduce((total, index) => total + ruler.tokensAt(index), 0),
    userText: sum(view.tail.filter(isUser)),
    openGroup: sum(open.filter((entry) => !isUser(entry) && !hasMedia(entry))),
    media: sum(view.tail.filter(hasMedia)),
  };
}

function nodeAt(spine: readonly SpineNode[], entry: Entry): SpineNode | null {
  return entry.kind === 'checkpoint' ? null : (spine[entry.index] ?? null);
}
