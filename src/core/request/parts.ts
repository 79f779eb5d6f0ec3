import { entryTokens, PRIMING_TOKENS } from '../estimate.js';
import type { Ruler } from '../estimate.js';
import { isTypedUserMessage } from '../message.js';
import type { Message } from '../message.js';
import { entryMessage } from '../render.js';
import type { Entry, SpineNode, SubstituteForms, View } from '../render.js';
import { latestSegment } from './execution-runs.js';

/** Where the tokens of a view are, by the local estimate: every one of them in exactly one part (SPEC 7.7). */
export interface RequestParts {
  /** Instructions wherever they stand, tools, response schema, and what primes the reply. */
  readonly fixed: number;
  /** The active summary and checkpoints. */
  readonly summaries: number;
  /** Messages with images, recordings and files, wherever they stand. */
  readonly media: number;
  readonly userText: number;
  /** The latest assistant message with its calls and their results. */
  readonly openGroup: number;
  /** What the assistant said and did before that, its results shortened or not. */
  readonly history: number;
}

export function partsOf(spine: readonly SpineNode[], view: View, ruler: Ruler, forms: SubstituteForms): RequestParts {
  const messages = view.tail.map((entry) => entryMessage(spine, entry, forms)).filter((message) => message !== null);
  const latest = latestSegment(messages);
  const parts = {
    fixed: view.pinned.reduce((sum, index) => sum + ruler.tokensAt(index), ruler.fixedTokens + PRIMING_TOKENS),
    summaries: view.summary === null ? 0 : ruler.summaryTokens(view.summary.content),
    media: 0,
    userText: 0,
    openGroup: 0,
    history: 0,
  };
  for (const [place, message] of messages.entries()) {
    const entry = view.tail[place];
    if (entry !== undefined) parts[partOf(entry, message, place >= latest)] += entryTokens(entry, ruler);
  }
  return parts;
}

function partOf(entry: Entry, message: Message, isLatest: boolean): keyof RequestParts {
  if (entry.kind === 'checkpoint') return 'summaries';
  if (message.role === 'system') return 'fixed';
  if (message.media.length > 0) return 'media';
  if (isTypedUserMessage(message)) return 'userText';
  return isLatest ? 'openGroup' : 'history';
}
