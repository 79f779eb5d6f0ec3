/** The ids of this many nodes are remembered; those told of longest ago go first. */
const MOST_NODES = 10_000;

/** Which nodes a distant store is known to have: the ends of chains and replies that were written from here. */
export interface KnownNodes {
  /** How many of a chain, from its start, are there for sure; its length if that cannot be said. */
  countOf(conversation: string, chain: readonly string[]): number;
  add(conversation: string, nodes: readonly string[]): void;
}

/** An id names a whole prefix (SPEC 1.4): of a chain it is enough to remember the end. */
export function createKnownNodes(): KnownNodes {
  const known = new Set<string>();
  const keyOf = (conversation: string, node: string): string => `${conversation} ${node}`;
  return {
    countOf(conversation, chain) {
      const last = chain.findLastIndex((id) => known.has(keyOf(conversation, id)));
      return last < 0 ? chain.length : last + 1;
    },
    add(conversation, nodes) {
      for (const node of nodes) {
        known.delete(keyOf(conversation, node));
        known.add(keyOf(conversation, node));
      }
      for (const oldest of known) {
        if (known.size <= MOST_NODES) break;
        known.delete(oldest);
      }
    },
  };
}
