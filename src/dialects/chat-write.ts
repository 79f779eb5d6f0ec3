import { readChatMessage } from './chat-message.js';
import { summaryMessage } from './chat-summary.js';
import type { WireItem } from './dialect.js';
import { applyEdits, valueAt, type Edit } from './json-edits.js';
import { elementSpans, memberSpans, type Span } from './json-spans.js';
import { isJsonObject } from './json-value.js';

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

/** A message of the list to be sent. `content`: of a user message, null where it cannot be joined with another. */
interface Written {
  readonly message: string;
  readonly content: Content | null;
  readonly isSubstitute: boolean;
}

/** Content as the characters between its quotes or brackets. */
interface Content {
  readonly kind: 'string' | 'parts';
  readonly characters: string;
}

function writeItems(kept: readonly string[], items: readonly WireItem[], alternate: boolean): readonly string[] {
  if (!alternate) return items.map((item) => writeItem(kept, item));
  const runs: Written[][] = [];
  for (const item of items) {
    const message = writeItem(kept, item);
    const written = { message, content: userContent(message), isSubstitute: item.kind === 'summary' };
    const last = runs.at(-1);
    if (written.content !== null && last !== undefined && last[0]?.content !== null) last.push(written);
    else runs.push([written]);
  }
  return runs.flatMap((run) => joinedRun(run) ?? run.map(({ message }) => message));
}

/**
 * User messages in a row as one, if one of them stands in for others (SPEC 4.4); null if all are the client's own, or there is but one.
 * Its members beside the content are those of the client's first.
 */
function joinedRun(run: readonly Written[]): string | null {
  if (run.length < 2 || !run.some(({ isSubstitute }) => isSubstitute)) return null;
  const base = (run.find(({ isSubstitute }) => !isSubstitute) ?? run[0])?.message ?? '';
  const span = memberSpans(base).get('content');
  const contents = run.map(({ content }) => content).filter((content) => content !== null);
  return span === undefined ? null : applyEdits(base, [{ ...span, text: joinContents(contents) }]);
}

/** Strings make a string: not every upstream that insists on alternation reads parts. */
function joinContents(contents: readonly Content[]): string {
  if (contents.every(({ kind }) => kind === 'string')) {
    return `"${contents.map(({ characters }) => characters).join('\\n\\n')}"`;
  }
  const parts = contents.map(({ kind, characters }) =>
    kind === 'parts' ? characters : `{"type":"text","text":"${characters}"}`,
  );
  return `[${parts.filter((part) => part.trim() !== '').join(',')}]`;
}

function userContent(message: string): Content | null {
  const members = memberSpans(message);
  const role = members.get('role');
  const content = members.get('content');
  if (role === undefined || content === undefined || valueAt(message, role) !== 'user') return null;
  const value = valueAt(message, content);
  if (typeof value !== 'string' && !Array.isArray(value)) return null;
  const characters = message.slice(content.start + 1, content.end - 1);
  return { kind: typeof value === 'string' ? 'string' : 'parts', characters };
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
