import { isEmpty, isJsonObject, type JsonObject } from './json-value.js';
import { saysSomething } from './responses-reply.js';

/** Where a piece of text goes: into a member of the item, or of one part in a list of its. */
interface Place {
  readonly member: string;
  readonly part?: { readonly list: 'content' | 'summary'; readonly type: string };
}

/** By the words between `response.` and `.delta` or `.done` in an event's type. */
const PLACES: ReadonlyMap<string, Place> = new Map([
  ['output_text', { member: 'text', part: { list: 'content', type: 'output_text' } }],
  ['refusal', { member: 'refusal', part: { list: 'content', type: 'refusal' } }],
  ['reasoning_text', { member: 'text', part: { list: 'content', type: 'reasoning_text' } }],
  ['reasoning_summary_text', { member: 'text', part: { list: 'summary', type: 'summary_text' } }],
  ['function_call_arguments', { member: 'arguments' }],
  ['custom_tool_call_input', { member: 'input' }],
  ['mcp_call_arguments', { member: 'arguments' }],
  ['code_interpreter_call_code', { member: 'code' }],
]);

const PIECE = /^response\.(\w+)\.(delta|done)$/;

/** One item of a stream while it is said. */
export class OpenItem {
  #item: JsonObject;
  readonly #isDone: boolean;

  /** `isDone`: the item is as it ended. */
  constructor(item: JsonObject, isDone: boolean) {
    this.#item = item;
    this.#isDone = isDone;
  }

  /** What was said so far, as a whole reply has it. */
  wire(): JsonObject {
    return this.#item;
  }

  /** False for one that has only begun. */
  saysSomething(): boolean {
    return this.#isDone || saysSomething(this.#item, false);
  }

  /** Adds what an event of it says. Events of other kinds leave it as it is. */
  add(type: string, event: JsonObject): void {
    switch (type) {
      case 'response.content_part.added':
      case 'response.content_part.done':
        return this.#setPart('content', event['content_index'], event['part']);
      case 'response.reasoning_summary_part.added':
      case 'response.reasoning_summary_part.done':
        return this.#setPart('summary', event['summary_index'], event['part']);
      case 'response.output_text.annotation.added':
        return this.#addAnnotation(event);
      default:
        return this.#addPiece(type, event);
    }
  }

  #addPiece(type: string, event: JsonObject): void {
    const [, words = '', ending] = PIECE.exec(type) ?? [];
    const place = PLACES.get(words);
    if (place === undefined) return;
    const { member, part } = place;
    const text = ending === 'delta' ? event['delta'] : event[member];
    if (typeof text !== 'string') return;
    const added = (to: JsonObject): JsonObject => {
      const before = to[member];
      return { ...to, [member]: ending === 'delta' && typeof before === 'string' ? before + text : text };
    };
    if (part === undefined) {
      this.#item = added(this.#item);
    } else {
      const index = event[part.list === 'content' ? 'content_index' : 'summary_index'];
      const open = this.#parts(part.list)[placeOf(index)];
      this.#setPart(part.list, index, added(isJsonObject(open) ? open : { type: part.type }));
    }
  }

  #addAnnotation(event: JsonObject): void {
    const index = event['content_index'];
    const part = this.#parts('content')[placeOf(index)];
    if (!isJsonObject(part)) return;
    const before: readonly unknown[] = Array.isArray(part['annotations']) ? part['annotations'] : [];
    this.#setPart('content', index, { ...part, annotations: [...before, event['annotation']] });
  }

  #setPart(list: 'content' | 'summary', index: unknown, part: unknown): void {
    if (!isJsonObject(part)) return;
    const parts = [...this.#parts(list)];
    // A gap would be a part of nothing.
    parts[Math.min(placeOf(index), parts.length)] = part;
    this.#item = { ...this.#item, [list]: parts };
  }

  #parts(list: 'content' | 'summary'): readonly unknown[] {
    const parts = this.#item[list];
    return Array.isArray(parts) ? parts : [];
  }
}

function placeOf(index: unknown): number {
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : 0;
}

/** The beginning of an item whose own was never sent, as an event of it tells; null where it tells too little. */
export function impliedItem(type: string, event: JsonObject): JsonObject | null {
  const [, words = ''] = PIECE.exec(type) ?? [];
  const part = PLACES.get(words)?.part;
  if (part === undefined) return null;
  const { item_id: id } = event;
  const named = typeof id === 'string' ? { id } : {};
  return words.startsWith('reasoning')
    ? { ...named, type: 'reasoning', summary: [] }
    : { ...named, type: 'message', role: 'assistant', content: [] };
}

/** Whether an event holds content itself (SPEC 6.3): a piece of anything, by a delta or at its end. */
export function holdsContent(type: string, event: JsonObject): boolean {
  const [, words = '', ending] = PIECE.exec(type) ?? [];
  if (type === 'response.image_generation_call.partial_image') return !isEmpty(event['partial_image_b64']);
  if (ending === 'delta') return !isEmpty(event['delta']);
  const place = PLACES.get(words);
  return place !== undefined && !isEmpty(event[place.member]);
}
