import type { Overflow } from '../core/overflow/verdict.js';
import type { Call, Clock, Hash, Mark } from '../core/ports.js';
import type { Relayed } from './relay.js';
import { saysSomething } from './see-overflow.js';
import type { Attempt } from './serve-turn.js';
import { replyNode } from './turn-nodes.js';
import type { Turn } from './turn.js';

/** The end of a response waits at most this long for the store (SPEC 2.4). */
const RECORD_MS = 2_000;

/** What came of an upstream request. */
export interface CallEnd {
  readonly relayed: Relayed;
  /** HTTP status of the answer; null if there was none. */
  readonly status: number | null;
  /** The overflow it told of, if it did. */
  readonly overflow: Overflow | null;
}

/**
 * Records one upstream request and what was relayed of its reply. Resolves to the id of the reply's node (the first choice's), null
 * if there is none or it could not be stored in time. Never rejects: a client's reply does not wait for that.
 */
export type RecordCall = (turn: Turn, attempt: Attempt, end: CallEnd) => Promise<string | null>;

export interface RecordCallDeps {
  readonly hash: Hash;
  /** SHA-256 of a body, base64url. */
  digest(body: Uint8Array): string;
  readonly clock: Clock;
  /** Told when a record could not be written, or not in time. */
  onGap(turn: Turn, reason: 'failed' | 'late'): void;
}

export function createRecordCall(deps: RecordCallDeps): RecordCall {
  return async (turn, attempt, end) => {
    const written = write(turn, attempt, end, deps).then(
      (reply) => ({ kind: 'written', reply }) as const,
      () => ({ kind: 'failed' }) as const,
    );
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<{ readonly kind: 'late' }>((resolve) => {
      timer = setTimeout(() => resolve({ kind: 'late' }), RECORD_MS);
    });
    const result = await Promise.race([written, late]);
    clearTimeout(timer);
    if (result.kind === 'written') return result.reply;
    deps.onGap(turn, result.kind);
    return null;
  };
}

async function write(turn: Turn, attempt: Attempt, end: CallEnd, deps: RecordCallDeps): Promise<string | null> {
  const { relayed, status, overflow } = end;
  const head = turn.spine.at(-1)?.id ?? '';
  const counter = turn.measure.tokenizer() === null ? null : await turn.measure.counter();
  const messages =
    relayed.reply?.messages.filter((message) => relayed.outcome === 'complete' || saysSomething(message)) ?? [];
  const replies = messages.map((message) => replyNode(deps.hash, head, message, { command: false, counter }));
  const { dispatch, action, after } = attempt.prepared;
  const call: Call = {
    id: attempt.callId,
    conversation: turn.conversation.id,
    model: turn.read.model,
    upstream: turn.request.upstream.baseUrl,
    action,
    manifest: dispatch.manifest,
    replies: replies.map((reply) => reply.id),
    outcome: relayed.outcome,
    status,
    stopReason: relayed.reply?.stopReason ?? null,
    overflow: overflow?.reason ?? null,
    estimatedTokens: after?.kind === 'estimate' ? after.tokens : null,
    usage: relayed.reply?.usage ?? null,
    bodyDigest: deps.digest(dispatch.body),
    startedAt: attempt.startedAt,
    overheadMs: attempt.overheadMs,
    durationMs: deps.clock() - attempt.startedAt,
  };
  await turn.writer.close({
    call,
    reduction: dispatch.reduction,
    replies,
    counts: turn.measure.freshCounts(),
    tokenizer: turn.measure.tokenizer(),
    marks: marksOf(turn, attempt, end, head),
  });
  return replies[0]?.id ?? null;
}

/** SPEC 6.3: an overflow in what was relayed came too late to be retried; the next turn compacts first. */
function marksOf(turn: Turn, attempt: Attempt, { relayed, overflow }: CallEnd, head: string): readonly Mark[] {
  const isRelayed = relayed.lateError !== null || relayed.outcome === 'complete';
  if (overflow === null || !isRelayed) return [];
  // A provider that counts in its own way looks the same with every reply: one failed try is enough until the spine grows.
  if ('when' in overflow && turn.opened.marks.some((mark) => mark.kind === 'latched')) return [];
  const { dispatch, after } = attempt.prepared;
  return [{ kind: 'overflowed', head, tokens: after?.tokens ?? 0, scope: dispatch.view.summary?.id ?? '' }];
}
