import type { NewNode } from '../core/node.js';
import type { Ledger, OpenedTurn, OpenTurn } from '../core/ports.js';
import { unwrap } from './durable-answer.js';
import type { ConversationMethods } from './durable-conversation.js';
import type { DirectoryMethods } from './durable-directory.js';
import { createKnownNodes } from './durable-known-nodes.js';

export interface DurableObjects {
  /** The object of a conversation, by the conversation's id. */
  conversation(id: string): ConversationMethods;
  /** The directory of a tenant; null: the one of all tenants, for the operator. */
  directory(tenant: string | null): DirectoryMethods;
}

/**
 * The ledger whose conversations are Durable Objects (SPEC 2.7). Every method is one round trip, so that a turn takes two; opening one
 * takes another where what the store lacks cannot be known here: a conversation's first turn here, or one that forks.
 */
export function createDurableLedger(objects: DurableObjects): Ledger {
  const known = createKnownNodes();
  const at = (conversation: { readonly id: string }): ConversationMethods => objects.conversation(conversation.id);
  return {
    async openTurn(turn) {
      const { conversation, chain } = turn;
      const opened = await open(turn, known.countOf(conversation.id, chain), at(conversation));
      known.add(conversation.id, chain.slice(-1));
      return opened;
    },
    async closeTurn(turn) {
      const closed = await unwrap(at(turn.conversation).ask('closeTurn', [turn]));
      known.add(
        turn.conversation.id,
        turn.replies.map((reply) => reply.id),
      );
      return closed;
    },
    commitSummary: (commit) => unwrap(at(commit.conversation).ask('commitSummary', [commit])),
    moveHead: (key, to, expected) => unwrap(at(key).ask('moveHead', [key, to, expected])),
    setMark: (key, mark) => unwrap(at(key).ask('setMark', [key, mark])),
    conversation: (id, tenant) => unwrap(at({ id }).ask('conversation', [id, tenant])),
    spine: (key, head, policy) => unwrap(at(key).ask('spine', [key, head, policy])),
    nodes: (key, afterSeq, limit) => unwrap(at(key).ask('nodes', [key, afterSeq, limit])),
    node: (key, id) => unwrap(at(key).ask('node', [key, id])),
    call: (key, id) => unwrap(at(key).ask('call', [key, id])),
    calls: (key, limit) => unwrap(at(key).ask('calls', [key, limit])),
    callsOfReply: (key, reply) => unwrap(at(key).ask('callsOfReply', [key, reply])),
    instruction: (key, digest) => unwrap(at(key).ask('instruction', [key, digest])),
    acquireLease: (key, chain, durationMs) => unwrap(at(key).ask('acquireLease', [key, chain, durationMs])),
    renewLease: (key, lease, durationMs) => unwrap(at(key).ask('renewLease', [key, lease, durationMs])),
    releaseLease: (key, lease) => unwrap(at(key).ask('releaseLease', [key, lease])),
    deleteBranch: (key, from, expected) => unwrap(at(key).ask('deleteBranch', [key, from, expected])),
    restoreBranch: (key, node) => unwrap(at(key).ask('restoreBranch', [key, node])),
    eraseBranch: (key, from, expected) => unwrap(at(key).eraseBranch(key, from, expected)),
    deleteConversation: (key) => unwrap(at(key).ask('deleteConversation', [key])),
    restoreConversation: (key) => unwrap(at(key).ask('restoreConversation', [key])),
    eraseConversation: (key, unusedSince) => unwrap(at(key).eraseConversation(key, unusedSince)),
    exportPage: (key, next) => unwrap(at(key).ask('exportPage', [key, next])),
    importPage: (page) => unwrap(at(page.conversation).ask('importPage', [page])),
    close: async () => undefined,
  };
}

/** Sends what the store is thought to lack; where it lacks more, nothing was written, and all of that is sent. */
async function open({ node, ...turn }: OpenTurn, known: number, at: ConversationMethods): Promise<OpenedTurn> {
  let from = known;
  let nodes: readonly NewNode[] = [];
  for (;;) {
    const sent = nodes.length;
    const missing = turn.chain.length - from - sent;
    nodes = Array.from({ length: missing }, (_, index) => node(from + index)).concat(nodes);
    const result = await unwrap(at.open({ ...turn, from, nodes }));
    if ('opened' in result) return result.opened;
    from = result.missingFrom;
  }
}
