import { recogniseOverflow } from '../core/overflow/recognise.js';
import type { SummaryResponse, Summarizer } from '../core/ports.js';
import type { Dialect } from '../dialects/dialect.js';
import type { SendUpstream } from '../upstream/upstream.js';
import { readWhole } from './read-whole.js';

/** Most bytes of an answer to a summary call that are read. */
const ANSWER_LIMIT_BYTES = 4 * 1024 * 1024;

export interface SummarizerTarget {
  readonly dialect: Dialect;
  readonly send: SendUpstream;
  readonly url: string;
  /** The credential of the request that caused it, or the configured one; nothing else of the client's. */
  readonly headers: Readonly<Record<string, string>>;
  readonly model: string;
  readonly upstreamHost: string;
}

/**
 * A `Summarizer` that asks the upstream in the dialect's own form (SPEC 5.6), never through this proxy's own compaction.
 * A failure is told by its kind; no text of the provider's is passed on.
 */
export function createSummarizer(target: SummarizerTarget): Summarizer {
  return async (request, signal): Promise<SummaryResponse> => {
    try {
      const response = await target.send({
        method: 'POST',
        url: target.url,
        headers: {
          ...target.headers,
          'content-type': 'application/json',
          accept: 'application/json',
          'accept-encoding': 'identity',
        },
        body: target.dialect.summaryBody({ model: target.model, ...request }, target.upstreamHost),
        signal,
      });
      const bytes = await readWhole(response.body, ANSWER_LIMIT_BYTES);
      if (bytes === null) return { kind: 'failed', reason: 'summariser_answer_too_large' };
      return readAnswer(target, response.status, new TextDecoder().decode(bytes));
    } catch {
      return { kind: 'failed', reason: signal.aborted ? 'purse_empty' : 'summariser_unreachable' };
    }
  };
}

function readAnswer(target: SummarizerTarget, status: number, body: string): SummaryResponse {
  const reply = status === 200 ? target.dialect.readReply(parsed(body)) : null;
  // One reply can be several messages, and of several replies the first counts.
  const said = reply?.follows === true ? reply.messages : (reply?.messages.slice(0, 1) ?? []);
  if (reply === null || said.length === 0 || reply.error !== null) {
    const verdict = recogniseOverflow({
      status,
      body,
      upstreamHost: target.upstreamHost,
      clientWrote: () => false,
      estimatedTokens: null,
      windowTokens: null,
    });
    if (verdict.kind !== 'none') return { kind: 'overflow', limitTokens: verdict.limit };
    return { kind: 'failed', reason: status === 200 ? 'summariser_malformed' : `summariser_status_${status}` };
  }
  const whole = said.flatMap((message) => (message.text === '' ? [] : [message.text])).join('\n\n');
  const text = withoutThinking(whole);
  return {
    kind: 'text',
    text,
    stopped: reply.stopReason !== null && target.dialect.isNormalStop(reply.stopReason),
    stopReason: reply.stopReason,
    calledTool: said.some((message) => message.calls.length > 0),
    reasoningOnly: text.trim() === '' && (whole.trim() !== '' || said.some((message) => message.reasoning !== '')),
    usage: reply.usage,
  };
}

/** Some servers leave a model's reasoning in its text, between tags; without the closing one there is nothing else. */
function withoutThinking(text: string): string {
  if (!/^\s*<think>/.test(text)) return text;
  const end = text.indexOf('</think>');
  return end < 0 ? '' : text.slice(end + '</think>'.length);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
