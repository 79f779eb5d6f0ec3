import type { ConversationEntry, ListPosition, TenantUsage } from '../core/ports.js';

/*
 * What crosses conversations, computed from all of them: the reference for other drivers.
 */

/** Those that are not deleted, latest used first, of equals the greater id. */
export function latestUsed(
  entries: readonly ConversationEntry[],
  tenant: string | null,
  limit: number,
  before: ListPosition | null,
): readonly ConversationEntry[] {
  return entries
    .filter((entry) => entry.deletedAt === null && (tenant === null || entry.tenant === tenant))
    .filter((entry) => before === null || byUse(entry, before) < 0)
    .toSorted((a, b) => byUse(b, a))
    .slice(0, limit);
}

export function longestUnused(
  entries: readonly ConversationEntry[],
  tenant: string | null,
  limit: number,
): readonly ConversationEntry[] {
  return entries
    .filter((entry) => tenant === null || entry.tenant === tenant)
    .toSorted(byUse)
    .slice(0, limit);
}

export function usageByTenant(entries: readonly ConversationEntry[]): readonly TenantUsage[] {
  return [...new Set(entries.map((entry) => entry.tenant))].map((tenant) => {
    const own = entries.filter((entry) => entry.tenant === tenant);
    return { tenant, conversations: own.length, bytes: own.reduce((sum, entry) => sum + entry.bytes, 0) };
  });
}

function byUse(a: ListPosition, b: ListPosition): number {
  return a.usedAt - b.usedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
