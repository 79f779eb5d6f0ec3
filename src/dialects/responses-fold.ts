import type { EventMeaning, Folder, Reply, Unread } from './dialect.js';
import { isEmpty, isJsonObject, parsedJson, unlessTooDeep, type JsonObject } from './json-value.js';
import { holdsContent, impliedItem, OpenItem } from './responses-open-item.js';
import { errorOf, replyOf, saysSomething } from './responses-reply.js';

const NOTHING: EventMeaning = { hasContent: false, usageOnly: false, hasError: false, ends: false };

/** Events that carry the response as it is by then, and the status they give it: not every server keeps its own up. */
const STATUSES: ReadonlyMap<unknown, string> = new Map([
  ['response.created', 'in_progress'],
  ['response.queued', 'queued'],
  ['response.in_progress', 'in_progress'],
  ['response.completed', 'completed'],
  ['response.incomplete', 'incomplete'],
  ['response.failed', 'failed'],
  ['response.cancelled', 'cancelled'],
]);

/** Folds the events of a Responses stream. */
export class ResponsesFolder implements Folder {
  readonly #items = new Map<number, OpenItem>();
  /** Places of items of which something came that could not be understood. */
  readonly #lost = new Set<number>();
  #response: JsonObject = {};
  #error: string | null = null;
  #unread: Unread | null = null;

  push(data: string, event: string | null): EventMeaning {
    const meaning = unlessTooDeep(() => this.#fold(data, event));
    if (meaning !== null) return meaning;
    // What nests too deep to be folded was said all the same: it is relayed, and nothing can be retried after it.
    this.#unread ??= 'too_deep';
    return { ...NOTHING, hasContent: true };
  }

  reply(): Reply {
    const said = [...this.#items].toSorted(([a], [b]) => a - b).filter(([, item]) => item.saysSomething());
    const items = said.map(([, item]) => item.wire());
    // The response at its end repeats its items; some servers leave them out of it.
    const { output } = this.#response;
    const isRepeated = Array.isArray(output) && output.length > 0 && output.length >= items.length;
    const gap = !isRepeated && [...this.#lost].some((place) => !this.#items.has(place)) ? 'malformed' : null;
    return replyOf(this.#response, isRepeated ? output : items, { error: this.#error, unread: this.#unread ?? gap });
  }

  #fold(data: string, event: string | null): EventMeaning {
    const chunk = parsedJson(data);
    if (!isJsonObject(chunk)) return this.#foldOther(data, event);
    const type: unknown = chunk['type'] ?? event;
    const status = STATUSES.get(type);
    if (status !== undefined) return this.#foldResponse(status, chunk['response']);
    const error = errorOfEvent(chunk, type);
    if (error !== null) return this.#fail(error);
    if (typeof type !== 'string') return NOTHING;
    if (type === 'response.output_item.added' || type === 'response.output_item.done') {
      return { ...NOTHING, hasContent: this.#setItem(this.#placeOf(chunk), chunk['item'], type.endsWith('.done')) };
    }
    this.#addTo(type, chunk);
    return { ...NOTHING, hasContent: holdsContent(type, chunk) };
  }

  /** Data that is no object: an error where the event says so, garbled where it began as one, otherwise a word of some server's own. */
  #foldOther(data: string, event: string | null): EventMeaning {
    if (event === 'error') return this.#fail(JSON.stringify({ error: { message: data, code: null } }));
    if (data.trimStart().startsWith('{')) this.#unread ??= 'malformed';
    return NOTHING;
  }

  #fail(error: string): EventMeaning {
    this.#error ??= error;
    return { ...NOTHING, hasError: true };
  }

  #foldResponse(status: string, given: unknown): EventMeaning {
    const response = isJsonObject(given) ? given : {};
    this.#response = { ...this.#response, ...response, status };
    const ends = status !== 'in_progress' && status !== 'queued';
    const error = errorOf(this.#response);
    if (error !== null) return { ...this.#fail(error), ends };
    // Where nothing came before, it is all the content there is.
    const { output } = response;
    return {
      ...NOTHING,
      hasContent: ends && Array.isArray(output) && output.some((item) => saysSomething(item, true)),
      ends,
    };
  }

  #setItem(place: number, item: unknown, isDone: boolean): boolean {
    if (!isJsonObject(item)) return false;
    this.#items.set(place, new OpenItem(item, isDone));
    return saysSomething(item, isDone);
  }

  #addTo(type: string, chunk: JsonObject): void {
    const place = this.#placeOf(chunk);
    const open = this.#items.get(place);
    if (open !== undefined) return open.add(type, chunk);
    if (!holdsContent(type, chunk)) return;
    const implied = impliedItem(type, chunk);
    if (implied === null) {
      this.#lost.add(place);
    } else {
      const item = new OpenItem(implied, false);
      item.add(type, chunk);
      this.#items.set(place, item);
    }
  }

  /** Where an event's item stands, by its number or, where a server sends none, by its id. */
  #placeOf(chunk: JsonObject): number {
    const { output_index: index, item_id: id, item } = chunk;
    if (typeof index === 'number') return index;
    const name = isJsonObject(item) ? item['id'] : id;
    const known = [...this.#items].find(([, open]) => name !== undefined && open.wire()['id'] === name);
    return known?.[0] ?? (isJsonObject(item) ? this.#items.size : Math.max(0, this.#items.size - 1));
  }
}

/** An error event is the error itself or an envelope of one, and an envelope is an error whatever its event is called. */
function errorOfEvent(chunk: JsonObject, type: unknown): string | null {
  if (!isEmpty(chunk['error'])) return JSON.stringify({ error: chunk['error'] });
  const { type: _kind, sequence_number: _place, ...error } = chunk;
  return type === 'error' ? JSON.stringify({ error }) : null;
}
