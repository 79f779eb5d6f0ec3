import { sha256 } from '@noble/hashes/sha2.js';

/** Counts of texts, the longest unused forgotten first. Of a text only its digest is held, however long it is. */
export class CountCache {
  readonly #limit: number;
  /** A Map keeps the order of insertion: the first key is the longest unused. */
  readonly #counts = new Map<string, number>();

  /** `limit`: most counts that are held, each in about 150 bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): number | undefined {
    const count = this.#counts.get(key);
    if (count !== undefined) this.set(key, count);
    return count;
  }

  set(key: string, count: number): void {
    this.#counts.delete(key);
    this.#counts.set(key, count);
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > this.#limit && oldest !== undefined) this.#counts.delete(oldest);
  }
}

/** What a text is known by here. A lone surrogate is U+FFFD, which is also how it is counted. */
export function keyOf(text: string): string {
  return String.fromCharCode(...sha256(new TextEncoder().encode(text)));
}
