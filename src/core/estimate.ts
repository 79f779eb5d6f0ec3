import type { Message } from './message.js';
import type { TokenCounter } from './ports.js';
import type { Entry, View } from './render.js';

/** Tokens that prime the reply. */
const PRIMING_TOKENS = 3;

/** Tokens a message costs beside its content, and a call or a name beside its own. */
const MESSAGE_OVERHEAD = 4;
const CALL_OVERHEAD = 8;

/** Tokens of one message as sent: text, name, calls, results, echoed reasoning and media. */
export function messageTokens(message: Message, counter: TokenCounter): number {
  let tokens = MESSAGE_OVERHEAD + counter.count(message.text) + counter.count(message.reasoning);
  if (message.name !== null) tokens += 1 + counter.count(message.name);
  for (const call of message.calls) tokens += CALL_OVERHEAD + counter.count(call.name) + counter.count(call.arguments);
  for (const result of message.results) tokens += CALL_OVERHEAD + counter.count(result.text);
  for (const media of message.media) tokens += counter.countMedia(media);
  return tokens;
}

/** Token counts of one request's parts, all by one tokenizer: the one ruler of trigger, cut and acceptance (SPEC 5.1). */
export interface Ruler {
  /** Instructions, tools and response schema. */
  readonly fixedTokens: number;
  /** Tokens of the spine's message at an index, as sent. */
  tokensAt(index: number): number;
  /** Tokens of the message that a summary node's content is sent as. */
  summaryTokens(content: string): number;
}

/** Local estimate of exactly what is dispatched when a view is sent. */
export function estimateView(view: View, ruler: Ruler): number {
  const pinned = view.pinned.reduce((sum, index) => sum + ruler.tokensAt(index), 0);
  const tail = view.tail.reduce((sum, entry) => sum + entryTokens(entry, ruler), 0);
  const summary = view.summary === null ? 0 : ruler.summaryTokens(view.summary.content);
  return ruler.fixedTokens + summary + pinned + tail + PRIMING_TOKENS;
}

/** Tokens of one entry of a view, as sent. */
export function entryTokens(entry: Entry, ruler: Ruler): number {
  switch (entry.kind) {
    case 'message':
      return ruler.tokensAt(entry.index);
    case 'reduced':
      return ruler.tokensAt(entry.index) - entry.results.reduce((sum, result) => sum + result.savedTokens, 0);
    case 'checkpoint':
      return entry.checkpoint.tokens;
  }
}
