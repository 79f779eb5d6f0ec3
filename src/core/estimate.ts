import type { Message } from './message.js';
import type { TokenCounter } from './ports.js';
import type { Entry, View } from './render.js';

/** Tokens that prime the reply. */
export const PRIMING_TOKENS = 3;

/** Tokens a message costs beside its content, and a call or a name beside its own. */
const MESSAGE_OVERHEAD = 4;
const CALL_OVERHEAD = 8;

/** Tokens of one message as sent: text, name, calls, results, echoed reasoning and media. */
export function messageTokens(message: Message, counter: TokenCounter): number {
  const frames = CALL_OVERHEAD * (message.calls.length + message.results.length) + (message.name === null ? 0 : 1);
  const texts = textsOf(message).reduce((sum, text) => sum + counter.count(text), 0);
  const media = message.media.reduce((sum, part) => sum + counter.countMedia(part), 0);
  return MESSAGE_OVERHEAD + frames + texts + media;
}

/** Every text of a message that is counted. */
export function textsOf(message: Message): readonly string[] {
  return [
    message.text,
    message.reasoning,
    message.name ?? '',
    ...message.calls.flatMap((call) => [call.name, call.arguments]),
    ...message.results.map((result) => result.text),
  ];
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
