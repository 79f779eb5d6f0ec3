import { SpillwayError } from '../core/errors.js';
import { isSummary, ROOT, type NewNode, type Node } from '../core/node.js';
import type { Call, Conversation, ConversationEntry, Instruction, Mark, NewConversation } from '../core/ports.js';
import { utf8Length } from './utf8-length.js';

/** One conversation in memory. The order of the maps is the order of writing. */
export interface Book {
  conversation: Conversation;
  readonly nodes: Map<string, Node>;
  readonly calls: Map<string, Call>;
  readonly marks: Mark[];
  readonly instructions: Map<string, Instruction>;
  /** By the head that each was given for. */
  readonly leases: Map<string, { readonly fence: number; readonly expiresAt: number }>;
  /** The `seq` given last; none is given twice, whatever was erased. */
  lastSeq: number;
  lastFence: number;
  /** Grows whenever stored nodes are deleted, restored or erased. */
  revision: number;
  /** True from the first page of an import to its last. */
  importing: boolean;
}

export function newBook(conversation: NewConversation, now: number): Book {
  return {
    conversation: {
      ...conversation,
      head: ROOT,
      activeSummary: null,
      createdAt: now,
      usedAt: now,
      deletedAt: null,
    },
    nodes: new Map(),
    calls: new Map(),
    marks: [],
    instructions: new Map(),
    leases: new Map(),
    lastSeq: 0,
    lastFence: 0,
    revision: 0,
    importing: false,
  };
}

export function entryOf({ conversation, nodes, calls, instructions }: Book): ConversationEntry {
  const contents = [...nodes.values(), ...instructions.values()];
  return {
    ...conversation,
    nodes: nodes.size,
    calls: calls.size,
    summaries: [...nodes.values()].filter(isSummary).length,
    bytes: contents.reduce((sum, { content }) => sum + utf8Length(content), 0),
  };
}

export function append(book: Book, node: NewNode, createdAt: number, deletedAt: number | null): void {
  book.lastSeq += 1;
  book.nodes.set(node.id, {
    ...node,
    conversation: book.conversation.id,
    seq: book.lastSeq,
    createdAt,
    deletedAt,
  });
}

/** Sets or lifts the tombstones of these nodes; how many that changed. */
export function setDeleted(book: Book, nodes: readonly Node[], deletedAt: number | null): number {
  const changed = nodes.filter((node) => (node.deletedAt === null) !== (deletedAt === null));
  for (const node of changed) book.nodes.set(node.id, { ...node, deletedAt });
  if (changed.length > 0) book.revision += 1;
  return changed.length;
}

/** Throws `node_not_found` for an unknown node or a summary. */
export function requireChainNode(book: Book, id: string, field: string): Node {
  const node = book.nodes.get(id);
  if (node === undefined || isSummary(node)) {
    throw new SpillwayError('node_not_found', 'There is no such node in the conversation.', field);
  }
  return node;
}

/** Throws `node_not_found` for a deleted node, too. */
export function requireLiveNode(book: Book, id: string, field: string): Node {
  const node = requireChainNode(book, id, field);
  if (node.deletedAt !== null) throw new SpillwayError('node_not_found', 'The node was deleted.', field);
  return node;
}

export function nodesNamed(book: Book, ids: readonly string[]): readonly Node[] {
  return ids.flatMap((id) => book.nodes.get(id) ?? []);
}

/** The spine of a node, first node first. */
export function walk(book: Book, head: string): readonly Node[] {
  const nodes: Node[] = [];
  for (let node = book.nodes.get(head); node !== undefined; node = book.nodes.get(node.predecessor)) nodes.push(node);
  return nodes.toReversed();
}

/** A node and every node behind it, in the order written. */
export function branchOf(book: Book, from: string): readonly Node[] {
  const ids = new Set([from]);
  for (const node of book.nodes.values()) if (ids.has(node.predecessor)) ids.add(node.id);
  return nodesNamed(book, [...ids]);
}

/** Whether these are the stored nodes of one spine, from its first node on. */
export function isSpine(book: Book, ids: readonly string[]): boolean {
  return ids.every((id, index) => {
    const node = book.nodes.get(id);
    return node !== undefined && !isSummary(node) && node.predecessor === (ids[index - 1] ?? ROOT);
  });
}

/** One of a kind at a node: the newer one holds. */
export function saveMark(book: Book, mark: Mark): void {
  const older = book.marks.findIndex(({ kind, head }) => kind === mark.kind && head === mark.head);
  if (older >= 0) book.marks.splice(older, 1);
  book.marks.push(mark);
}
