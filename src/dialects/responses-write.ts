import { summaryMessage } from './chat-summary.js';
import type { WireItem, WireMessage } from './dialect.js';
import { valueAt, withMember, withoutMember } from './json-edits.js';
import { elementSpans, memberSpans, type Span } from './json-spans.js';
import { isEmpty, isJsonObject } from './json-value.js';
import { groupsOf } from './responses-group.js';
import { typeOf } from './responses-item.js';
import { readInstructions } from './responses-read.js';
import { reducedText } from './responses-results.js';

/**
 * The request `text` with another input (SPEC 4.3): the list is the whole of what the model is to read, so `previous_response_id` goes
 * (SPEC 1.7), and nothing else differs. What is kept are the very characters of its items; the field `instructions` stays where it is, and
 * a `kept` item that names it adds nothing to the list. An item that asks to compact stays last. The wire format takes user messages in a
 * row and reports usage unasked, so no option changes anything. Throws a RangeError for an item that is not in the request: a defect of
 * the caller.
 */
export function writeRequest(text: string, items: readonly WireItem[]): string {
  const members = memberSpans(text);
  const input = members.get('input');
  if (input === undefined) throw new RangeError('the request has no input');
  const { messages, trigger } = keptMessages(text, input);
  const fieldCount = readInstructions(valueAt(text, members.get('instructions'))) === undefined ? 0 : 1;
  const isStored = valueAt(text, members.get('store')) !== false;

  const writeMessage = (item: WireMessage): readonly string[] => {
    if (item.kind === 'stored') return storedItems(item.source, isStored).map((source) => JSON.stringify(source));
    const message = messages[item.index - fieldCount];
    if (message === undefined) throw new RangeError(`the request has no message ${item.index}`);
    return message;
  };
  const written = items.flatMap((item): readonly string[] => {
    switch (item.kind) {
      case 'kept':
        return item.index < fieldCount ? [] : writeMessage(item);
      case 'stored':
        return writeMessage(item);
      case 'reduced':
        return writeMessage(item.item).map((characters) => reducedText(characters, item.results));
      case 'summary':
        return [JSON.stringify(summaryMessage(item.content).source)];
    }
  });
  const list = `[${[...written, ...trigger].join(',')}]`;
  return withoutMember(withMember(text, 'input', list), 'previous_response_id');
}

/** The characters of the input's items, by message, and those of the item that asks to compact. */
function keptMessages(
  text: string,
  input: Span,
): { readonly messages: readonly (readonly string[])[]; readonly trigger: readonly string[] } {
  if (text.charAt(input.start) === '"') {
    return { messages: [[`{"role":"user","content":${text.slice(input.start, input.end)}}`]], trigger: [] };
  }
  const spans = elementSpans(text, input.start);
  const characters = spans.map((span) => text.slice(span.start, span.end));
  const items = spans.map((span) => valueAt(text, span));
  const length = typeOf(items.at(-1)) === 'compaction_trigger' ? items.length - 1 : items.length;
  const groups = groupsOf(items.slice(0, length));
  return { messages: groups.map(({ from, to }) => characters.slice(from, to)), trigger: characters.slice(length) };
}

/**
 * A message from the ledger as items. An upstream that stores nothing knows none of its ids: reasoning that the client was not given
 * encrypted can then not be sent again, and the item it belonged to goes without the id that would ask for it.
 */
function storedItems(source: unknown, isStored: boolean): readonly unknown[] {
  const items: readonly unknown[] = Array.isArray(source) ? source : [source];
  if (isStored) return items;
  const kept = items.filter(
    (item) => typeOf(item) !== 'reasoning' || (isJsonObject(item) && !isEmpty(item['encrypted_content'])),
  );
  return kept.length === items.length ? items : kept.map(withoutId);
}

/** Kinds whose id is nothing but a name at the provider. */
const NAMED_TYPES: ReadonlySet<unknown> = new Set(['message', 'function_call', 'custom_tool_call']);

function withoutId(item: unknown): unknown {
  if (!isJsonObject(item) || !NAMED_TYPES.has(typeOf(item))) return item;
  const { id: _id, ...rest } = item;
  return rest;
}
