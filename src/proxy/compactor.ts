import { compact } from '../core/compaction/compact.js';
import type { CompactionInput, CompactionResult } from '../core/compaction/compact.js';
import type { Purse } from '../core/compaction/purse.js';
import { SUMMARY_NAME, ROOT } from '../core/node.js';
import type { NewNode, SummaryMetadata, Trigger } from '../core/node.js';
import type {
  Clock,
  ConversationKey,
  Ledger,
  Summarizer,
  Summary,
  SummaryPolicy,
  TokenCounter,
  UniqueId,
} from '../core/ports.js';
import { segmentOn } from '../core/summary.js';

/** What a compaction did, SPEC 5.10. Token counts are local estimates of the whole view. */
export interface CompactionReport {
  readonly outcome: 'compacted' | 'no_op' | 'rejected' | 'stale' | 'failed' | 'fixed_overhead';
  /** A stable word; the same as `outcome` where there is nothing to add. */
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
  readonly input: CompactionInput;
  readonly counter: TokenCounter;
  readonly summarizer: Summarizer;
  readonly purse: Purse;
  readonly model: string;
}

export interface Compactor {
  /**
   * Runs one compaction and commits it; never rejects. While another runs for the conversation it waits for that one, and
   * joins it if it concerns this spine too (SPEC 5.11). It outlives the client that caused it (SPEC 5.6).
   */
  run(job: CompactionJob): Promise<CompactionReport>;
  /** Resolves when nothing runs any more. */
  drain(): Promise<void>;
}

export interface CompactorDeps {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly uniqueId: UniqueId;
}

/** A compaction under way, and the end of the spine it was begun for. */
interface Running {
  readonly head: string | undefined;
  readonly report: Promise<CompactionReport>;
}

export function createCompactor(deps: CompactorDeps): Compactor {
  const running = new Map<string, Running>();
  return {
    async run(job) {
      const key = JSON.stringify([job.conversation.tenant, job.conversation.id]);
      for (let other = running.get(key); other !== undefined; other = running.get(key)) {
        const report = await other.report;
        if (concerns(job, other, report)) return report;
      }
      const report = runOne(job, deps).finally(() => running.delete(key));
      running.set(key, { head: job.input.spine.at(-1)?.id, report });
      return report;
    },
    async drain() {
      while (running.size > 0) await Promise.all([...running.values()].map((one) => one.report));
    },
  };
}

/** Whether what came of another compaction holds for this job's spine: its summary stands there, or its failure. */
function concerns(job: CompactionJob, other: Running, report: CompactionReport): boolean {
  const ids = job.input.spine.map((node) => node.id);
  return report.summary === null
    ? other.head !== undefined && ids.includes(other.head)
    : segmentOn(ids, report.summary) !== null;
}

async function runOne(job: CompactionJob, deps: CompactorDeps): Promise<CompactionReport> {
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
  try {
    const meanwhile = await committedMeanwhile(job, deps.ledger);
    if (meanwhile !== null) {
      return report({ outcome: 'compacted', reason: 'compacted', coveredCount: meanwhile.count, summary: meanwhile });
    }
    const result = await compact(job.input, {
      ask: (request) => job.summarizer(request, AbortSignal.timeout(Math.max(1, purse.remainingMs()))),
      purse,
      uniqueId: deps.uniqueId,
      count: (text) => job.counter.count(text),
    });
    if (result.kind !== 'candidate')
      return report({ outcome: result.kind, reason: result.reason, tokensBefore: result.tokensBefore });

    const node = summaryNode(job, result, { id: `summary_${deps.uniqueId()}`, durationMs: deps.clock() - startedAt });
    const commit = await deps.ledger.commitSummary({
      conversation: job.conversation,
      policy: job.policy,
      node,
      chain: job.input.spine.map((spineNode) => spineNode.id),
      expectedActive: job.input.active?.id ?? null,
      headMustDescend: job.trigger === 'manual',
    });
    const { tokensBefore, tokensAfter, coversIds } = result;
    if (commit.outcome === 'stale') return report({ outcome: 'stale', reason: commit.reason, tokensBefore });
    return report({
      outcome: 'compacted',
      reason: 'compacted',
      coveredCount: coversIds.length,
      tokensBefore,
      tokensAfter,
      summary: summaryOf(node),
    });
  } catch (error) {
    return report({ outcome: 'failed', reason: isTimeout(error) ? 'purse_empty' : 'store_unavailable' });
  }
}

/** A summary that was committed since the job's view was frozen: what another request paid for serves this one too (SPEC 5.11). */
async function committedMeanwhile(job: CompactionJob, ledger: Ledger): Promise<Summary | null> {
  const head = job.input.spine.at(-1)?.id;
  if (head === undefined) return null;
  const { active } = await ledger.spine(job.conversation, head, job.policy);
  return active?.id === job.input.active?.id ? null : active;
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
