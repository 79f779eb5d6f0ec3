import { SpillwayError } from '../core/errors.js';
import type { ConversationKey, Summary, SummaryPolicy } from '../core/ports.js';
import { activeSummary } from '../core/summary.js';
import { SqlConversations } from './sql-conversations.js';
import type { SqlDatabase } from './sql-database.js';
import { SqlLeases } from './sql-leases.js';
import { SqlNodes } from './sql-nodes.js';
import { SqlRecords } from './sql-records.js';
import { isSummaryPlace, type ConversationState, type Place } from './sql-rows.js';

/** The rows of a ledger on one database, and what its methods ask of them first. */
export class SqlStore {
  readonly db: SqlDatabase;
  readonly conversations: SqlConversations;
  readonly nodes: SqlNodes;
  readonly records: SqlRecords;
  readonly leases: SqlLeases;

  constructor(db: SqlDatabase) {
    this.db = db;
    this.conversations = new SqlConversations(db);
    this.nodes = new SqlNodes(db);
    this.records = new SqlRecords(db);
    this.leases = new SqlLeases(db);
  }

  /**
   * Null if nobody has it; another tenant's is as good as absent, and nothing is written into it (SPEC 1.1). Throws
   * `store_unavailable` while it is being imported.
   */
  find(key: ConversationKey): ConversationState | null {
    const state = this.conversations.find(key.id);
    if (state === null) return null;
    if (state.tenant !== key.tenant) throw conversationNotFound();
    if (state.importing) throw new SpillwayError('store_unavailable', 'The conversation is still being imported.');
    return state;
  }

  require(key: ConversationKey): ConversationState {
    const state = this.find(key);
    if (state === null) throw conversationNotFound();
    return state;
  }

  /** Throws `node_not_found` for what is not there, and for a summary. */
  requireChainNode(conversation: string, id: string, field: string): Place {
    return chainPlace(this.nodes.place(conversation, id), field);
  }

  /** Throws `node_not_found` for a deleted node, too. */
  requireLiveNode(conversation: string, id: string, field: string): Place {
    const place = this.requireChainNode(conversation, id, field);
    if (place.deletedAt !== null) throw new SpillwayError('node_not_found', 'The node was deleted.', field);
    return place;
  }

  /** `deepest`: the summaries that reach deepest on the chain, among which the longest must be. */
  active(
    state: ConversationState,
    chain: readonly string[],
    policy: SummaryPolicy,
    deepest: readonly Summary[],
  ): Summary | null {
    switch (policy) {
      case 'session': {
        const named = state.activeSummary === null ? null : this.nodes.summary(state.id, state.activeSummary);
        return named === null ? null : activeSummary(chain, [named], policy, named.id);
      }
      case 'spine':
        return activeSummary(chain, deepest, policy, null);
    }
  }
}

/** Throws `node_not_found` for what is not there, and for a summary. */
export function chainPlace(place: Place | null | undefined, field: string): Place {
  if (place == null || isSummaryPlace(place)) {
    throw new SpillwayError('node_not_found', 'There is no such node in the conversation.', field);
  }
  return place;
}

/** Throws `head_moved` if HEAD is expected elsewhere; null expects nothing. */
export function requireHead(head: string, expected: string | null, field: string): void {
  if (expected !== null && expected !== head) {
    throw new SpillwayError('head_moved', 'HEAD is not where it was expected.', field);
  }
}

/** The one way HEAD moves here, but for a branch that goes; a summary is never HEAD (SPEC 8.1). */
export function withHead(state: ConversationState, to: Place): ConversationState {
  return { ...state, head: chainPlace(to, 'head').id };
}

export function conversationNotFound(): SpillwayError {
  return new SpillwayError('conversation_not_found', 'There is no such conversation.', 'conversation');
}
