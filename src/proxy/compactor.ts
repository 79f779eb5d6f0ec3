import type { CompactionInput } from '../core/compaction/compact.js';
import type { Purse } from '../core/compaction/purse.js';
import type { Trigger } from '../core/node.js';
import type { ConversationKey, Summarizer, Summary, SummaryPolicy, TokenCounter } from '../core/ports.js';
import { segmentOn } from '../core/summary.js';
import { compactAndCommit } from './compact-and-commit.js';
import type { CompactAndCommitDeps } from './compact-and-commit.js';
import { coverablePart } from './coverable-part.js';

/** What a compaction did, SPEC 5.10. Token counts are local estimates of the whole view. */
export interface CompactionReport {
  readonly outcome: 'compacted' | 'no_op' | 'rejected' | 'stale' | 'failed' | 'fixed_overhead';
  /** A stable word; the same as `outcome` where there is nothing to add. `busy`: another one ran, and nothing was tried. */
  readonly reason: string;
  readonly coveredCount: number;
  readonly tokensBefore: number | null;
  readonly tokensAfter: number | null;
  readonly calls: number;
  readonly durationMs: number;
  /** The summary that was committed; null for every other outcome. */
  readonly summary: Summary | null;
}

export interface CompactionJob {
  readonly conversation: ConversationKey;
  readonly policy: SummaryPolicy;
  readonly trigger: Trigger;
  /** Whether it waits for a compaction of another process; otherwise it is `busy` at once. */
  readonly waits: boolean;
  readonly input: CompactionInput;
  readonly counter: TokenCounter;
  readonly summarizer: Summarizer;
  readonly purse: Purse;
  readonly model: string;
}

export interface Compactor {
  /**
   * Runs one compaction and commits it, or joins one that runs for this spine already; those of forks run side by side (SPEC 5.11). It
   * waits for another no longer than its purse has time, and is `busy` then. Rejects only when `closed` aborts; what was begun goes
   * on (SPEC 5.6).
   */
  run(job: CompactionJob, closed: AbortSignal): Promise<CompactionReport>;
  /** Resolves when nothing runs any more. */
  drain(): Promise<void>;
}

/** A compaction under way. */
interface Running {
  readonly conversation: string;
  readonly chain: ReadonlySet<string>;
  readonly head: string | undefined;
  /** The last node that it may cover. */
  readonly reach: string | undefined;
  readonly report: Promise<CompactionReport>;
}

export function createCompactor(deps: CompactAndCommitDeps): Compactor {
  const running = new Set<Running>();

  /** What becomes of the other one; null when this job's time is up first. */
  async function outcomeOf(other: Running, job: CompactionJob, closed: AbortSignal): Promise<CompactionReport | null> {
    const over = new AbortController();
    const timeIsUp = deps.sleep(job.purse.remainingMs(), over.signal).then(() => null);
    try {
      return await untilClosed(Promise.race([other.report, timeIsUp]), closed);
    } finally {
      over.abort();
    }
  }

  return {
    async run(job, closed) {
      closed.throwIfAborted();
      const ids = job.input.spine.map((node) => node.id);
      const place = {
        conversation: JSON.stringify([job.conversation.tenant, job.conversation.id]),
        chain: new Set(ids),
        head: ids.at(-1),
        reach: coverablePart(job.input.spine).at(-1),
      };
      const find = (): Running | undefined => [...running].find((other) => concerns(other, place));
      for (let other = find(); other !== undefined; other = find()) {
        const report = await outcomeOf(other, job, closed);
        if (report === null) return busy();
        if (report.reason !== 'busy' && holdsFor(ids, other, report)) return report;
      }
      const begun = { ...place, report: compactAndCommit(job, deps) };
      running.add(begun);
      void begun.report.finally(() => running.delete(begun));
      return untilClosed(begun.report, closed);
    },
    async drain() {
      while (running.size > 0) await Promise.all([...running].map((one) => one.report));
    },
  };
}

/**
 * Whether a running compaction is one of this spine too: all that it may cover lies there, or this spine is a part of its own
 * (SPEC 5.11).
 */
function concerns(other: Running, place: Omit<Running, 'report'>): boolean {
  if (other.conversation !== place.conversation) return false;
  const has = (chain: ReadonlySet<string>, id: string | undefined): boolean => id !== undefined && chain.has(id);
  return has(place.chain, other.reach) || has(other.chain, place.head);
}

/** Whether what came of another compaction holds for this spine: its summary stands there, or its failure. */
function holdsFor(ids: readonly string[], other: Running, report: CompactionReport): boolean {
  return report.summary === null
    ? other.head !== undefined && ids.includes(other.head)
    : segmentOn(ids, report.summary) !== null;
}

/** Another one runs for longer than this one may wait. */
function busy(): CompactionReport {
  return {
    outcome: 'failed',
    reason: 'busy',
    coveredCount: 0,
    tokensBefore: null,
    tokensAfter: null,
    calls: 0,
    durationMs: 0,
    summary: null,
  };
}

async function untilClosed<T>(work: Promise<T>, closed: AbortSignal): Promise<T> {
  closed.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const left = new Promise<never>((_, reject) => {
    onAbort = () => reject(closed.reason);
    closed.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, left]);
  } finally {
    if (onAbort !== undefined) closed.removeEventListener('abort', onAbort);
  }
}
