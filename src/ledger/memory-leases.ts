import { ROOT } from '../core/node.js';
import type { Lease } from '../core/ports.js';
import type { Book } from './memory-book.js';

/** Null while a lease lasts that was given for a node of the chain (SPEC 5.11); those that ran out there end now. */
export function acquireLease(book: Book, chain: readonly string[], durationMs: number, now: number): Lease | null {
  const onChain = [...book.leases].filter(([head]) => chain.includes(head));
  if (onChain.some(([, lease]) => lease.expiresAt > now)) return null;
  for (const [head] of onChain) book.leases.delete(head);
  book.lastFence += 1;
  const lease = { head: chain.at(-1) ?? ROOT, fence: book.lastFence };
  book.leases.set(lease.head, { fence: lease.fence, expiresAt: now + durationMs });
  return lease;
}

/** Whether no other was given in its place: one that only ran out still holds. */
export function isHeld(book: Book, { head, fence }: Lease): boolean {
  return book.leases.get(head)?.fence === fence;
}

export function renewLease(book: Book, lease: Lease, durationMs: number, now: number): boolean {
  if (!isHeld(book, lease)) return false;
  book.leases.set(lease.head, { fence: lease.fence, expiresAt: now + durationMs });
  return true;
}

export function releaseLease(book: Book, lease: Lease): void {
  if (isHeld(book, lease)) book.leases.delete(lease.head);
}
