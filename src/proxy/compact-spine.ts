import type { Limits } from '../core/budget.js';
import type { CompactionInput } from '../core/compaction/compact.js';
import type { Purse } from '../core/compaction/purse.js';
import type { Ruler } from '../core/estimate.js';
import type { Trigger } from '../core/node.js';
import type { ConversationKey, Hash, Summarizer, Summary, SummaryPolicy, TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
import type { Reduction } from '../core/request/reduction.js';
import type { WindowScope } from '../core/windows.js';
import type { Dialect } from '../dialects/dialect.js';
import { requestHeaders } from '../upstream/headers.js';
import { requestUrl } from '../upstream/request-url.js';
import type { SendUpstream } from '../upstream/upstream.js';
import type { CompactionReport, Compactor } from './compactor.js';
import { credentialOf, withoutCredential } from './credential.js';
import type { UpstreamRoute } from './request.js';
import { createSummarizer } from './summarizer.js';
import type { ModelBelief, Turn } from './turn.js';

/** A spine that may be compacted, and with whose credential. */
export interface SpineToCompact {
  readonly conversation: ConversationKey;
  readonly policy: SummaryPolicy;
  readonly spine: readonly SpineNode[];
  readonly dialect: Dialect;
  readonly model: string;
  readonly upstream: UpstreamRoute;
  /** Headers of the request that causes it; only a credential is taken from them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Query of that request, with its `?`: some upstreams take no call without theirs. Empty where there is none. */
  readonly query: string;
  readonly ruler: () => Promise<Ruler>;
  readonly counter: () => Promise<TokenCounter>;
  readonly purse: Purse;
  /** Aborted when nobody waits for the outcome any more. */
  readonly closed: AbortSignal;
}

export interface CompactRequest {
  /** The summary that stands in the view to be compacted, or null. */
  readonly active: Summary | null;
  /** What that view substitutes beside it (SPEC 5.2). */
  readonly reduction: Reduction;
  readonly trigger: Trigger;
  /** Whether it waits for a compaction of another process: where the request cannot go on without (SPEC 5.11). */
  readonly waits: boolean;
  readonly aim: CompactionInput['aim'];
  readonly limits: Limits;
  readonly userWish: string | null;
}

export interface CompactSpine {
  /** Rejects only when `closed` aborts; the compaction itself goes on then (SPEC 5.6). */
  run(spine: SpineToCompact, request: CompactRequest): Promise<CompactionReport>;
  /** The model that summarises for a spine, and what its window leaves to a request and the summary. */
  summarizer(
    spine: SpineToCompact,
    limits: Limits,
  ): Promise<{ readonly ask: Summarizer; readonly windowTokens: number }>;
  /** What a latch holds for: model, window and settings (SPEC 5.11), and one tool loop where that is named by its opener. */
  latchScope(model: string, windowTokens: number | null, loop: string | null): string;
}

export interface CompactSpineSettings {
  readonly summaryModel: string | null;
  readonly keepTokens: number | null;
  readonly minimumGain: number;
  readonly trigger: number;
}

export interface CompactSpineDeps {
  readonly compactor: Compactor;
  readonly send: SendUpstream;
  readonly hash: Hash;
  readonly settings: CompactSpineSettings;
  /** Pays for summaries in place of the client's credential, or null. */
  readonly summaryKey: string | null;
  belief(scope: WindowScope, model: string): Promise<ModelBelief>;
}

export function createCompactSpine(deps: CompactSpineDeps): CompactSpine {
  const { settings } = deps;
  const modelFor = (subject: SpineToCompact): string => settings.summaryModel ?? subject.model;
  const summarizer: CompactSpine['summarizer'] = async (subject, limits) => {
    const model = modelFor(subject);
    const scope = { tenant: subject.conversation.tenant, upstream: subject.upstream.baseUrl };
    const ownWindow = settings.summaryModel === null ? null : (await deps.belief(scope, model)).windowTokens;
    const reasoningTokens = subject.dialect.summaryReasoningTokens(model, new URL(subject.upstream.baseUrl).hostname);
    const windowTokens = ownWindow ?? limits.windowTokens;
    return {
      ask: summarizerFor(subject, model, deps),
      // Not every provider counts what it may write: where that is most of the window, it is asked.
      windowTokens: Math.max(Math.floor(windowTokens / 2), windowTokens - reasoningTokens),
    };
  };
  return {
    summarizer,
    async run(subject, request) {
      const [ruler, counter, { ask, windowTokens }] = await Promise.all([
        subject.ruler(),
        subject.counter(),
        summarizer(subject, request.limits),
      ]);
      const job = {
        conversation: subject.conversation,
        policy: subject.policy,
        trigger: request.trigger,
        waits: request.waits,
        input: {
          spine: subject.spine,
          active: request.active,
          reduction: request.reduction,
          ruler,
          limits: request.limits,
          aim: request.aim,
          keepTokensSetting: settings.keepTokens,
          minimumGain: settings.minimumGain,
          userWish: request.userWish,
          summariserWindowTokens: windowTokens,
          forms: subject.dialect,
        },
        counter,
        summarizer: ask,
        purse: subject.purse,
        model: modelFor(subject),
      };
      return deps.compactor.run(job, subject.closed);
    },
    latchScope: (model, windowTokens, loop) => deps.hash(JSON.stringify([model, windowTokens, settings, loop])),
  };
}

export function spineOfTurn(turn: Turn): SpineToCompact {
  return {
    conversation: turn.conversation,
    policy: turn.policy,
    spine: turn.spine,
    dialect: turn.dialect,
    model: turn.read.model,
    upstream: turn.request.upstream,
    headers: turn.request.headers,
    query: turn.request.query,
    ruler: turn.measure.ruler,
    counter: turn.measure.counter,
    purse: turn.purse,
    closed: turn.closed,
  };
}

/** Where nobody knows the window, nothing says that the fixed part fills it: there is too little else to be worth a summary. */
export function withoutWindow(report: CompactionReport): CompactionReport {
  return report.outcome === 'fixed_overhead' ? { ...report, outcome: 'no_op', reason: 'below_target' } : report;
}

/** Only a credential is the client's, and the version it speaks of a format that has some. */
function ownHeaders({ dialect, headers }: SpineToCompact): Readonly<Record<string, string>> {
  const needed = Object.entries(dialect.headers).map(([name, value]) => [name, headers[name] ?? value] as const);
  return { ...credentialOf(headers), ...Object.fromEntries(needed) };
}

function summarizerFor(subject: SpineToCompact, model: string, deps: CompactSpineDeps) {
  const { upstream, dialect } = subject;
  const apiKey = deps.summaryKey ?? upstream.apiKey;
  return createSummarizer({
    dialect,
    send: deps.send,
    url: requestUrl(
      upstream.baseUrl,
      `/v1${dialect.path}`,
      apiKey === null ? subject.query : withoutCredential(subject.query),
    ),
    headers: requestHeaders(ownHeaders(subject), {
      apiKey,
      readsReply: true,
      rewritten: true,
    }),
    model,
    upstreamHost: new URL(upstream.baseUrl).hostname,
  });
}
