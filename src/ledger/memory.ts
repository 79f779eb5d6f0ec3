import { SpillwayError } from '../core/errors.js';
import { isSummary, ROOT, type Node } from '../core/node.js';
import type {
  Call,
  Clock,
  CloseTurn,
  CommitOutcome,
  CommitSummary,
  Conversation,
  ConversationEntry,
  ConversationKey,
  Directory,
  Instruction,
  Lease,
  Ledger,
  ListPosition,
  Mark,
  OpenedTurn,
  OpenTurn,
  Reference,
  Spine,
  SummaryPolicy,
  TenantUsage,
} from '../core/ports.js';
import type { ExportPage, ImportPage } from '../core/upkeep.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';
import {
  checkChainNode,
  checkCloseTurn,
  checkCommitSummary,
  checkImportPage,
  checkLease,
  checkLimit,
  checkMark,
  checkOpenTurn,
  checkReferences,
  checkWindow,
  endOfReplies,
  headOf,
  invalid,
} from './check-writes.js';
import {
  append,
  branchOf,
  entryOf,
  isSpine,
  newBook,
  nodesNamed,
  requireChainNode,
  requireLiveNode,
  saveMark,
  setDeleted,
  walk,
  type Book,
} from './memory-book.js';
import { staleBecause } from './memory-commit.js';
import { latestUsed, longestUnused, usageByTenant } from './memory-directory.js';
import { MemoryLearnedWindows } from './memory-learned-windows.js';
import { acquireLease, releaseLease, renewLease } from './memory-leases.js';
import { eraseBranchOf, exportPageOfBook, importedBook, withImported } from './memory-upkeep.js';
import { activeOn, openedTurn } from './memory-view.js';

/**
 * The ledger in memory: nothing outlives the process. The reference that other drivers are compared with, so it is
 * written to be obviously right, and reads whole histories. Each method checks everything before it changes anything.
 */
export class MemoryLedger implements Ledger, Directory {
  readonly #books = new Map<string, Book>();
  readonly #windows = new MemoryLearnedWindows();
  /** By tenant and id. */
  readonly #references = new Map<string, Reference>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async openTurn(turn: OpenTurn): Promise<OpenedTurn> {
    checkOpenTurn(turn);
    const { chain } = turn;
    const now = this.#clock();
    const book = this.#find(turn.conversation) ?? newBook(turn.conversation, now);
    const before = book.conversation;
    if (turn.expectedHead !== null && turn.expectedHead !== before.head) throw headMoved('expectedHead');
    const isUnknown = (id: string): boolean => !book.nodes.has(id);
    const known = chain.some(isUnknown) ? chain.findIndex(isUnknown) : chain.length;
    if (!isSpine(book, chain.slice(0, known))) throw invalid('chain', 'is not one spine');
    const fresh = chain.slice(known);
    if (!fresh.every(isUnknown) || new Set(fresh).size < fresh.length) throw invalid('chain', 'is not one spine');
    const added = fresh.map((id, index) => {
      const node = turn.node(known + index);
      checkChainNode(node, id, chain[known + index - 1] ?? ROOT, 'chain');
      return node;
    });

    this.#books.set(turn.conversation.id, book);
    const lifted = setDeleted(book, nodesNamed(book, chain), null);
    for (const node of added) append(book, node, now, null);
    book.conversation = { ...before, deletedAt: null };
    if (turn.advanceHead) this.#setHead(book, chain.at(-1) ?? ROOT);
    const isChanged =
      added.length > 0 || lifted > 0 || before.deletedAt !== null || before.head !== book.conversation.head;
    if (isChanged) this.#use(book);
    for (const instruction of turn.instructions) {
      if (!book.instructions.has(instruction.digest)) book.instructions.set(instruction.digest, instruction);
    }

    return openedTurn(book, turn, known);
  }

  async closeTurn(turn: CloseTurn): Promise<{ readonly head: string }> {
    checkCloseTurn(turn);
    const { call, replies, reduction } = turn;
    const book = this.#require(turn.conversation);
    const head = headOf(turn);
    const deletedAt = head === null ? null : requireChainNode(book, head, 'head').deletedAt;
    if (call !== null && book.calls.has(call.id)) return { head: book.conversation.head };
    for (const reply of replies) {
      const there = book.nodes.get(reply.id);
      if (there !== undefined && (isSummary(there) || there.predecessor !== reply.predecessor)) {
        throw invalid('replies', 'is a node of another place');
      }
    }
    const willBeThere = new Set(replies.map((reply) => reply.id));
    for (const mark of turn.marks) if (!willBeThere.has(mark.head)) requireChainNode(book, mark.head, 'mark.head');

    if (deletedAt === null) setDeleted(book, nodesNamed(book, [...willBeThere]), null);
    for (const reply of replies) if (!book.nodes.has(reply.id)) append(book, reply, this.#clock(), deletedAt);
    const isComplete = call === null || call.outcome === 'complete';
    if (turn.advanceHead && isComplete && replies[0]?.predecessor === book.conversation.head) {
      this.#setHead(book, endOfReplies(replies));
    }
    if (call !== null) {
      book.calls.set(call.id, call);
      if (reduction !== null && !book.instructions.has(reduction.digest)) {
        book.instructions.set(reduction.digest, reduction);
      }
    }
    for (const node of nodesNamed(book, [...turn.counts.keys()])) {
      const hasOne = node.tokens !== null && node.tokenizer === turn.tokenizer;
      if (hasOne || turn.tokenizer === null) continue;
      book.nodes.set(node.id, { ...node, tokens: turn.counts.get(node.id) ?? null, tokenizer: turn.tokenizer });
    }
    for (const mark of turn.marks) saveMark(book, mark);
    this.#use(book);
    return { head: book.conversation.head };
  }

  async commitSummary(commit: CommitSummary): Promise<CommitOutcome> {
    checkCommitSummary(commit);
    const book = this.#require(commit.conversation);
    const reason = staleBecause(book, commit);
    if (reason !== null) return { outcome: 'stale', reason };
    append(book, commit.node, this.#clock(), null);
    book.conversation = { ...book.conversation, activeSummary: commit.node.id };
    return { outcome: 'committed' };
  }

  async moveHead(conversation: ConversationKey, to: string, expected: string | null): Promise<void> {
    const book = this.#require(conversation);
    requireLiveNode(book, to, 'to');
    requireHead(book, expected);
    this.#setHead(book, to);
  }

  async setMark(conversation: ConversationKey, mark: Mark): Promise<void> {
    checkMark(mark);
    const book = this.#require(conversation);
    requireChainNode(book, mark.head, 'mark.head');
    saveMark(book, mark);
  }

  async conversation(id: string, tenant: string | null): Promise<Conversation | null> {
    const book = this.#books.get(id);
    return book === undefined || (tenant !== null && book.conversation.tenant !== tenant) ? null : book.conversation;
  }

  async spine(conversation: ConversationKey, head: string | null, policy: SummaryPolicy): Promise<Spine> {
    const book = this.#require(conversation);
    const from = head ?? book.conversation.head;
    if (from !== ROOT) requireLiveNode(book, from, 'head');
    const nodes = walk(book, from);
    const active = activeOn(
      book,
      nodes.map((node) => node.id),
      policy,
    );
    return { conversation: book.conversation, nodes, active };
  }

  async nodes(conversation: ConversationKey, afterSeq: number, limit: number): Promise<readonly Node[]> {
    checkLimit(limit);
    const nodes = [...(this.#read(conversation)?.nodes.values() ?? [])];
    return nodes.filter((node) => node.seq > afterSeq).slice(0, limit);
  }

  async node(conversation: ConversationKey, id: string): Promise<Node | null> {
    return this.#read(conversation)?.nodes.get(id) ?? null;
  }

  async call(conversation: ConversationKey, id: string): Promise<Call | null> {
    return this.#read(conversation)?.calls.get(id) ?? null;
  }

  async calls(conversation: ConversationKey, limit: number): Promise<readonly Call[]> {
    checkLimit(limit);
    return [...(this.#read(conversation)?.calls.values() ?? [])].slice(-limit);
  }

  async callsOfReply(conversation: ConversationKey, reply: string): Promise<readonly Call[]> {
    const book = this.#read(conversation);
    if (book?.nodes.has(reply) !== true) return [];
    return [...book.calls.values()].filter((call) => call.replies.includes(reply));
  }

  async instruction(conversation: ConversationKey, digest: string): Promise<Instruction | null> {
    return this.#read(conversation)?.instructions.get(digest) ?? null;
  }

  async acquireLease(key: ConversationKey, chain: readonly string[], durationMs: number): Promise<Lease | null> {
    checkLease(chain, durationMs);
    return acquireLease(this.#require(key), chain, durationMs, this.#clock());
  }

  async renewLease(key: ConversationKey, lease: Lease, durationMs: number): Promise<boolean> {
    checkLease([lease.head], durationMs);
    const book = this.#read(key);
    return book !== undefined && renewLease(book, lease, durationMs, this.#clock());
  }

  async releaseLease(key: ConversationKey, lease: Lease): Promise<void> {
    const book = this.#read(key);
    if (book !== undefined) releaseLease(book, lease);
  }

  async deleteBranch(key: ConversationKey, from: string, expected: string | null) {
    const book = this.#require(key);
    const { predecessor } = requireLiveNode(book, from, 'from');
    requireHead(book, expected);
    const branch = branchOf(book, from);
    const nodes = setDeleted(book, branch, this.#clock());
    this.#leaveBranch(book, branch, predecessor);
    return { nodes, head: book.conversation.head };
  }

  async restoreBranch(key: ConversationKey, node: string): Promise<{ readonly nodes: number }> {
    const book = this.#require(key);
    requireChainNode(book, node, 'node');
    return { nodes: setDeleted(book, [...walk(book, node).slice(0, -1), ...branchOf(book, node)], null) };
  }

  async eraseBranch(key: ConversationKey, from: string, expected: string | null) {
    const book = this.#require(key);
    const { predecessor } = requireChainNode(book, from, 'from');
    requireHead(book, expected);
    const branch = branchOf(book, from);
    this.#leaveBranch(book, branch, predecessor);
    const nodes = eraseBranchOf(book, from);
    this.#dropReferences(key.id, new Set(branch.map((node) => node.id)));
    return { nodes, head: book.conversation.head };
  }

  async deleteConversation(key: ConversationKey): Promise<void> {
    const book = this.#require(key);
    book.conversation = { ...book.conversation, deletedAt: book.conversation.deletedAt ?? this.#clock() };
  }

  async restoreConversation(key: ConversationKey): Promise<void> {
    const book = this.#require(key);
    book.conversation = { ...book.conversation, deletedAt: null };
  }

  async eraseConversation(key: ConversationKey, unusedSince: number | null): Promise<boolean> {
    const book = this.#read(key);
    if (book === undefined || (unusedSince !== null && book.conversation.usedAt >= unusedSince)) return false;
    this.#dropReferences(key.id, null);
    return this.#books.delete(key.id);
  }

  async exportPage(key: ConversationKey, next: string | null): Promise<ExportPage> {
    return exportPageOfBook(this.#require(key), next);
  }

  async importPage(page: ImportPage): Promise<void> {
    checkImportPage(page);
    const { id, tenant } = page.conversation;
    const there = this.#books.get(id);
    if (there !== undefined && !(there.importing && there.conversation.tenant === tenant)) {
      throw new SpillwayError('conversation_exists', 'There is a conversation with this id.', 'conversation');
    }
    const book = page.first ? importedBook(page, this.#clock()) : there;
    if (book === undefined) throw conversationNotFound();
    this.#books.set(id, withImported(book, page));
  }

  async list(tenant: string | null, limit: number, before: ListPosition | null): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    return latestUsed([...this.#books.values()].map(entryOf), tenant, limit, before);
  }

  async oldest(tenant: string | null, limit: number): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    return longestUnused([...this.#books.values()].map(entryOf), tenant, limit);
  }

  async tenants(): Promise<readonly TenantUsage[]> {
    return usageByTenant([...this.#books.values()].map(entryOf));
  }

  async refer(tenant: string, references: readonly Reference[]): Promise<void> {
    checkReferences(tenant, references);
    for (const reference of references) this.#references.set(JSON.stringify([tenant, reference.id]), reference);
  }

  async resolve(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, Reference>> {
    const found = ids.flatMap((id) => this.#references.get(JSON.stringify([tenant, id])) ?? []);
    return new Map(found.map((reference) => [reference.id, reference]));
  }

  async learnedWindows(tenant: string | null, limit: number): Promise<readonly LearnedWindow[]> {
    checkLimit(limit);
    return this.#windows.list(tenant, limit, this.#clock());
  }

  async learnWindow(window: LearnedWindow): Promise<void> {
    checkWindow(window, window.tokens);
    this.#windows.learn(window, this.#clock());
  }

  async widenWindow(key: WindowKey, tokens: number): Promise<void> {
    checkWindow(key, tokens);
    this.#windows.widen(key, tokens, this.#clock());
  }

  async forgetWindow(key: WindowKey): Promise<boolean> {
    return this.#windows.forget(key, this.#clock());
  }

  async forgetWindows(tenant: string): Promise<void> {
    this.#windows.forgetAll(tenant);
  }

  async close(): Promise<void> {}

  #find(key: ConversationKey): Book | null {
    const book = this.#books.get(key.id);
    if (book !== undefined && book.conversation.tenant !== key.tenant) throw conversationNotFound();
    if (book?.importing) throw new SpillwayError('store_unavailable', 'The conversation is still being imported.');
    return book ?? null;
  }

  #require(key: ConversationKey): Book {
    const book = this.#find(key);
    if (book === null) throw conversationNotFound();
    return book;
  }

  /** For reads, another tenant's conversation is simply not there. */
  #read(key: ConversationKey): Book | undefined {
    const book = this.#books.get(key.id);
    return book?.conversation.tenant === key.tenant ? book : undefined;
  }

  /** The one way HEAD moves here; a summary is never HEAD (SPEC 8.1). */
  #setHead(book: Book, to: string): void {
    if (to !== ROOT) requireChainNode(book, to, 'head');
    book.conversation = { ...book.conversation, head: to };
  }

  /** HEAD steps back from a branch that goes (SPEC 8.1). */
  #leaveBranch(book: Book, branch: readonly Node[], predecessor: string): void {
    if (branch.some((node) => node.id === book.conversation.head)) this.#setHead(book, predecessor);
  }

  /** Those to these nodes of a conversation, or to any. */
  #dropReferences(conversation: string, nodes: ReadonlySet<string> | null): void {
    for (const [name, reference] of this.#references) {
      const isGone = reference.conversation === conversation && (nodes === null || nodes.has(reference.node));
      if (isGone) this.#references.delete(name);
    }
  }

  #use(book: Book): void {
    book.conversation = { ...book.conversation, usedAt: this.#clock() };
  }
}

function requireHead(book: Book, expected: string | null): void {
  if (expected !== null && expected !== book.conversation.head) throw headMoved('expected');
}

function headMoved(field: string): SpillwayError {
  return new SpillwayError('head_moved', 'HEAD is not where it was expected.', field);
}

function conversationNotFound(): SpillwayError {
  return new SpillwayError('conversation_not_found', 'There is no such conversation.', 'conversation');
}
