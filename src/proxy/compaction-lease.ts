import type { ConversationKey, Ledger, Lease } from '../core/ports.js';
import type { Sleep } from './sleep.js';

/** How long a process that died keeps others from its spine. */
const LEASE_MS = 15_000;

/** Pauses between two looks at a lease that another process has: the first, and the longest they grow to. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** The right to compact a spine, kept while the work lasts (SPEC 5.11). */
export interface HeldLease {
  readonly lease: Lease;
  /** Aborted when another process was given it: what is made from then on cannot be committed. */
  readonly lost: AbortSignal;
  /** Gives it back; never rejects. */
  release(): Promise<void>;
}

export interface LeaseDeps {
  readonly ledger: Pick<Ledger, 'acquireLease' | 'renewLease' | 'releaseLease'>;
  readonly sleep: Sleep;
}

/**
 * Takes the lease of a spine, given from its first node to the last that a compaction may cover, and renews it until it is given
 * back. Null while another process has it, and stays so for `patienceMs`, asked before every look. Rejects as the ledger does.
 */
export async function takeLease(
  conversation: ConversationKey,
  chain: readonly string[],
  patienceMs: () => number,
  deps: LeaseDeps,
): Promise<HeldLease | null> {
  const never = new AbortController().signal;
  let pauseMs = FIRST_PAUSE_MS;
  let lease = await deps.ledger.acquireLease(conversation, chain, LEASE_MS);
  for (let leftMs = patienceMs(); lease === null && leftMs > 0; leftMs = patienceMs()) {
    await deps.sleep(Math.min(pauseMs, leftMs), never);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    lease = await deps.ledger.acquireLease(conversation, chain, LEASE_MS);
  }
  return lease === null ? null : hold(conversation, lease, deps);
}

function hold(conversation: ConversationKey, lease: Lease, { ledger, sleep }: LeaseDeps): HeldLease {
  const ended = new AbortController();
  const lost = new AbortController();
  const renew = async (): Promise<void> => {
    for (;;) {
      await sleep(LEASE_MS / 3, ended.signal);
      if (ended.signal.aborted) return;
      // A store that does not answer now is asked again; the commit has the last word.
      const isHeld = await ledger.renewLease(conversation, lease, LEASE_MS).catch(() => true);
      if (!isHeld) return lost.abort();
    }
  };
  const renewing = renew();
  return {
    lease,
    lost: lost.signal,
    async release() {
      ended.abort();
      // A renewal that arrived behind the release would begin the lease anew.
      await renewing;
      await ledger.releaseLease(conversation, lease).catch(() => undefined);
    },
  };
}
