import { readSystem } from './anthropic-message.js';
import { modelTraits } from './anthropic-models.js';
import { alternating, placeSystem, type Written } from './anthropic-place.js';
import { reducedText } from './anthropic-results.js';
import { summaryMessage } from './chat-summary.js';
import type { WireItem } from './dialect.js';
import { applyEdits, valueAt, withMember } from './json-edits.js';
import { elementSpans, memberSpans } from './json-spans.js';
import { isJsonObject, type JsonObject } from './json-value.js';

/**
 * The request `text` with another message list (SPEC 4.3): nothing else differs, and what is kept are its very characters, cache marks
 * included. None is added, and a message from the ledger, which this request did not mark, carries none. `system` stays where it is: a
 * `kept` item that names it adds nothing to the list. Throws a RangeError for an item that is not in the request: a defect of the
 * caller.
 *
 * Where the model binds thoughts to what was said before them, those behind the first substitution are left out: the model would
 * refuse them, and to leave out all from one on is what it allows.
 */
export function writeRequest(
  text: string,
  items: readonly WireItem[],
  options: { readonly askForUsage: boolean; readonly alternate: boolean },
): string {
  const members = memberSpans(text);
  const list = members.get('messages');
  if (list === undefined) throw new RangeError('the request has no messages');
  const messages = elementSpans(text, list.start).map((span) => text.slice(span.start, span.end));
  const systemCount = readSystem(valueAt(text, members.get('system'))) === undefined ? 0 : 1;
  const firstOfChain = systemCount + messages.findIndex((message) => roleOf(message) !== 'system');
  const model = valueAt(text, members.get('model'));
  const { bindsThinking } = modelTraits(typeof model === 'string' ? model : '', '');

  const written: Written[] = [];
  let isChanged = false;
  for (const item of items) {
    if (item.kind === 'kept' && item.index < systemCount) continue;
    const characters = writeItem(messages, item, systemCount);
    const message = isChanged && bindsThinking ? withoutThinking(characters) : characters;
    isChanged ||= item.kind === 'summary' || item.kind === 'reduced';
    if (message === null || isEmpty(message)) continue;
    const isLeading = item.kind === 'kept' && item.index < firstOfChain;
    written.push({ text: message, role: roleOf(message), isSummary: item.kind === 'summary', isLeading });
  }
  const placed = placeSystem(written);
  const sent = options.alternate ? alternating(placed) : placed;
  return applyEdits(text, [{ ...list, text: `[${sent.map((message) => message.text).join(',')}]` }]);
}

function writeItem(messages: readonly string[], item: WireItem, systemCount: number): string {
  switch (item.kind) {
    case 'reduced':
      return reducedText(writeItem(messages, item.item, systemCount), item.results);
    case 'kept': {
      const message = messages[item.index - systemCount];
      if (message === undefined) throw new RangeError(`the request has no message ${item.index}`);
      return message;
    }
    case 'stored':
      return JSON.stringify(withoutCacheMarks(item.source));
    case 'summary':
      return JSON.stringify(summaryMessage(item.content).source);
  }
}

function roleOf(message: string): string {
  return String(valueAt(message, memberSpans(message).get('role')));
}

/** A reply of nothing is a reply, but the provider takes no message without content. */
function isEmpty(message: string): boolean {
  const content = memberSpans(message).get('content');
  return content !== undefined && ['[]', '""'].includes(message.slice(content.start, content.end));
}

function withoutThinking(message: string): string | null {
  const content = memberSpans(message).get('content');
  if (content === undefined || roleOf(message) !== 'assistant') return message;
  const blocks = elementSpans(message, content.start);
  const kept = blocks.filter((span) => {
    const type = valueAt(message, memberSpans(message, span.start).get('type'));
    return type !== 'thinking' && type !== 'redacted_thinking';
  });
  if (kept.length === blocks.length) return message;
  if (kept.length === 0) return null;
  return withMember(message, 'content', `[${kept.map((span) => message.slice(span.start, span.end)).join(',')}]`);
}

/** A message without the cache marks of its blocks and of the blocks in its tool results. */
function withoutCacheMarks(source: unknown): unknown {
  if (!isJsonObject(source) || !Array.isArray(source['content'])) return source;
  return { ...source, content: source['content'].map(withoutMark) };
}

function withoutMark(block: unknown): unknown {
  if (!isJsonObject(block)) return block;
  const { cache_control: _mark, ...rest }: JsonObject = block;
  const { content } = rest;
  return block['type'] === 'tool_result' && Array.isArray(content)
    ? { ...rest, content: content.map(withoutMark) }
    : rest;
}
