import type { Message } from '../core/message.js';
import type { Call, Clock, Hash, Mark } from '../core/ports.js';
import { isOverflowError } from './recover.js';
import type { Relayed } from './relay.js';
import type { Attempt } from './serve-turn.js';
import { replyNode } from './turn-nodes.js';
import type { Turn } from './turn.js';

/** The end of a response waits at most this long for the store (SPEC 2.4). */
const RECORD_MS = 2_000;

/** Records one upstream request and what was relayed of its reply. Never rejects: a client's reply does not wait for that. */
export type RecordCall = (turn: Turn, attempt: Attempt, relayed: Relayed, status: number | null) => Promise<void>;

export interface RecordCallDeps {
  readonly hash: Hash;
  /** SHA-256 of a body, base64url. */
  digest(body: Uint8Array): string;
  readonly clock: Clock;
  /** Told when a record could not be written, or not in time. */
  onGap(turn: Turn, reason: 'failed' | 'late'): void;
}

export function createRecordCall(deps: RecordCallDeps): RecordCall {
  return async (turn, attempt, relayed, status) => {
    const written = write(turn, attempt, relayed, status, deps).then(
      () => 'written' as const,
      () => 'failed' as const,
    );
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), RECORD_MS);
    });
    const result = await Promise.race([written, late]);
    clearTimeout(timer);
    if (result !== 'written') deps.onGap(turn, result);
  };
}

async function write(
  turn: Turn,
  attempt: Attempt,
  relayed: Relayed,
  status: number | null,
  deps: RecordCallDeps,
): Promise<void> {
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
    estimatedTokens: after?.kind === 'estimate' ? after.tokens : null,
    usage: relayed.reply?.usage ?? null,
    bodyDigest: deps.digest(dispatch.body),
    startedAt: attempt.startedAt,
    overheadMs: attempt.overheadMs,
    durationMs: deps.clock() - attempt.startedAt,
  };
  await turn.writer.close({
    call,
    replies,
    counts: turn.measure.freshCounts(),
    tokenizer: turn.measure.tokenizer(),
    marks: marksOf(turn, attempt, relayed, head),
  });
}

function saysSomething(message: Message): boolean {
  return message.text !== '' || message.calls.length > 0 || message.media.length > 0 || message.reasoning !== '';
}

/** SPEC 6.3: an overflow that came after content is not retried; the next turn compacts first. */
function marksOf(turn: Turn, attempt: Attempt, relayed: Relayed, head: string): readonly Mark[] {
  if (relayed.lateError === null || !isOverflowError(turn, relayed.lateError)) return [];
  const { dispatch, after } = attempt.prepared;
  return [{ kind: 'overflowed', head, tokens: after?.tokens ?? 0, scope: dispatch.view.summary?.id ?? '' }];
}
