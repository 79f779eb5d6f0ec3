import { isEmpty, isJsonObject, parsedJson, type JsonObject } from './json-value.js';
import { errorOf } from './responses-reply.js';

/** A whole response's body as the events of a stream that says the same; null for what is none or did not come to its end. */
export function streamOf(body: string): string | null {
  const response = parsedJson(body);
  if (!isJsonObject(response) || errorOf(response) !== null) return null;
  const { output, status = 'completed' } = response;
  if (!Array.isArray(output) || !output.every(isJsonObject)) return null;
  if (status !== 'completed' && status !== 'incomplete') return null;
  return responseEvents({ ...response, status }, output);
}

/** A response as its events, each text in one delta. */
export function responseEvents(response: JsonObject, output: readonly JsonObject[]): string {
  const begun = { ...response, status: 'in_progress', incomplete_details: null, output: [], usage: null };
  return eventTexts([
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...output.flatMap((item, index) => itemEvents(item, index)),
    { type: `response.${String(response['status'])}`, response },
  ]);
}

/** Events as the text of a stream, numbered from `first`. */
export function eventTexts(events: readonly JsonObject[], first = 0): string {
  return events
    .map(({ type, ...members }, index) => {
      const data = JSON.stringify({ type, sequence_number: first + index, ...members });
      return `event: ${String(type)}\ndata: ${data}\n\n`;
    })
    .join('');
}

function itemEvents(item: JsonObject, output_index: number): readonly JsonObject[] {
  const place = { item_id: item['id'], output_index };
  const { start, pieces } = inPieces(item);
  return [
    { type: 'response.output_item.added', output_index, item: start },
    ...pieces.map(({ type, ...members }) => ({ type, ...place, ...members })),
    { type: 'response.output_item.done', output_index, item },
  ];
}

/** Items that arrive in pieces begin empty; all others come whole. */
function inPieces(item: JsonObject): { readonly start: JsonObject; readonly pieces: readonly JsonObject[] } {
  switch (item['type']) {
    case 'message': {
      const start = { ...item, status: 'in_progress', content: [] };
      return { start, pieces: partsOf(item['content']).flatMap(contentPieces) };
    }
    case 'reasoning': {
      const content = partsOf(item['content']);
      const start = { ...item, summary: [], ...(content.length > 0 ? { content: [] } : {}) };
      return { start, pieces: [...partsOf(item['summary']).flatMap(summaryPieces), ...content.flatMap(contentPieces)] };
    }
    case 'function_call':
      return oneText(item, 'response.function_call_arguments', 'arguments');
    case 'custom_tool_call':
      return oneText(item, 'response.custom_tool_call_input', 'input');
    default:
      return { start: item, pieces: [] };
  }
}

function oneText(item: JsonObject, type: string, member: string): ReturnType<typeof inPieces> {
  const text = item[member];
  const start = { ...item, status: 'in_progress', [member]: '' };
  return { start, pieces: [...deltaOf(type, text), { type: `${type}.done`, [member]: text }] };
}

const TEXT_EVENTS: ReadonlyMap<unknown, readonly [type: string, member: string]> = new Map([
  ['output_text', ['response.output_text', 'text']],
  ['refusal', ['response.refusal', 'refusal']],
  ['reasoning_text', ['response.reasoning_text', 'text']],
]);

function contentPieces(part: JsonObject, content_index: number): readonly JsonObject[] {
  const [type, member] = TEXT_EVENTS.get(part['type']) ?? [];
  const isText = type !== undefined && member !== undefined;
  const text = isText ? part[member] : null;
  // Annotations come with the part's end.
  const empty = isText ? { ...part, [member]: '', ...('annotations' in part ? { annotations: [] } : {}) } : part;
  return [
    { type: 'response.content_part.added', part: empty },
    ...(isText ? [...deltaOf(type, text), { type: `${type}.done`, [member]: text }] : []),
    { type: 'response.content_part.done', part },
  ].map((piece) => ({ ...piece, content_index }));
}

function summaryPieces(part: JsonObject, summary_index: number): readonly JsonObject[] {
  const { text } = part;
  return [
    { type: 'response.reasoning_summary_part.added', part: { ...part, text: '' } },
    ...deltaOf('response.reasoning_summary_text', text),
    { type: 'response.reasoning_summary_text.done', text },
    { type: 'response.reasoning_summary_part.done', part },
  ].map((piece) => ({ ...piece, summary_index }));
}

function deltaOf(type: string, text: unknown): readonly JsonObject[] {
  return isEmpty(text) ? [] : [{ type: `${type}.delta`, delta: text }];
}

function partsOf(parts: unknown): readonly JsonObject[] {
  return Array.isArray(parts) ? parts.filter(isJsonObject) : [];
}
