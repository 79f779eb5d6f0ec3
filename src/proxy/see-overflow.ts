import { calibrationOf } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import type { Message } from '../core/message.js';
import { recogniseOverflow } from '../core/overflow/recognise.js';
import { overflowFromUsage } from '../core/overflow/usage.js';
import type { Overflow } from '../core/overflow/verdict.js';
import type { Reply } from '../dialects/dialect.js';
import type { Dispatch } from './dispatch.js';
import type { Answer } from './exchange.js';
import type { Turn } from './turn.js';
import { usageEstimate } from './usage-estimate.js';

export interface SeenOverflow {
  readonly overflow: Overflow;
  /** What the refused or cut request came to by the calibrated estimate; null if nothing was counted. */
  readonly refusedTokens: number | null;
  /** False: there is a reply that stands, and the next turn compacts first (SPEC 6.3). */
  readonly canRetry: boolean;
}

/** The overflow that an answer tells of while nothing of it has reached the client (SPEC 6.2); null if there is none. */
export async function overflowBefore(turn: Turn, dispatch: Dispatch, answer: Answer): Promise<SeenOverflow | null> {
  if (answer.kind === 'long' || answer.kind === 'late') return null;
  const evidence = answer.kind === 'whole' ? refusalOf(answer) : answer.earlyError;
  if (evidence === null) {
    if (answer.kind === 'whole') return overflowInReply(turn, dispatch, answer.reply);
    // A stream with content is judged at its end, however much of it came at once.
    const seen = await overflowInReply(turn, dispatch, answer.reader.reply());
    return seen?.canRetry === true ? seen : null;
  }
  const { status } = answer.response;
  const estimate = async (): Promise<number> =>
    estimateView(dispatch.view, await turn.measure.ruler()) * calibrationOf(turn.opened.match);
  // An error that gives no reason is judged by how full the window must have been.
  const counts = turn.limits !== null && (status === 400 || status === 413);
  const refusedTokens = counts ? await estimate() : null;
  const overflow = recognise(turn, evidence, status, refusedTokens);
  if (overflow === null) return null;
  if (refusedTokens !== null || overflow.limit === null || overflow.used !== null) {
    return { overflow, refusedTokens, canRetry: true };
  }
  // A limit alone is believed if what was refused lies above it.
  const counted = await estimate();
  return { overflow: recognise(turn, evidence, status, counted) ?? overflow, refusedTokens: counted, canRetry: true };
}

/**
 * The overflow that a stream shows once it has ended: by an error after its first content, or by its usage (SPEC 6.2,
 * 6.3). `lateError` is that error as JSON text, or null.
 */
export async function overflowAfter(
  turn: Turn,
  dispatch: Dispatch,
  reply: Reply | null,
  lateError: string | null,
): Promise<SeenOverflow | null> {
  if (lateError === null) return overflowInReply(turn, dispatch, reply);
  const overflow = recognise(turn, lateError, null, null);
  return overflow === null ? null : { overflow, refusedTokens: null, canRetry: false };
}

function recognise(turn: Turn, body: string, status: number | null, estimatedTokens: number | null): Overflow | null {
  const verdict = recogniseOverflow({
    status,
    body,
    upstreamHost: new URL(turn.request.upstream.baseUrl).hostname,
    clientWrote: (text) => wroteText(turn, text),
    estimatedTokens,
    windowTokens: turn.belief.windowTokens,
  });
  return verdict.kind === 'none' ? null : verdict;
}

/** The text of an error, in a body of any status; null for an ordinary reply. */
function refusalOf(answer: Extract<Answer, { kind: 'whole' }>): string | null {
  return answer.reply?.error === null ? null : answer.text;
}

async function overflowInReply(turn: Turn, dispatch: Dispatch, reply: Reply | null): Promise<SeenOverflow | null> {
  if (reply === null || !reply.finished || reply.error !== null || reply.unread !== null) return null;
  const hasContent = reply.messages.some(saysSomething);
  const estimatedTokens = await usageEstimate(turn, dispatch, reply.usage, hasContent);
  const overflow = overflowFromUsage({
    estimatedTokens,
    windowTokens: trustedWindow(turn, reply, hasContent),
    usage: reply.usage,
    stopReason: reply.stopReason,
    hasContent,
    requestedOutputTokens: turn.read.outputCap,
    upstreamHost: new URL(turn.request.upstream.baseUrl).host,
  });
  if (overflow.kind === 'none') return null;
  return { overflow, refusedTokens: estimatedTokens, canRetry: overflow.when === 'now' };
}

/** A reply to a prompt larger than a learned window shows that the window is larger (SPEC 6.5), and no overflow. */
function trustedWindow({ belief }: Turn, reply: Reply, hasContent: boolean): number | null {
  const { windowTokens, source } = belief;
  const isOutgrown =
    source === 'learned' && hasContent && windowTokens !== null && (reply.usage?.inputTokens ?? 0) > windowTokens;
  return isOutgrown ? null : windowTokens;
}

/** Whether a reply's message has any content: text, a refusal, reasoning, calls or media. */
export function saysSomething(message: Message): boolean {
  return message.text !== '' || message.calls.length > 0 || message.media.length > 0 || message.reasoning !== '';
}

/** Text that the client wrote is never evidence (SPEC 6.1). */
function wroteText(turn: Turn, text: string): boolean {
  return [...turn.read.instructions, ...turn.spine.map((node) => node.message)].some(
    (message) =>
      message.text.includes(text) ||
      message.results.some((result) => result.text.includes(text)) ||
      message.calls.some((call) => call.name.includes(text) || call.arguments.includes(text)) ||
      message.media.some(
        (media) => media.name?.includes(text) === true || (!media.inline && media.data.includes(text)),
      ),
  );
}
