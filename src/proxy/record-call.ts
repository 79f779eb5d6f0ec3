import type { Overflow } from '../core/overflow/verdict.js';
import type { Call, Clock, Directory, Hash, Mark } from '../core/ports.js';
import { referencesTo } from './references.js';
import type { Relayed } from './relay.js';
import { saysSomething } from './see-overflow.js';
import type { Attempt } from './serve-turn.js';
import { endOfReply, replyNodes } from './turn-nodes.js';
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

export interface Recorded {
  /** Id of the reply's last node (the first choice's); null if there is none or it is not known to be stored. */
  readonly reply: string | null;
  /** False if the store failed, or did not answer in time. */
  readonly isStored: boolean;
}

/** Records one upstream request and what was relayed of its reply. Never rejects: a client's reply does not wait for that. */
export type RecordCall = (turn: Turn, attempt: Attempt, end: CallEnd) => Promise<Recorded>;

export interface RecordCallDeps {
  readonly directory: Pick<Directory, 'refer'>;
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
    if (result.kind === 'written') return { reply: result.reply, isStored: true };
    deps.onGap(turn, result.kind);
    return { reply: null, isStored: false };
  };
}

async function write(turn: Turn, attempt: Attempt, end: CallEnd, deps: RecordCallDeps): Promise<string | null> {
  const { relayed, status, overflow } = end;
  const head = turn.spine.at(-1)?.id ?? '';
  const counter = turn.measure.tokenizer() === null ? null : await turn.measure.counter();
  // With a gap in it, a reply is another message than the one its client has.
  const read = relayed.reply?.unread == null ? (relayed.reply?.messages ?? []) : [];
  const messages = read.filter((message) => relayed.outcome === 'complete' || saysSomething(message));
  const follows = relayed.reply?.follows ?? false;
  const replies = replyNodes(deps.hash, head, messages, { follows, command: false, counter });
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
  // What broke off, nothing can refer to.
  const references =
    relayed.outcome === 'complete' ? referencesTo(turn.conversation.id, relayed.reply, messages, replies) : [];
  if (references.length > 0) await deps.directory.refer(turn.conversation.tenant, references);
  return endOfReply(replies, follows);
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
