import { isTypedUserMessage } from '../core/message.js';
import type { SpineNode } from '../core/render.js';

/**
 * Ids of the part of a spine that a compaction of it may cover at most: what stands before its latest turn (SPEC 5.3), or all of it
 * where it has only one. Whatever becomes of a compaction there concerns every spine that this part lies on.
 */
export function coverablePart(spine: readonly SpineNode[]): readonly string[] {
  const latest = spine.findLastIndex((node) => !node.command && isTypedUserMessage(node.message));
  return spine.slice(0, latest > 0 ? latest : undefined).map((node) => node.id);
}
