import { idOf, typeOf } from './response-item.js';
import type { Item } from './responses-request.js';

/** A response that was stored. */
export interface StoredResponse {
  /** As it was answered. */
  readonly body: unknown;
  /** What the model had read for it, references resolved. */
  readonly input: readonly Item[];
  /** What it said, with everything an item carries in secret. */
  readonly output: readonly Item[];
}

export interface StoredItem {
  readonly item: Item;
  /** Id of the reasoning it was made with, right before it; null if there was none. */
  readonly reasoningId: string | null;
}

/** What a provider keeps of the responses it was asked to store. */
export interface ResponseStore {
  keep(id: string, response: StoredResponse): void;
  response(id: string): StoredResponse | null;
  item(id: string): StoredItem | null;
  /** Forgets a response and what it said; false if there was none. */
  delete(id: string): boolean;
}

export function createResponseStore(): ResponseStore {
  const responses = new Map<string, StoredResponse>();
  const items = new Map<string, StoredItem>();
  return {
    keep: (id, response) => {
      responses.set(id, response);
      for (const [index, item] of response.output.entries()) {
        const before = response.output[index - 1];
        const reasoningId = before !== undefined && typeOf(before) === 'reasoning' ? idOf(before) : null;
        const itemId = idOf(item);
        if (itemId !== null) items.set(itemId, { item, reasoningId });
      }
    },
    response: (id) => responses.get(id) ?? null,
    item: (id) => items.get(id) ?? null,
    delete: (id) => {
      for (const itemId of (responses.get(id)?.output ?? []).map(idOf)) if (itemId !== null) items.delete(itemId);
      return responses.delete(id);
    },
  };
}
