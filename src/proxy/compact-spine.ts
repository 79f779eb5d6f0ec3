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
import { credentialOf } from './credential.js';
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
  readonly aim: CompactionInput['aim'];
  readonly limits: Limits;
  readonly userWish: string | null;
}

export interface CompactSpine {
  /** Rejects only when `closed` aborts; the compaction itself goes on then (SPEC 5.6). */
  run(spine: SpineToCompact, request: CompactRequest): Promise<CompactionReport>;
  /** The model that summarises for a spine, and its window. */
  summarizer(
    spine: SpineToCompact,
    limits: Limits,
  ): Promise<{ readonly ask: Summarizer; readonly windowTokens: number }>;
  /** What a latch holds for: model, window and settings (SPEC 5.11). */
  latchScope(model: string, windowTokens: number | null): string;
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
    return { ask: summarizerFor(subject, model, deps), windowTokens: ownWindow ?? limits.windowTokens };
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
      return untilClosed(deps.compactor.run(job), subject.closed);
    },
    latchScope: (model, windowTokens) => deps.hash(JSON.stringify([model, windowTokens, settings])),
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
    ruler: turn.measure.ruler,
    counter: turn.measure.counter,
    purse: turn.purse,
    closed: turn.closed,
  };
}

function summarizerFor(subject: SpineToCompact, model: string, deps: CompactSpineDeps) {
  const { upstream, dialect } = subject;
  return createSummarizer({
    dialect,
    send: deps.send,
    url: requestUrl(upstream.baseUrl, `/v1${dialect.path}`, ''),
    headers: requestHeaders(credentialOf(subject.headers), {
      apiKey: deps.summaryKey ?? upstream.apiKey,
      readsReply: true,
      rewritten: true,
    }),
    model,
    upstreamHost: new URL(upstream.baseUrl).hostname,
  });
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
