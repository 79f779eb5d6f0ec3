import { isJsonObject, type JsonObject } from './json-value.js';

/** Members whose text arrives in pieces, by the delta's member of the same name. Of any other the last value counts. */
const SPLIT_TEXTS = new Set(['text', 'thinking']);

/** One content block of a stream while it is said. */
export class OpenBlock {
  readonly #members: Map<string, unknown>;
  #json = '';

  constructor(start: JsonObject) {
    this.#members = new Map(Object.entries(start));
  }

  /** Adds a delta; true if it held content (SPEC 6.3): anything with a value but counts of hidden thought. */
  add(delta: JsonObject): boolean {
    let hasContent = false;
    for (const [key, value] of Object.entries(delta)) {
      if (key === 'type' || key === 'estimated_tokens' || value === null || value === '') continue;
      hasContent = true;
      const before = this.#members.get(key);
      if (key === 'partial_json') {
        if (typeof value === 'string') this.#json += value;
      } else if (key === 'citation') {
        const given = this.#members.get('citations');
        const citations: readonly unknown[] = Array.isArray(given) ? given : [];
        this.#members.set('citations', [...citations, value]);
      } else if (SPLIT_TEXTS.has(key) && typeof value === 'string' && typeof before === 'string') {
        this.#members.set(key, before + value);
      } else {
        this.#members.set(key, value);
      }
    }
    return hasContent;
  }

  /** As a whole reply has it. */
  wire(): JsonObject {
    const members = Object.fromEntries(this.#members);
    return this.#json === '' ? members : { ...members, input: parsedInput(this.#json) };
  }
}

/**
 * Input that is no object, because it broke off or was never checked, is kept as text in the one member that the provider asks for
 * such input to be sent back in.
 */
function parsedInput(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    if (isJsonObject(value)) return value;
  } catch {
    // Told below.
  }
  return { INVALID_JSON: json };
}
