import type { Encoding } from './encoding.js';
import { LONG_PIECE_BYTES, Merger } from './merger.js';
import { PieceSplitter } from './piece-splitter.js';
import { RankTable } from './rank-table.js';

/**
 * A tokenizer, exact and at most n log n in the length of its text. Special tokens written in text are text, and lone
 * surrogates are U+FFFD, as in the UTF-8 that goes over the wire.
 */
export class BpeEncoder {
  readonly #splitter: PieceSplitter;
  readonly #merger: Merger;
  readonly #utf8 = new TextEncoder();

  constructor(encoding: Encoding, packedRanks: Uint8Array) {
    this.#splitter = new PieceSplitter(encoding);
    this.#merger = new Merger(new RankTable(packedRanks));
  }

  /** Merge steps made since it was built. */
  get steps(): number {
    return this.#merger.steps;
  }

  count(text: string): number {
    return this.#tokenize(text);
  }

  /** As `count`, but yields between its runs wherever `isDue` says so; others may be counted meanwhile. */
  *countInRuns(text: string, isDue: () => boolean): Generator<void, number> {
    const bytes = this.#utf8.encode(text);
    let count = 0;
    for (let start = 0; start < bytes.length;) {
      const end = this.#splitter.pieceEnd(bytes, start);
      count +=
        end - start > LONG_PIECE_BYTES
          ? yield* this.#merger.mergeInRuns(bytes, start, end, isDue)
          : this.#merger.merge(bytes, start, end);
      if (isDue()) yield;
      start = end;
    }
    return count;
  }

  encode(text: string): number[] {
    const ranks: number[] = [];
    this.#tokenize(text, ranks);
    return ranks;
  }

  #tokenize(text: string, ranks?: number[]): number {
    const bytes = this.#utf8.encode(text);
    let count = 0;
    for (let start = 0; start < bytes.length;) {
      const end = this.#splitter.pieceEnd(bytes, start);
      count += this.#merger.merge(bytes, start, end, ranks);
      start = end;
    }
    return count;
  }
}
