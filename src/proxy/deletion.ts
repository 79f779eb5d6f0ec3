import { SpillwayError } from '../core/errors.js';
import type { ConversationKey, Directory, Ledger } from '../core/ports.js';
import type { RunningTurns } from './running-turns.js';

export interface BranchRemoval {
  /** The node that goes, and all behind it. */
  readonly from: string;
  /** Nothing is kept; otherwise it can be restored. */
  readonly erase: boolean;
  /** Where HEAD must be, or null. */
  readonly expectedHead: string | null;
}

/** Deletes what is stored, because the operator said so (SPEC 2.6): what can be restored first, for good where asked. */
export interface Deletion {
  /**
   * Deletes a conversation, or erases it with all that was derived from it. Rejects with `conversation_not_found`,
   * `turn_in_progress` if a turn of it runs here.
   */
  removeConversation(conversation: ConversationKey, erase: boolean): Promise<void>;
  /**
   * Deletes or erases a branch. Rejects with `node_not_found`, `head_moved`, `turn_in_progress` if a turn runs here on the
   * branch.
   */
  removeBranch(
    conversation: ConversationKey,
    removal: BranchRemoval,
  ): Promise<{ readonly nodes: number; readonly head: string }>;
  /** Erases all that a tenant has: every conversation, in use or not, and what was learned for it. */
  eraseTenant(tenant: string): Promise<{ readonly conversations: number }>;
}

export interface DeletionDeps {
  readonly ledger: Pick<Ledger, 'deleteConversation' | 'eraseConversation' | 'deleteBranch' | 'eraseBranch' | 'spine'>;
  readonly directory: Pick<Directory, 'oldest'>;
  readonly running: Pick<RunningTurns, 'endsIn'>;
  /** Drops what is remembered of a conversation beside the ledger. */
  forget(conversation: ConversationKey): void;
  /** Drops every window that was learned for a tenant. */
  forgetWindows(tenant: string): Promise<void>;
}

/** Conversations asked for at once. */
const BATCH = 50;

export function createDeletion(deps: DeletionDeps): Deletion {
  const { ledger, directory, running } = deps;

  /** Whether a turn runs whose request ends at a node or behind it. */
  const isBusy = async (conversation: ConversationKey, from: string): Promise<boolean> => {
    for (const end of running.endsIn(conversation)) {
      const spine = await ledger.spine(conversation, end, 'spine').catch(nullIfGone);
      if (spine?.nodes.some((node) => node.id === from)) return true;
    }
    return false;
  };

  return {
    async removeConversation(conversation, erase) {
      if (running.endsIn(conversation).length > 0) throw turnInProgress();
      if (!erase) return ledger.deleteConversation(conversation);
      if (!(await ledger.eraseConversation(conversation, null))) {
        throw new SpillwayError('conversation_not_found', 'There is no such conversation.', 'id');
      }
      return deps.forget(conversation);
    },
    async removeBranch(conversation, { from, erase, expectedHead }) {
      if (await isBusy(conversation, from)) throw turnInProgress();
      if (!erase) return ledger.deleteBranch(conversation, from, expectedHead);
      const removed = await ledger.eraseBranch(conversation, from, expectedHead);
      deps.forget(conversation);
      return removed;
    },
    async eraseTenant(tenant) {
      let conversations = 0;
      let before = -1;
      // A list that lags may name what is gone already: it is read again only after progress.
      while (before < conversations) {
        before = conversations;
        for (const entry of await directory.oldest(tenant, BATCH)) {
          if (!(await ledger.eraseConversation(entry, null))) continue;
          deps.forget(entry);
          conversations += 1;
        }
      }
      await deps.forgetWindows(tenant);
      return { conversations };
    },
  };
}

function nullIfGone(error: unknown): null {
  if (error instanceof SpillwayError && error.code === 'node_not_found') return null;
  throw error;
}

function turnInProgress(): SpillwayError {
  return new SpillwayError('turn_in_progress', 'A turn is still running there; wait for its end and ask again.', 'id');
}
