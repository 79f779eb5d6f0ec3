import { foldFunction } from './chat-function.js';
import { isJsonObject, type JsonObject } from './json-value.js';

interface OpenCall {
  readonly index: number;
  readonly members: Map<string, unknown>;
}

/** The tool calls of one choice while they arrive, in pieces and possibly interleaved. */
export class CallList {
  readonly #calls: OpenCall[] = [];

  /**
   * Adds one entry of a delta's `tool_calls`. It belongs to the last call with its index, or with its id where the
   * vendor sends none, or to the last one where it sends neither and no name. An entry with a name and an id of its own
   * begins a new call all the same: some vendors number parallel calls alike, others invent an id for each nameless piece.
   */
  add(entry: JsonObject): void {
    const call = this.#callOf(entry) ?? this.#begin(entry);
    for (const [key, value] of Object.entries(entry)) {
      const before = call.members.get(key);
      if (key === 'index' || value === null || value === '') continue;
      if (key === 'id' && before !== undefined) continue;
      if ((key === 'function' || key === 'custom') && isJsonObject(value)) {
        call.members.set(key, foldFunction(isJsonObject(before) ? before : {}, value));
      } else {
        call.members.set(key, value);
      }
    }
  }

  /** As a whole reply has them, by index. */
  wire(): readonly JsonObject[] {
    return [...this.#calls]
      .toSorted((a, b) => a.index - b.index)
      .map(({ members }) => {
        const type = members.has('custom') ? 'custom' : 'function';
        return Object.fromEntries([['id', ''], ['type', type], ...members]);
      });
  }

  #callOf(entry: JsonObject): OpenCall | undefined {
    const { index, id } = entry;
    const hasId = typeof id === 'string' && id !== '';
    const named = hasName(entry['function']) || hasName(entry['custom']);
    if (typeof index === 'number') {
      const call = this.#calls.findLast((open) => open.index === index);
      const known = call?.members.get('id') ?? id;
      return named && hasId && known !== id ? undefined : call;
    }
    if (hasId) return this.#calls.find((open) => open.members.get('id') === id);
    return named ? undefined : this.#calls.at(-1);
  }

  #begin(entry: JsonObject): OpenCall {
    const index = typeof entry['index'] === 'number' ? entry['index'] : this.#calls.length;
    const call: OpenCall = { index, members: new Map() };
    this.#calls.push(call);
    return call;
  }
}

function hasName(value: unknown): boolean {
  return isJsonObject(value) && typeof value['name'] === 'string' && value['name'] !== '';
}
