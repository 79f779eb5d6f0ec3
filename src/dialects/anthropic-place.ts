import { valueAt, withMember } from './json-edits.js';
import { elementSpans, memberSpans } from './json-spans.js';

/** A message about to be sent, as JSON text. */
export interface Written {
  readonly text: string;
  readonly role: string;
  /** Holds a summary or a checkpoint. */
  readonly isSummary: boolean;
  /** One of the system messages that the client's own list begins with. */
  readonly isLeading: boolean;
}

/**
 * Finds a place for the system messages that came to stand before a summary (SPEC 4.8). The provider takes one only behind a user message
 * and before an assistant's, or at the end, and no two in a row: so they move behind the user messages that follow, and become one with
 * what stands there. One that was meant for the user message before it alone has had its time.
 */
export function placeSystem(messages: readonly Written[]): readonly Written[] {
  const placed: Written[] = [];
  let held: Written[] = [];
  const release = (next: readonly Written[]): void => {
    const together = [...held, ...next];
    held = [];
    if (together.length > 0) placed.push(together.reduce(joinSystem));
  };
  for (const message of messages) {
    if (message.isSummary) {
      const before = placed.findLastIndex((earlier) => earlier.role !== 'system' || earlier.isLeading) + 1;
      held.push(...placed.splice(before).filter(isLasting));
      placed.push(message);
    } else if (message.role === 'system') {
      release([message]);
    } else {
      if (message.role !== 'user') release([]);
      placed.push(message);
    }
  }
  release([]);
  return placed;
}

/**
 * For an upstream that takes no two user messages in a row (SPEC 4.4): a summary becomes one message with the user messages beside it,
 * their tool results first, as the provider wants them. What the client itself sent in a row stays so.
 */
export function alternating(messages: readonly Written[]): readonly Written[] {
  const merged: Written[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    const isBeside = last?.isSummary === true || message.isSummary;
    if (last?.role === 'user' && message.role === 'user' && isBeside)
      merged[merged.length - 1] = joinUser(last, message);
    else merged.push(message);
  }
  return merged;
}

function joinSystem(earlier: Written, later: Written): Written {
  return { ...later, text: withBlocks(later.text, [...blocksOf(earlier.text), ...blocksOf(later.text)]) };
}

function joinUser(earlier: Written, later: Written): Written {
  const blocks = [...blocksOf(earlier.text), ...blocksOf(later.text)];
  const results = blocks.filter(isResult);
  const rest = blocks.filter((block) => !isResult(block));
  const own = earlier.isSummary ? later : earlier;
  return { ...own, text: withBlocks(own.text, [...results, ...rest]), isSummary: true };
}

function withBlocks(message: string, blocks: readonly string[]): string {
  return withMember(message, 'content', `[${blocks.join(',')}]`);
}

/** A message's content as the text of its blocks. */
function blocksOf(message: string): readonly string[] {
  const content = memberSpans(message).get('content');
  if (content === undefined) return [];
  const characters = message.slice(content.start, content.end);
  if (characters.startsWith('"')) return [`{"type":"text","text":${characters}}`];
  return elementSpans(message, content.start).map((span) => message.slice(span.start, span.end));
}

function isResult(block: string): boolean {
  return valueAt(block, memberSpans(block).get('type')) === 'tool_result';
}

function isLasting({ text }: Written): boolean {
  return valueAt(text, memberSpans(text).get('clear_at')) !== 'next_user_message';
}
