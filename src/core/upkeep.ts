import type { Node } from './node.js';
import type { Call, Conversation, ConversationKey, Instruction, Mark } from './ports.js';

/** Everything that a conversation holds, one thing a record: what export writes and import reads. */
export type ConversationRecord =
  | { readonly type: 'instruction'; readonly instruction: Instruction }
  /** In the order of `seq`, each after its predecessor. */
  | { readonly type: 'node'; readonly node: Node }
  /** In the order closed, after every node. */
  | { readonly type: 'call'; readonly call: Call }
  | { readonly type: 'mark'; readonly mark: Mark };

export interface ExportPage {
  /** As it was when the first page was read; what is written meanwhile is left out. */
  readonly conversation: Conversation;
  readonly records: readonly ConversationRecord[];
  /** Where the next page begins; null behind the last one. Opaque. */
  readonly next: string | null;
}

export interface ImportPage {
  readonly conversation: Conversation;
  readonly records: readonly ConversationRecord[];
  /** Begins anew: what an import that broke off has left of it is dropped. */
  readonly first: boolean;
  readonly last: boolean;
}

/** What happens to stored conversations beside their turns: deletion, and moving between stores. Each method is one transaction. */
export interface LedgerUpkeep {
  /**
   * A tombstone for a node and all behind it (SPEC 2.6). If HEAD is among them it moves to the node's predecessor (SPEC 8.1). Rejects
   * with `node_not_found` for a node that is unknown, a summary, or deleted, `head_moved` if `expected` is given and is not HEAD.
   */
  deleteBranch(
    conversation: ConversationKey,
    from: string,
    expected: string | null,
  ): Promise<{ readonly nodes: number; readonly head: string }>;
  /** Lifts the tombstones of a node, of all behind it and of all before it. HEAD stays. Rejects with `node_not_found`. */
  restoreBranch(conversation: ConversationKey, node: string): Promise<{ readonly nodes: number }>;
  /**
   * Like `deleteBranch`, and nothing of it is kept: neither the nodes, nor summaries that cover one of them, marks on them, calls that
   * read them to their end, nor the instructions and reductions that only those calls name. A deleted branch may be erased too.
   */
  eraseBranch(
    conversation: ConversationKey,
    from: string,
    expected: string | null,
  ): Promise<{ readonly nodes: number; readonly head: string }>;
  /** A tombstone for the whole conversation. Rejects with `conversation_not_found`. */
  deleteConversation(conversation: ConversationKey): Promise<void>;
  /** Lifts it. Rejects with `conversation_not_found`. */
  restoreConversation(conversation: ConversationKey): Promise<void>;
  /** Nothing is kept. With `unusedSince`, only if it was last used before that time. False if nothing was erased. */
  eraseConversation(conversation: ConversationKey, unusedSince: number | null): Promise<boolean>;
  /** A part of a conversation, about a megabyte, from `next` of the page before it; null begins. Rejects with `conversation_not_found`. */
  exportPage(conversation: ConversationKey, next: string | null): Promise<ExportPage>;
  /**
   * Takes over what `exportPage` gave, with its times, order, tombstones and HEAD. Before its last page the conversation is deleted
   * and takes no turn. Rejects with `conversation_exists` if one with this id is here that no import began.
   */
  importPage(page: ImportPage): Promise<void>;
}
