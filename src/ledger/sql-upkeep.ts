import { SpillwayError } from '../core/errors.js';
import type { ConversationKey } from '../core/ports.js';
import type { ExportPage, ImportPage } from '../core/upkeep.js';
import { sqlExportPage } from './sql-export.js';
import { LISTED } from './sql-fragments.js';
import { importedState, sqlImportPage } from './sql-import.js';
import type { ConversationState, Place } from './sql-rows.js';
import { conversationNotFound, requireHead, type SqlStore } from './sql-store.js';

/** Deleting, restoring, erasing and moving what is stored (SPEC 2.6); each method inside a transaction. */
export class SqlUpkeep {
  readonly #store: SqlStore;

  constructor(store: SqlStore) {
    this.#store = store;
  }

  deleteBranch(key: ConversationKey, fromId: string, expected: string | null, now: number) {
    const { nodes, conversations } = this.#store;
    const state = this.#store.require(key);
    const from = this.#store.requireLiveNode(state.id, fromId, 'from');
    requireHead(state.head, expected, 'expected');
    const branch = nodes.branch(state.id, from.id);
    const deleted = nodes.markDeleted(state.id, branch, now);
    const head = headWithout(state, branch, from);
    conversations.save({ ...state, head, revision: state.revision + 1 });
    return { nodes: deleted, head };
  }

  restoreBranch(key: ConversationKey, id: string): { readonly nodes: number } {
    const { nodes, conversations } = this.#store;
    const state = this.#store.require(key);
    this.#store.requireChainNode(state.id, id, 'node');
    const before = nodes.liftSpine(state.id, id);
    const behind = nodes.lift(state.id, nodes.branch(state.id, id));
    conversations.save({ ...state, revision: state.revision + 1 });
    return { nodes: before + behind };
  }

  eraseBranch(key: ConversationKey, fromId: string, expected: string | null) {
    const state = this.#store.require(key);
    const from = this.#store.requireChainNode(state.id, fromId, 'from');
    requireHead(state.head, expected, 'expected');
    const branch = this.#store.nodes.branch(state.id, from.id);
    const records = this.#store.records.eraseAt(state.id, branch);
    const erased = this.#store.nodes.erase(state.id, branch);
    this.#eraseRowsAt(state.id, branch);
    const head = headWithout(state, branch, from);
    this.#store.conversations.save({
      ...state,
      head,
      activeSummary: erased.summaries.includes(state.activeSummary ?? '') ? null : state.activeSummary,
      nodes: state.nodes - erased.nodes,
      summaries: state.summaries - erased.summaries.length,
      calls: state.calls - records.calls,
      bytes: state.bytes - erased.bytes - records.bytes,
      revision: state.revision + 1,
    });
    return { nodes: branch.length, head };
  }

  deleteConversation(key: ConversationKey, now: number): void {
    const state = this.#store.require(key);
    this.#store.conversations.save({ ...state, deletedAt: state.deletedAt ?? now });
  }

  restoreConversation(key: ConversationKey): void {
    this.#store.conversations.save({ ...this.#store.require(key), deletedAt: null });
  }

  eraseConversation(key: ConversationKey, unusedSince: number | null): boolean {
    const state = this.#store.conversations.find(key.id);
    if (state === null || state.tenant !== key.tenant) return false;
    if (unusedSince !== null && state.usedAt >= unusedSince) return false;
    this.#store.conversations.erase(state.id);
    return true;
  }

  exportPage(key: ConversationKey, next: string | null): ExportPage {
    return sqlExportPage(this.#store.db, this.#store.require(key), next);
  }

  importPage(page: ImportPage, now: number): void {
    const { conversations } = this.#store;
    const { id, tenant } = page.conversation;
    const there = conversations.find(id);
    if (there !== null && !(there.importing && there.tenant === tenant)) {
      throw new SpillwayError('conversation_exists', 'There is a conversation with this id.', 'conversation');
    }
    if (page.first && there !== null) conversations.erase(id);
    const state = page.first ? importedState(page, now) : there;
    if (state === null) throw conversationNotFound();
    conversations.save(sqlImportPage(this.#store, state, page));
  }

  #eraseRowsAt(conversation: string, nodes: readonly string[]): void {
    for (const [table, column] of [
      ['lease', 'head'],
      ['reference', 'node'],
    ]) {
      this.#store.db.all(
        `DELETE FROM ${table} WHERE conversation = ? AND ${column} IN ${LISTED} RETURNING ${column}`,
        conversation,
        JSON.stringify(nodes),
      );
    }
  }
}

/** HEAD steps back from a branch that goes (SPEC 8.1). */
function headWithout(state: ConversationState, branch: readonly string[], from: Place): string {
  return branch.includes(state.head) ? from.predecessor : state.head;
}
