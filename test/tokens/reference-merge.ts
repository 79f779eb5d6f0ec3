const NONE = 0x7fffffff;

/**
 * Byte-pair merging straight from its definition, without heap or hash table: find the lowest rank of all neighbours,
 * sweep from the left joining every pair that has it, and begin again, at once if a join makes a pair of no higher
 * rank. Quick for texts in which few different pairs occur, however long they are.
 */
export function createReference(ranks: ReadonlyMap<string, number>): (text: string) => number {
  const tokens = new Map([...ranks].map(([token, rank]) => [rank, token]));
  const known = new Map<number, number>();
  const rankOf = (left: number, right: number): number => {
    const key = left * 2 ** 18 + right;
    const rank = known.get(key) ?? ranks.get(`${tokens.get(left)}${tokens.get(right)}`) ?? NONE;
    known.set(key, rank);
    return rank;
  };
  return (text) => {
    const parts = Int32Array.from(Buffer.from(text), (byte) => ranks.get(String.fromCharCode(byte)) ?? NONE);
    return mergedCount(parts, rankOf);
  };
}

/** How many of `parts`, ranks of single bytes, remain when all is joined that can be. */
function mergedCount(parts: Int32Array, rankOf: (left: number, right: number) => number): number {
  let count = parts.length;
  /** Of the part at an index and the next one together. */
  const pairRank = (index: number): number =>
    index + 1 < count ? rankOf(at(parts, index), at(parts, index + 1)) : NONE;
  const pairs = parts.map((_, index) => pairRank(index));
  for (;;) {
    const lowest = lowestOf(pairs, count);
    if (lowest === NONE) return count;
    let written = 0;
    let isInterrupted = false;
    for (let read = 0; read < count; read++, written++) {
      const pair = at(pairs, read);
      if (pair !== lowest || isInterrupted) {
        parts[written] = at(parts, read);
        pairs[written] = pair;
        continue;
      }
      read++;
      const after = read + 1 < count ? rankOf(lowest, at(parts, read + 1)) : NONE;
      const before = written > 0 ? rankOf(at(parts, written - 1), lowest) : NONE;
      parts[written] = lowest;
      pairs[written] = after;
      if (written > 0) pairs[written - 1] = before;
      isInterrupted = after <= lowest || before <= lowest;
    }
    count = written;
  }
}

function lowestOf(ranks: Int32Array, count: number): number {
  let lowest = NONE;
  for (let index = 0; index < count; index++) {
    const rank = at(ranks, index);
    if (rank < lowest) lowest = rank;
  }
  return lowest;
}

function at(values: Int32Array, index: number): number {
  return values[index] ?? NONE;
}
