import { hashStep, NO_RANK, type RankTable } from './rank-table.js';

/* Indexes below are proven in range by construction, in loops too hot for a check: hence the `!`. */

/** Working arrays up to this many bytes of a piece are kept between pieces; those of a longer one live as long as it does. */
export const LONG_PIECE_BYTES = 1 << 14;

/** Bytes or candidates of a long piece that are worked on at a stretch. */
const RUN = 1 << 12;

/** A candidate in the heap is rank × this + position: the lowest rank comes first, and of equal ones the leftmost. */
const POSITIONS = 2 ** 32;

/**
 * The parts of a piece while it is merged. The part that starts at byte i of the piece: `next[i]` is where it ends and
 * the following one starts, `previous[i]` where the one before starts, `pairRank[i]` the rank of it and the following
 * one together.
 */
interface Parts {
  readonly next: Int32Array;
  readonly previous: Int32Array;
  readonly pairRank: Int32Array;
  readonly prefixHash: Int32Array;
  /** A merge takes one candidate and adds at most two, so twice the bytes is room enough. */
  readonly heap: Float64Array;
}

/**
 * Byte-pair merging: of all neighbours that are a token together, the two with the lowest rank are joined next, and of
 * equal ones the leftmost. Candidates wait in a heap and outdated ones are skipped as they surface, so a piece of n
 * bytes takes at most a constant times n log n steps, whatever it holds, and about 32 bytes of memory for each of its
 * own.
 */
export class Merger {
  readonly #ranks: RankTable;
  readonly #kept = createParts(LONG_PIECE_BYTES);
  #parts = this.#kept;
  #heapSize = 0;
  #steps = 0;

  constructor(ranks: RankTable) {
    this.#ranks = ranks;
  }

  /** Look-ups and heap moves made so far: what time is spent on, countable without a clock. */
  get steps(): number {
    return this.#steps;
  }

  /** Tokens in the piece `bytes[start..end)`, at least one byte long. Their ranks are appended to `ranks`, if given. */
  merge(bytes: Uint8Array, start: number, end: number, ranks?: number[]): number {
    const whole = this.#wholeRank(bytes, start, end);
    if (whole !== NO_RANK) {
      ranks?.push(whole);
      return 1;
    }
    const length = end - start;
    this.#parts = length <= LONG_PIECE_BYTES ? this.#kept : createParts(length);
    this.#heapSize = 0;
    this.#split(bytes, start, length, 0, length);
    this.#order(this.#heapSize >> 1, 0);
    const count = length - this.#join(bytes, start, length, Infinity);
    if (ranks !== undefined) {
      const { next } = this.#parts;
      for (let at = 0; at < length; at = next[at]!) ranks.push(this.#rank(bytes, start, at, next[at]!));
    }
    this.#parts = this.#kept;
    return count;
  }

  /**
   * As `merge`, for a piece longer than `LONG_PIECE_BYTES`, but yields between two runs of it wherever `isDue` says so. Meanwhile
   * others may merge, in runs or not.
   */
  *mergeInRuns(bytes: Uint8Array, start: number, end: number, isDue: () => boolean): Generator<void, number> {
    const length = end - start;
    const own = { parts: createParts(length), heapSize: 0 };
    const run = <Result>(work: () => Result): Result => {
      this.#parts = own.parts;
      this.#heapSize = own.heapSize;
      const result = work();
      own.heapSize = this.#heapSize;
      this.#parts = this.#kept;
      return result;
    };
    for (let at = 0; at < length; at += RUN) {
      run(() => this.#split(bytes, start, length, at, Math.min(at + RUN, length)));
      if (isDue()) yield;
    }
    for (let at = own.heapSize >> 1; at > 0; at -= RUN) {
      run(() => this.#order(at, Math.max(0, at - RUN)));
      if (isDue()) yield;
    }
    let count = length;
    while (own.heapSize > 0) {
      count -= run(() => this.#join(bytes, start, length, RUN));
      if (isDue()) yield;
    }
    return count;
  }

  #wholeRank(bytes: Uint8Array, start: number, end: number): number {
    if (end - start > this.#ranks.maxTokenBytes) return NO_RANK;
    let hash = 0;
    for (let index = start; index < end; index++) hash = hashStep(hash, bytes[index]!);
    this.#steps++;
    return this.#ranks.find(bytes, start, end, hash);
  }

  /** One part per byte from `from` to `to`, and every pair of neighbours up to there that is a token in the heap, in no order. */
  #split(bytes: Uint8Array, start: number, length: number, from: number, to: number): void {
    const { next, previous, pairRank, prefixHash, heap } = this.#parts;
    if (from === 0) prefixHash[0] = 0;
    for (let at = from; at < to; at++) {
      next[at] = at + 1;
      previous[at] = at - 1;
      prefixHash[at + 1] = hashStep(prefixHash[at]!, bytes[start + at]!);
    }
    for (let at = Math.max(0, from - 1); at + 1 < to; at++) {
      const rank = this.#rank(bytes, start, at, at + 2);
      pairRank[at] = rank;
      if (rank !== NO_RANK) heap[this.#heapSize++] = rank * POSITIONS + at;
    }
    if (to === length) pairRank[length - 1] = NO_RANK;
  }

  /** Puts the heap in order from `end` down to `from`; all after `end` is. */
  #order(end: number, from: number): void {
    const { heap } = this.#parts;
    for (let index = end - 1; index >= from; index--) this.#sink(index, heap[index]!);
  }

  /** Takes at most so many candidates from the heap; how many pairs were joined. */
  #join(bytes: Uint8Array, start: number, length: number, most: number): number {
    const { next, previous, pairRank, heap } = this.#parts;
    let joined = 0;
    for (let taken = 0; taken < most && this.#heapSize > 0; taken++) {
      const candidate = this.#takeFirst(heap);
      const rank = Math.floor(candidate / POSITIONS);
      const at = candidate - rank * POSITIONS;
      // A pair that grew or vanished since: its new rank differs, for its bytes do.
      if (pairRank[at] !== rank) continue;
      const swallowed = next[at]!;
      const follower = next[swallowed]!;
      next[at] = follower;
      pairRank[swallowed] = NO_RANK;
      joined++;
      if (follower < length) {
        previous[follower] = at;
        this.#offer(at, this.#rank(bytes, start, at, next[follower]!));
      } else {
        pairRank[at] = NO_RANK;
      }
      const before = previous[at]!;
      if (before >= 0) this.#offer(before, this.#rank(bytes, start, before, follower));
    }
    return joined;
  }

  #rank(bytes: Uint8Array, start: number, from: number, to: number): number {
    if (to - from > this.#ranks.maxTokenBytes) return NO_RANK;
    this.#steps++;
    const { prefixHash } = this.#parts;
    const hash = this.#ranks.sliceHash(prefixHash[from]!, prefixHash[to]!, to - from);
    return this.#ranks.find(bytes, start + from, start + to, hash);
  }

  #offer(at: number, rank: number): void {
    this.#parts.pairRank[at] = rank;
    if (rank !== NO_RANK) this.#rise(rank * POSITIONS + at);
  }

  #takeFirst(heap: Float64Array): number {
    const first = heap[0]!;
    this.#heapSize--;
    if (this.#heapSize > 0) this.#sink(0, heap[this.#heapSize]!);
    return first;
  }

  #rise(candidate: number): void {
    const { heap } = this.#parts;
    let index = this.#heapSize++;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (heap[parent]! <= candidate) break;
      this.#steps++;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = candidate;
  }

  #sink(from: number, candidate: number): void {
    const { heap } = this.#parts;
    const size = this.#heapSize;
    let index = from;
    for (let child = 2 * index + 1; child < size; child = 2 * index + 1) {
      if (child + 1 < size && heap[child + 1]! < heap[child]!) child++;
      if (heap[child]! >= candidate) break;
      this.#steps++;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = candidate;
  }
}

function createParts(capacity: number): Parts {
  return {
    next: new Int32Array(capacity),
    previous: new Int32Array(capacity),
    pairRank: new Int32Array(capacity),
    prefixHash: new Int32Array(capacity + 1),
    heap: new Float64Array(2 * capacity),
  };
}
