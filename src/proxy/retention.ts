import type { ConversationEntry, ConversationKey, Directory, Ledger } from '../core/ports.js';

/** How long and how much is kept (SPEC 2.6). */
export interface RetentionLimits {
  /** Erased that long after the last use; null keeps it for ever. */
  readonly keepMs: number | null;
  /** Bytes that one tenant may keep; null is no limit. */
  readonly tenantBytes: number | null;
}

export interface RetentionDeps {
  readonly ledger: Pick<Ledger, 'eraseConversation'>;
  readonly directory: Pick<Directory, 'oldest' | 'tenants'>;
  readonly limits: RetentionLimits;
  /** Told of each that is gone, for what is remembered of it elsewhere. */
  onErased(conversation: ConversationKey): void;
  /** Lets requests go first; awaited after every conversation. */
  pause(): Promise<void>;
  /** Ends a sweep before its next conversation. */
  readonly stopped: AbortSignal;
}

export interface Sweep {
  readonly conversations: number;
  readonly bytes: number;
}

/** Conversations asked for at once. */
const BATCH = 20;

/** Size alone takes none that was used so lately: a client is likely to be in the middle of it. */
const IN_USE_MS = 60 * 60_000;

/**
 * Erases what was last used longer ago than the limit, then the least lately used conversations of each tenant that keeps too
 * much: whole ones, deleted ones too. One that is used meanwhile stays. Several processes may sweep one store at once.
 * Rejects as the store does; what was erased before that stays erased.
 */
export async function sweep(deps: RetentionDeps, now: number): Promise<Sweep> {
  const { keepMs, tenantBytes } = deps.limits;
  const erased: ConversationEntry[] = [];
  const erase = async (entry: ConversationEntry, unusedSince: number): Promise<boolean> => {
    const isGone = await deps.ledger.eraseConversation(entry, unusedSince);
    if (isGone) {
      erased.push(entry);
      deps.onErased(entry);
    }
    await deps.pause();
    return isGone;
  };

  if (keepMs !== null) {
    const unusedSince = now - keepMs;
    await eraseOldest(null, deps, async (entry) =>
      entry.usedAt >= unusedSince ? 'enough' : erase(entry, unusedSince),
    );
  }
  if (tenantBytes !== null) {
    for (const { tenant, bytes } of await deps.directory.tenants()) {
      let excess = bytes - tenantBytes;
      await eraseOldest(tenant, deps, async (entry) => {
        if (excess <= 0 || entry.usedAt >= now - IN_USE_MS) return 'enough';
        const isGone = await erase(entry, entry.usedAt + 1);
        if (isGone) excess -= entry.bytes;
        return isGone;
      });
    }
  }
  return { conversations: erased.length, bytes: erased.reduce((sum, entry) => sum + entry.bytes, 0) };
}

/** Offers the least lately used conversations, batch by batch, until one is `enough` or a batch loses none. */
async function eraseOldest(
  tenant: string | null,
  { directory, stopped }: RetentionDeps,
  eraseOne: (entry: ConversationEntry) => Promise<boolean | 'enough'>,
): Promise<void> {
  let goesOn = true;
  while (goesOn) {
    // What others erased or used meanwhile may still stand in the list, so that only progress is a reason to read it again.
    goesOn = false;
    for (const entry of await directory.oldest(tenant, BATCH)) {
      if (stopped.aborted) return;
      const gone = await eraseOne(entry);
      if (gone === 'enough') return;
      goesOn ||= gone;
    }
  }
}
