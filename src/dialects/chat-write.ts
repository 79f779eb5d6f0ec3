import { readChatMessage } from './chat-message.js';
import { summaryMessage } from './chat-summary.js';
import type { WireItem } from './dialect.js';
import { elementSpans, memberSpans, type Span } from './json-spans.js';
import { isJsonObject } from './json-value.js';

interface Edit extends Span {
  readonly text: string;
}

/**
 * The request `text` with another message list (SPEC 4.3). What is kept, in the list and outside it, are the very
 * characters of `text`. Throws a RangeError for an item that is not in the request: a defect of the caller.
 */
export function writeRequest(
  text: string,
  items: readonly WireItem[],
  options: { readonly askForUsage: boolean; readonly alternate: boolean },
): string {
  const members = memberSpans(text);
  const list = members.get('messages');
  if (list === undefined) throw new RangeError('the request has no messages');
  const kept = elementSpans(text, list.start).map((span) => text.slice(span.start, span.end));
  const edits: Edit[] = [{ ...list, text: `[${writeItems(kept, items, options.alternate).join(',')}]` }];
  if (options.askForUsage) {
    const edit = usageEdit(text, members);
    if (edit !== null) edits.push(edit);
  }
  return applyEdits(text, edits);
}

function writeItems(kept: readonly string[], items: readonly WireItem[], alternate: boolean): readonly string[] {
  const messages: string[] = [];
  let pending: string | null = null;
  for (const item of items) {
    const message = writeItem(kept, item);
    const merged: string | null = pending === null ? null : prependContent(message, pending);
    if (merged !== null) messages[messages.length - 1] = merged;
    else messages.push(message);
    pending = alternate && item.kind === 'summary' ? summaryMessage(item.content).text : null;
  }
  return messages;
}

function writeItem(kept: readonly string[], item: WireItem): string {
  switch (item.kind) {
    case 'reduced':
      return reducedResult(writeItem(kept, item.item), item.results);
    case 'kept': {
      const message = kept[item.index];
      if (message === undefined) throw new RangeError(`the request has no message ${item.index}`);
      return message;
    }
    case 'stored':
      return JSON.stringify(item.source);
    case 'summary':
      return JSON.stringify(summaryMessage(item.content).source);
  }
}

/** A tool message with the text that its call id has in `results`; its other members keep their characters. */
function reducedResult(message: string, results: ReadonlyMap<string, string>): string {
  const members = memberSpans(message);
  const content = members.get('content');
  const text = readChatMessage(JSON.parse(message))?.results.flatMap(({ callId }) => results.get(callId) ?? [])[0];
  if (content === undefined || text === undefined) return message;
  return applyEdits(message, [{ ...content, text: JSON.stringify(text) }]);
}

/**
 * A user message with `text` put before its content; null if it is no user message. A string stays a string (not every
 * upstream that insists on alternation reads parts), parts get one more; its other members keep their characters.
 */
function prependContent(message: string, text: string): string | null {
  const members = memberSpans(message);
  const role = members.get('role');
  const content = members.get('content');
  if (role === undefined || content === undefined || valueAt(message, role) !== 'user') return null;
  const value = valueAt(message, content);
  const characters = message.slice(content.start + 1, content.end - 1);
  if (typeof value === 'string') {
    return applyEdits(message, [{ ...content, text: `${JSON.stringify(`${text}\n\n`).slice(0, -1)}${characters}"` }]);
  }
  if (!Array.isArray(value)) return null;
  const part = JSON.stringify({ type: 'text', text });
  return applyEdits(message, [{ ...content, text: `[${part}${value.length === 0 ? '' : ','}${characters}]` }]);
}

/** What makes a stream report its usage; null where nothing has to change. */
function usageEdit(text: string, members: ReadonlyMap<string, Span>): Edit | null {
  const stream = members.get('stream');
  if (stream === undefined || valueAt(text, stream) !== true) return null;
  const options = members.get('stream_options');
  if (options === undefined) return insertBehind(members, '"stream_options":{"include_usage":true}');
  const value = valueAt(text, options);
  if (value === null) return { ...options, text: '{"include_usage":true}' };
  if (!isJsonObject(value) || value['include_usage'] === true) return null;
  const inner = memberSpans(text, options.start);
  const flag = inner.get('include_usage');
  if (flag !== undefined) return { ...flag, text: 'true' };
  if (inner.size === 0) return { ...options, text: '{"include_usage":true}' };
  return insertBehind(inner, '"include_usage":true');
}

/** Adds a member behind the last of an object that has some. */
function insertBehind(members: ReadonlyMap<string, Span>, member: string): Edit {
  const end = Math.max(...[...members.values()].map((span) => span.end));
  return { start: end, end, text: `,${member}` };
}

function valueAt(text: string, span: Span): unknown {
  return JSON.parse(text.slice(span.start, span.end));
}

function applyEdits(text: string, edits: readonly Edit[]): string {
  let result = '';
  let at = 0;
  for (const edit of [...edits].toSorted((a, b) => a.start - b.start)) {
    result += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return result + text.slice(at);
}
