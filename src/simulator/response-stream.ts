import { isRecord, stringsIn } from './json-value.js';
import { outputLogprobs } from './response-output.js';
import type { Item, ResponsesRequest } from './responses-request.js';
import { piecesOf, sseTyped } from './server-events.js';

/** Short deltas are padded to the length of this, so that their size says nothing of the text in them. */
const PADDING = 'simulated-padding-of-short-deltas';

/** An event without its number. */
type Event = Item & { readonly type: string };

/** A response as server-sent events: `open` before and `closed` after its output was told item by item. */
export function responseStream(
  open: Item,
  closed: Item,
  output: readonly Item[],
  request: ResponsesRequest,
): readonly string[] {
  const options = request.body['stream_options'];
  const pads = !isRecord(options) || options['include_obfuscation'] !== false;
  const events: readonly Event[] = [
    { type: 'response.created', response: open },
    { type: 'response.in_progress', response: open },
    ...output.flatMap((item, index) => itemEvents(item, index, request)),
    { type: closed['status'] === 'incomplete' ? 'response.incomplete' : 'response.completed', response: closed },
  ];
  return events.map((event, index) => numbered(pads ? padded(event) : event, index));
}

/** The event that ends a response which fails. */
export function failedEvent(
  open: Item,
  error: { readonly code: string; readonly message: string },
  index: number,
): string {
  return numbered({ type: 'response.failed', response: { ...open, status: 'failed', error } }, index);
}

function numbered({ type, ...event }: Event, index: number): string {
  return sseTyped({ type, sequence_number: index, ...event });
}

function padded(event: Event): Event {
  const { delta } = event;
  return typeof delta === 'string' ? { ...event, obfuscation: PADDING.slice(delta.length) } : event;
}

function itemEvents(item: Item, outputIndex: number, request: ResponsesRequest): readonly Event[] {
  const place = { item_id: item['id'], output_index: outputIndex };
  return [
    { type: 'response.output_item.added', output_index: outputIndex, item: begun(item) },
    ...toldEvents(item, place, request),
    { type: 'response.output_item.done', output_index: outputIndex, item },
  ];
}

/** An item before anything of it was told. */
function begun(item: Item): Item {
  switch (item['type']) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] };
    case 'function_call':
      return { ...item, status: 'in_progress', arguments: '' };
    case 'custom_tool_call':
      return { ...item, status: 'in_progress', input: '' };
    case 'reasoning':
      return { ...item, summary: [] };
    default:
      return item;
  }
}

function toldEvents(item: Item, place: Item, request: ResponsesRequest): readonly Event[] {
  switch (item['type']) {
    case 'message':
      return records(item['content']).flatMap((part, index) =>
        partEvents(part, { ...place, content_index: index }, request),
      );
    case 'reasoning':
      return records(item['summary']).flatMap((part, index) => summaryEvents(part, { ...place, summary_index: index }));
    case 'function_call':
      return [
        ...deltas('response.function_call_arguments', place, stringOf(item['arguments'])),
        { type: 'response.function_call_arguments.done', ...place, arguments: item['arguments'], name: item['name'] },
      ];
    case 'custom_tool_call':
      return [
        ...deltas('response.custom_tool_call_input', place, stringOf(item['input'])),
        { type: 'response.custom_tool_call_input.done', ...place, input: item['input'] },
      ];
    default:
      return [];
  }
}

function partEvents(part: Item, place: Item, request: ResponsesRequest): readonly Event[] {
  const isRefusal = part['type'] === 'refusal';
  const told = isRefusal
    ? [
        ...deltas('response.refusal', place, stringOf(part['refusal'])),
        { type: 'response.refusal.done', ...place, refusal: part['refusal'] },
      ]
    : [
        ...deltas('response.output_text', place, stringOf(part['text'])).map((event) => ({
          ...event,
          logprobs: outputLogprobs(event.delta, request),
        })),
        { type: 'response.output_text.done', ...place, text: part['text'], logprobs: part['logprobs'] },
      ];
  const empty = isRefusal ? { ...part, refusal: '' } : { ...part, text: '', logprobs: [] };
  return [
    { type: 'response.content_part.added', ...place, part: empty },
    ...told,
    { type: 'response.content_part.done', ...place, part },
  ];
}

function summaryEvents(part: Item, place: Item): readonly Event[] {
  return [
    { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
    ...deltas('response.reasoning_summary_text', place, stringOf(part['text'])),
    { type: 'response.reasoning_summary_text.done', ...place, text: part['text'] },
    { type: 'response.reasoning_summary_part.done', ...place, part },
  ];
}

function deltas(name: string, place: Item, text: string): readonly (Event & { readonly delta: string })[] {
  return piecesOf(text).map((delta) => ({ type: `${name}.delta`, ...place, delta }));
}

function records(list: unknown): readonly Item[] {
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

function stringOf(value: unknown): string {
  return stringsIn(value).join('');
}
