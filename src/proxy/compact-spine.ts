import type { Limits } from '../core/budget.js';
import type { CompactionInput } from '../core/compaction/compact.js';
import type { Ruler } from '../core/estimate.js';
import type { Trigger } from '../core/node.js';
import type { ConversationKey, Hash, Summary, SummaryPolicy, TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
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
  /** Aborted when nobody waits for the outcome any more. */
  readonly closed: AbortSignal;
}

export interface CompactRequest {
  /** The summary that stands in the view to be compacted, or null. */
  readonly active: Summary | null;
  readonly trigger: Trigger;
  readonly aim: CompactionInput['aim'];
  readonly limits: Limits;
  readonly userWish: string | null;
}

export interface CompactSpine {
  /** Rejects only when `closed` aborts; the compaction itself goes on then (SPEC 5.6). */
  run(spine: SpineToCompact, request: CompactRequest): Promise<CompactionReport>;
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
  return {
    async run(subject, request) {
      const model = settings.summaryModel ?? subject.model;
      const scope = { tenant: subject.conversation.tenant, upstream: subject.upstream.baseUrl };
      const [ruler, counter, belief] = await Promise.all([
        subject.ruler(),
        subject.counter(),
        deps.belief(scope, model),
      ]);
      const ownWindow = settings.summaryModel === null ? null : belief.windowTokens;
      const job = {
        conversation: subject.conversation,
        policy: subject.policy,
        trigger: request.trigger,
        input: {
          spine: subject.spine,
          active: request.active,
          ruler,
          limits: request.limits,
          aim: request.aim,
          keepTokensSetting: settings.keepTokens,
          minimumGain: settings.minimumGain,
          userWish: request.userWish,
          summariserWindowTokens: ownWindow ?? request.limits.windowTokens,
          summaryMessage: subject.dialect.summaryMessage,
        },
        counter,
        summarizer: summarizerFor(subject, model, deps),
        model,
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
