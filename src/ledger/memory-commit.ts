import { ROOT } from '../core/node.js';
import type { CommitSummary } from '../core/ports.js';
import { isSpine, nodesNamed, walk, type Book } from './memory-book.js';
import { isHeld } from './memory-leases.js';
import { activeOn } from './memory-view.js';

/** Why a summary must not be committed any more, or null (SPEC 5.8). */
export function staleBecause(book: Book, { node, chain, lease, ...commit }: CommitSummary): string | null {
  const covered = node.metadata.covers_ids;
  const isGone = (id: string): boolean => nodesNamed(book, [id]).every(({ deletedAt }) => deletedAt !== null);
  if (lease !== null && !isHeld(book, lease)) return 'the lease was lost';
  if (book.conversation.deletedAt !== null) return 'the conversation was deleted';
  if (covered.some((id, index) => id !== chain[index])) return 'the coverage is not the start of the spine';
  if (!isSpine(book, covered) || covered.some(isGone)) return 'a covered node is gone';
  if (isGone(chain.at(-1) ?? ROOT)) return 'the head is gone';
  if ((activeOn(book, chain, commit.policy)?.id ?? null) !== commit.expectedActive)
    return 'another summary became active';
  const headSpine = walk(book, book.conversation.head).map((ancestor) => ancestor.id);
  if (commit.headMustDescend && !headSpine.includes(covered.at(-1) ?? ROOT)) return 'HEAD left the segment';
  return book.nodes.has(node.id) ? 'the summary was written before' : null;
}
