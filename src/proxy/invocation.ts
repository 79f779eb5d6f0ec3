import type { Hash, Segment } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
import { NO_REDUCTION } from '../core/request/reduction.js';
import type { Reduction } from '../core/request/reduction.js';
import type { ResultCandidate } from '../core/request/tool-results.js';

/** Most branches whose reductions one invocation keeps. */
const MOST_REDUCTIONS = 8;

/** Most results that one invocation remembers; past it the oldest are forgotten, and made anew if they are needed. */
const MOST_RESULTS = 4_096;

/** What a request substituted, and the end of its spine. */
interface KeptReduction {
  readonly head: string;
  readonly reduction: Reduction;
}

/** All that an invocation remembers, as plain data. Each list begins with what was used longest ago. */
export interface InvocationMemory {
  readonly reductions: readonly KeptReduction[];
  /** Shorter texts by the digest of what they stand for; null where none could be made. */
  readonly results: readonly (readonly [digest: string, text: string | null])[];
  /** Runs of which no checkpoint could be made. */
  readonly givenUp: readonly string[];
}

/** What one tool loop under one user message has had made for it (SPEC 7.6). Never a node. */
export interface Invocation {
  readonly isEmpty: boolean;
  /** What the latest request on this spine substituted, or what comes nearest to it; the following ones begin with it. */
  reductionOn(spine: readonly SpineNode[]): Reduction;
  keep(reduction: Reduction, spine: readonly SpineNode[]): void;
  /** Forgets what was kept for this spine; other branches keep theirs. */
  drop(spine: readonly SpineNode[]): void;
  known(candidate: ResultCandidate): string | null | undefined;
  remember(candidate: ResultCandidate, text: string | null): void;
  isGivenUp(run: Segment): boolean;
  giveUp(run: Segment): void;
  /** Runs `work` when no other request of this invocation does, so that nothing is paid for twice. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  memory(): InvocationMemory;
  /** Takes in what another process remembers, which wins: it may have been sent by now. */
  take(memory: InvocationMemory): void;
}

export function createInvocation(hash: Hash): Invocation {
  const results = new Map<string, string | null>();
  const givenUp = new Set<string>();
  let kept: readonly KeptReduction[] = [];
  let last: Promise<unknown> = Promise.resolve();
  // By content, so that all branches share them.
  const digestOf = ({ call, text }: ResultCandidate): string => hash(JSON.stringify([call.name, call.arguments, text]));
  // The last id names the whole prefix (SPEC 1.4), so these two name the source.
  const nameOf = ({ last: end, count }: Segment): string => `${end} ${count}`;
  const setResult = (digest: string, text: string | null): void => {
    results.set(digest, text);
    const oldest = results.keys().next();
    if (results.size > MOST_RESULTS && oldest.done !== true) results.delete(oldest.value);
  };
  const setReduction = (next: KeptReduction): void => {
    kept = [...kept.filter(({ head }) => head !== next.head), next];
  };
  return {
    get isEmpty() {
      return kept.length === 0 && results.size === 0 && givenUp.size === 0;
    },
    reductionOn(spine) {
      const nearest = nearestOn(spine, kept);
      if (nearest === null) return NO_REDUCTION;
      setReduction(nearest);
      return nearest.reduction;
    },
    keep(reduction, spine) {
      const head = spine.at(-1)?.id;
      if (head === undefined) return;
      setReduction({ head, reduction });
      if (kept.length <= MOST_REDUCTIONS) return;
      // An older one of this very spine is the one that is needed least.
      const ids = idsOf(spine);
      const surplus = kept.find((one) => one.head !== head && ids.has(one.head)) ?? kept[0];
      kept = kept.filter((one) => one !== surplus);
    },
    drop(spine) {
      const ids = idsOf(spine);
      kept = kept.filter(({ head }) => !ids.has(head));
      if (kept.length > 0) return;
      results.clear();
      givenUp.clear();
    },
    known: (candidate) => results.get(digestOf(candidate)),
    remember: (candidate, text) => setResult(digestOf(candidate), text),
    isGivenUp: (run) => givenUp.has(nameOf(run)),
    giveUp: (run) => void givenUp.add(nameOf(run)),
    alone(work) {
      const run = last.then(work, work);
      last = run.catch(() => undefined);
      return run;
    },
    memory: () => ({ reductions: kept, results: [...results], givenUp: [...givenUp] }),
    take(memory) {
      for (const reduction of memory.reductions) setReduction(reduction);
      kept = kept.slice(-MOST_REDUCTIONS);
      for (const [digest, text] of memory.results) setResult(digest, text);
      for (const run of memory.givenUp) givenUp.add(run);
    },
  };
}

/**
 * Of what was kept, what was sent last on this spine: the one whose head lies deepest. Where none does, this is a new branch, and the
 * one with a part furthest down the spine shares most with it. Of equals the latest.
 */
function nearestOn(spine: readonly SpineNode[], kept: readonly KeptReduction[]): KeptReduction | null {
  const places = new Map(spine.map((node, index) => [node.id, index]));
  const place = (id: string): number => places.get(id) ?? -1;
  const deepest = (depthOf: (one: KeptReduction) => number): KeptReduction | null => {
    let best: { readonly one: KeptReduction | null; readonly depth: number } = { one: null, depth: 0 };
    for (const one of kept) {
      const depth = depthOf(one);
      if (depth >= best.depth) best = { one, depth };
    }
    return best.one;
  };
  return (
    deepest(({ head }) => place(head)) ??
    deepest(({ reduction: { results, checkpoints } }) =>
      Math.max(
        -1,
        ...results.map(({ node }) => place(node)),
        ...checkpoints.map((checkpoint) => place(checkpoint.last)),
      ),
    )
  );
}

function idsOf(spine: readonly SpineNode[]): ReadonlySet<string> {
  return new Set(spine.map((node) => node.id));
}
