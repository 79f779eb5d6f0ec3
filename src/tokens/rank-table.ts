import { unpackRanks } from './packed-ranks.js';

/* Indexes below are proven in range by construction, in loops too hot for a check: hence the `!`. */

/** What a look-up answers when the bytes are no token. Larger than every rank, so it also sorts last. */
export const NO_RANK = 0x7fffffff;

const HASH_BASE = 0x01000193;
const SLOT_MIX = 0x9e3779b1;

/** One step of the hash that `RankTable.find` expects: hash('') is 0, hash(s + b) is hashStep(hash(s), b). */
export function hashStep(hash: number, byte: number): number {
  return (Math.imul(hash, HASH_BASE) + byte + 1) | 0;
}

/**
 * Bytes → rank: an open hash table in typed arrays. The hash is polynomial, so that of any slice follows from two
 * prefix hashes. A look-up costs a bounded number of steps whatever the text: the table is fixed and at most half full,
 * and a hash that collides is settled by comparing bytes.
 */
export class RankTable {
  /** Bytes of the longest token. */
  readonly maxTokenBytes: number;
  readonly #lengths: Uint8Array;
  readonly #bytes: Uint8Array;
  readonly #offsets: Uint32Array;
  /** Pairs of hash and rank + 1; a rank of 0 marks a free slot. */
  readonly #slots: Int32Array;
  readonly #shift: number;
  readonly #powers: Int32Array;

  constructor(packed: Uint8Array) {
    const { lengths, bytes } = unpackRanks(packed);
    const slotBits = Math.ceil(Math.log2(lengths.length * 2));
    this.maxTokenBytes = lengths.reduce((longest, length) => Math.max(longest, length), 0);
    this.#lengths = lengths;
    this.#bytes = bytes;
    this.#offsets = new Uint32Array(lengths.length);
    this.#slots = new Int32Array(2 << slotBits);
    this.#shift = 32 - slotBits;
    this.#powers = new Int32Array(this.maxTokenBytes + 1).fill(1);
    for (let power = 1; power <= this.maxTokenBytes; power++) {
      this.#powers[power] = Math.imul(this.#powers[power - 1]!, HASH_BASE);
    }
    this.#fill();
  }

  /** The hash of a slice of `length` ≤ `maxTokenBytes` bytes, from those of the prefixes up to its two ends. */
  sliceHash(prefixAtStart: number, prefixAtEnd: number, length: number): number {
    return (prefixAtEnd - Math.imul(prefixAtStart, this.#powers[length]!)) | 0;
  }

  /** The rank of `bytes` from `start` to `end`, whose hash is `hash`, or NO_RANK. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const slots = this.#slots;
    for (let slot = this.#slotOf(hash); ; slot = (slot + 2) & (slots.length - 1)) {
      const rank = slots[slot + 1]! - 1;
      if (rank < 0) return NO_RANK;
      if (slots[slot] === hash && this.#equals(rank, bytes, start, end)) return rank;
    }
  }

  #equals(rank: number, bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#lengths[rank] !== end - start) return false;
    const shift = this.#offsets[rank]! - start;
    for (let index = start; index < end; index++) {
      if (this.#bytes[index + shift] !== bytes[index]) return false;
    }
    return true;
  }

  #slotOf(hash: number): number {
    return (Math.imul(hash ^ (hash >>> 15), SLOT_MIX) >>> this.#shift) << 1;
  }

  #fill(): void {
    const slots = this.#slots;
    let end = 0;
    for (let rank = 0; rank < this.#lengths.length; rank++) {
      const start = end;
      this.#offsets[rank] = start;
      end += this.#lengths[rank]!;
      if (end === start) continue;
      let hash = 0;
      for (let index = start; index < end; index++) hash = hashStep(hash, this.#bytes[index]!);
      let slot = this.#slotOf(hash);
      while (slots[slot + 1] !== 0) slot = (slot + 2) & (slots.length - 1);
      slots[slot] = hash;
      slots[slot + 1] = rank + 1;
    }
  }
}
