/** Counts of texts, the longest unused forgotten first, bounded by the characters it holds on to. */
export class CountCache {
  readonly #limitChars: number;
  /** A Map keeps the order of insertion: the first key is the longest unused. */
  readonly #counts = new Map<string, number>();
  #chars = 0;

  constructor(limitChars: number) {
    this.#limitChars = limitChars;
  }

  get(text: string): number | undefined {
    const count = this.#counts.get(text);
    if (count !== undefined) {
      this.#counts.delete(text);
      this.#counts.set(text, count);
    }
    return count;
  }

  /** Keeps the count of a text that is not held yet. */
  add(text: string, count: number): void {
    const key = detached(text);
    this.#counts.set(key, count);
    this.#chars += key.length;
    for (const oldest of this.#counts.keys()) {
      if (this.#chars <= this.#limitChars) break;
      this.#counts.delete(oldest);
      this.#chars -= oldest.length;
    }
  }
}

/**
 * A copy that shares no memory: engines keep a substring as a view that holds its whole parent, here a request body. A
 * lone surrogate comes out as U+FFFD, which is also how it is counted.
 */
function detached(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}
