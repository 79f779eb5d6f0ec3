import { compact } from '../core/compaction/compact.js';
import type { CompactionResult } from '../core/compaction/compact.js';
import { SpillwayError } from '../core/errors.js';
import { SUMMARY_NAME, ROOT } from '../core/node.js';
import type { NewNode, SummaryMetadata } from '../core/node.js';
import type { Clock, Ledger, Summary, UniqueId } from '../core/ports.js';
import { withinTime } from '../upstream/within-time.js';
import { takeLease } from './compaction-lease.js';
import type { HeldLease } from './compaction-lease.js';
import type { CompactionJob, CompactionReport } from './compactor.js';
import { coverablePart } from './coverable-part.js';
import type { Sleep } from './sleep.js';

export interface CompactAndCommitDeps {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly uniqueId: UniqueId;
  readonly sleep: Sleep;
}

/**
 * One compaction from the lease of its spine to the commit; never rejects. While another process compacts there, it waits as long as
 * its purse has time, if it waits at all; what was committed meanwhile serves it too (SPEC 5.11).
 */
export async function compactAndCommit(job: CompactionJob, deps: CompactAndCommitDeps): Promise<CompactionReport> {
  const startedAt = deps.clock();
  const { purse } = job;
  const callsBefore = purse.callsMade;
  const report = (
    part: Pick<CompactionReport, 'outcome' | 'reason'> & Partial<CompactionReport>,
  ): CompactionReport => ({
    coveredCount: 0,
    tokensBefore: null,
    tokensAfter: null,
    summary: null,
    ...part,
    calls: purse.callsMade - callsBefore,
    durationMs: deps.clock() - startedAt,
  });
  let held: HeldLease | null = null;
  try {
    const patienceMs = (): number => (job.waits ? purse.remainingMs() : 0);
    held = await takeLease(job.conversation, coverablePart(job.input.spine), patienceMs, deps);
    if (held === null) return report({ outcome: 'failed', reason: 'busy' });
    const active = await activeNow(job, deps.ledger);
    if (active !== null && active.id !== job.input.active?.id) {
      return report({ outcome: 'compacted', reason: 'compacted', coveredCount: active.count, summary: active });
    }
    const { lease, lost } = held;
    const result = await compact(job.input, {
      ask: (request) => withinTime(purse.remainingMs(), lost, (signal) => job.summarizer(request, signal)),
      purse,
      uniqueId: deps.uniqueId,
      count: (text) => job.counter.count(text),
    });
    const { tokensBefore } = result;
    if (lost.aborted) return report({ outcome: 'stale', reason: 'the lease was lost', tokensBefore });
    if (result.kind !== 'candidate') return report({ outcome: result.kind, reason: result.reason, tokensBefore });

    const node = summaryNode(job, result, { id: `summary_${deps.uniqueId()}`, durationMs: deps.clock() - startedAt });
    const commit = await deps.ledger.commitSummary({
      conversation: job.conversation,
      policy: job.policy,
      node,
      chain: job.input.spine.map((spineNode) => spineNode.id),
      expectedActive: job.input.active?.id ?? null,
      headMustDescend: job.trigger === 'manual',
      lease,
    });
    if (commit.outcome === 'stale') return report({ outcome: 'stale', reason: commit.reason, tokensBefore });
    return report({
      outcome: 'compacted',
      reason: 'compacted',
      coveredCount: result.coversIds.length,
      tokensBefore,
      tokensAfter: result.tokensAfter,
      summary: summaryOf(node),
    });
  } catch (error) {
    if (isGone(error)) return report({ outcome: 'stale', reason: 'the history is gone' });
    return report({ outcome: 'failed', reason: isTimeout(error) ? 'purse_empty' : 'store_unavailable' });
  } finally {
    await held?.release();
  }
}

/** What is active on the job's spine by now: what another request paid for serves this one too (SPEC 5.11). */
async function activeNow(job: CompactionJob, ledger: Ledger): Promise<Summary | null> {
  const head = job.input.spine.at(-1)?.id;
  return head === undefined ? null : (await ledger.spine(job.conversation, head, job.policy)).active;
}

type Candidate = Extract<CompactionResult, { kind: 'candidate' }>;

function summaryNode(
  job: CompactionJob,
  candidate: Candidate,
  made: { readonly id: string; readonly durationMs: number },
): NewNode & { readonly metadata: SummaryMetadata } {
  return {
    id: made.id,
    predecessor: predecessorOf(job, candidate),
    caller: null,
    role: 'llm',
    name: SUMMARY_NAME,
    content: candidate.content,
    tokens: job.input.ruler.summaryTokens(candidate.content),
    tokenizer: job.counter.tokenizer,
    metadata: {
      compaction: true,
      covers_ids: candidate.coversIds,
      covered_count: candidate.coversIds.length,
      tokens_before: candidate.tokensBefore,
      tokens_after: candidate.tokensAfter,
      model: job.model,
      trigger: job.trigger,
      duration_ms: made.durationMs,
    },
  };
}

/** The predecessor of the first covered node (SPEC 3.1). */
function predecessorOf(job: CompactionJob, candidate: Candidate): string {
  const first = job.input.spine.findIndex((node) => node.id === candidate.coversIds[0]);
  return job.input.spine[first - 1]?.id ?? ROOT;
}

function summaryOf(node: NewNode & { readonly metadata: SummaryMetadata }): Summary {
  const covers = node.metadata.covers_ids;
  return {
    id: node.id,
    first: covers[0] ?? '',
    last: covers.at(-1) ?? '',
    count: covers.length,
    content: node.content,
    tokens: node.tokens,
    tokenizer: node.tokenizer,
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
}

/** What was to be compacted was deleted meanwhile (SPEC 5.8). */
function isGone(error: unknown): boolean {
  return error instanceof SpillwayError && (error.code === 'node_not_found' || error.code === 'conversation_not_found');
}
