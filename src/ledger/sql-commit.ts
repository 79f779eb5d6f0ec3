import type { CommitOutcome, CommitSummary } from '../core/ports.js';
import { invalid } from './check-writes.js';
import { isSegment } from './sql-import.js';
import { deepestSummaries } from './sql-on-chain.js';
import type { ConversationState } from './sql-rows.js';
import type { SqlStore } from './sql-store.js';

/** Writes the summary node and the pointer, or nothing (SPEC 3.5), inside a transaction. */
export function sqlCommitSummary(store: SqlStore, commit: CommitSummary, now: number): CommitOutcome {
  const state = store.require(commit.conversation);
  const covered = commit.node.metadata.covers_ids;
  const [first] = covered;
  const last = covered.at(-1);
  if (first === undefined || last === undefined) throw invalid('node.metadata.covers_ids', 'is empty');
  const reason = staleBecause(store, state, commit, last);
  if (reason !== null) return { outcome: 'stale', reason };

  const seq = state.lastSeq + 1;
  const at = { seq, depth: 0, lastCommand: null, createdAt: now, deletedAt: null };
  const { bytes } = store.nodes.insert(state.id, commit.node, at);
  store.nodes.insertSummary(state.id, { id: commit.node.id, seq, first, last, count: covered.length });
  store.conversations.save({
    ...state,
    activeSummary: commit.node.id,
    nodes: state.nodes + 1,
    summaries: state.summaries + 1,
    bytes: state.bytes + bytes,
    lastSeq: seq,
  });
  return { outcome: 'committed' };
}

/** Why a summary must not be committed any more, or null (SPEC 5.8). */
function staleBecause(
  store: SqlStore,
  state: ConversationState,
  { chain, lease, ...commit }: CommitSummary,
  last: string,
): string | null {
  const covered = commit.node.metadata.covers_ids;
  if (lease !== null && !store.leases.isHeld(state.id, lease)) return 'the lease was lost';
  if (state.deletedAt !== null) return 'the conversation was deleted';
  if (covered.some((id, index) => id !== chain[index])) return 'the coverage is not the start of the spine';
  const places = store.nodes.places(state.id, [...covered, ...chain.slice(-1)]);
  const isGone = (id: string): boolean => places.get(id)?.deletedAt !== null;
  if (!isSegment(places, covered) || covered.some(isGone)) return 'a covered node is gone';
  if (isGone(chain.at(-1) ?? '')) return 'the head is gone';
  const active = store.active(state, chain, commit.policy, deepestSummaries(store.db, state.id, chain));
  if ((active?.id ?? null) !== commit.expectedActive) return 'another summary became active';
  if (commit.headMustDescend && !store.nodes.descends(state.id, state.head, last, covered.length)) {
    return 'HEAD left the segment';
  }
  return store.nodes.place(state.id, commit.node.id) === null ? null : 'the summary was written before';
}
