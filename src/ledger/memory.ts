import { SpillwayError } from '../core/errors.js';
import { isCommand, isSummary, ROOT, type NewNode, type Node } from '../core/node.js';
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
  Ledger,
  Mark,
  Match,
  NewConversation,
  OpenedTurn,
  OpenTurn,
  Spine,
  Summary,
  SummaryPolicy,
} from '../core/ports.js';
import { activeSummary } from '../core/summary.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';
import {
  checkChainNode,
  checkCloseTurn,
  checkCommitSummary,
  checkLimit,
  checkMark,
  checkOpenTurn,
  checkWindow,
  headOf,
  invalid,
} from './check-writes.js';
import { matchOfCall } from './match-of-call.js';
import { MemoryLearnedWindows } from './memory-learned-windows.js';

/** One conversation. Insertion order of the maps is the order of writing. */
interface Book {
  conversation: Conversation;
  readonly nodes: Map<string, Node>;
  readonly calls: Map<string, Call>;
  readonly marks: Mark[];
  readonly instructions: Map<string, Instruction>;
}

/**
 * The ledger in memory: nothing outlives the process. The reference that other drivers are compared with, so it is
 * written to be obviously right, and reads whole histories. Each method checks everything before it changes anything.
 */
export class MemoryLedger implements Ledger, Directory {
  readonly #books = new Map<string, Book>();
  readonly #windows = new MemoryLearnedWindows();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async openTurn(turn: OpenTurn): Promise<OpenedTurn> {
    checkOpenTurn(turn);
    const { chain } = turn;
    const book = this.#find(turn.conversation) ?? newBook(turn.conversation, this.#clock());
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

    const headBefore = book.conversation.head;
    this.#books.set(turn.conversation.id, book);
    for (const node of added) this.#append(book, node);
    if (turn.advanceHead) this.#setHead(book, chain.at(-1) ?? ROOT);
    if (added.length > 0 || book.conversation.head !== headBefore) this.#use(book);
    for (const instruction of turn.instructions) {
      if (!book.instructions.has(instruction.digest)) book.instructions.set(instruction.digest, instruction);
    }

    const active = activeOn(book, chain, turn.policy);
    const behind = active === null ? chain : chain.slice(chain.indexOf(active.last) + 1);
    const nodeAt = (id: string): readonly Node[] => nodesNamed(book, [id]);
    return {
      head: book.conversation.head,
      known,
      active,
      commands: chain
        .flatMap(nodeAt)
        .filter(isCommand)
        .map((node) => node.id),
      counts: new Map(
        behind
          .flatMap(nodeAt)
          .flatMap(({ id, tokens, tokenizer }) =>
            tokens !== null && tokenizer !== null && tokenizer === turn.tokenizer ? [[id, tokens] as const] : [],
          ),
      ),
      match: matchOn(book, chain, turn.model),
      marks: (['latched', 'overflowed'] as const).flatMap((kind) => deepestMark(book, chain, kind)),
    };
  }

  async closeTurn(turn: CloseTurn): Promise<{ readonly head: string }> {
    checkCloseTurn(turn);
    const { call } = turn;
    const book = this.#require(turn.conversation);
    const head = headOf(turn);
    if (head !== null) requireChainNode(book, head, 'head');
    if (call !== null && book.calls.has(call.id)) return { head: book.conversation.head };
    for (const reply of turn.replies) {
      const there = book.nodes.get(reply.id);
      if (there !== undefined && (isSummary(there) || there.predecessor !== head)) {
        throw invalid('replies', 'is a node of another place');
      }
    }
    const willBeThere = new Set(turn.replies.map((reply) => reply.id));
    for (const mark of turn.marks) if (!willBeThere.has(mark.head)) requireChainNode(book, mark.head, 'mark.head');

    for (const reply of turn.replies) if (!book.nodes.has(reply.id)) this.#append(book, reply);
    const [first] = turn.replies;
    const isComplete = call === null || call.outcome === 'complete';
    if (turn.advanceHead && isComplete && first?.predecessor === book.conversation.head) this.#setHead(book, first.id);
    if (call !== null) book.calls.set(call.id, call);
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
    const { node, chain } = commit;
    const covered = node.metadata.covers_ids;
    const stale = (reason: string): CommitOutcome => ({ outcome: 'stale', reason });
    if (covered.some((id, index) => id !== chain[index])) return stale('the coverage is not the start of the spine');
    if (!isSpine(book, covered)) return stale('a covered node is gone');
    if (nodesNamed(book, chain.slice(-1)).length === 0) return stale('the head is gone');
    if ((activeOn(book, chain, commit.policy)?.id ?? null) !== commit.expectedActive) {
      return stale('another summary became active');
    }
    const headSpine = walk(book, book.conversation.head).map((ancestor) => ancestor.id);
    if (commit.headMustDescend && !headSpine.includes(covered.at(-1) ?? ROOT)) return stale('HEAD left the segment');
    if (book.nodes.has(node.id)) return stale('the summary was written before');

    this.#append(book, node);
    book.conversation = { ...book.conversation, activeSummary: node.id };
    return { outcome: 'committed' };
  }

  async moveHead(conversation: ConversationKey, to: string, expected: string | null): Promise<void> {
    const book = this.#require(conversation);
    requireChainNode(book, to, 'to');
    if (expected !== null && expected !== book.conversation.head) {
      throw new SpillwayError('head_moved', 'HEAD is not where it was expected.', 'expected');
    }
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
    if (from !== ROOT) requireChainNode(book, from, 'head');
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
    return [...(this.#read(conversation)?.calls.values() ?? [])].filter((call) => call.replies.includes(reply));
  }

  async instruction(conversation: ConversationKey, digest: string): Promise<Instruction | null> {
    return this.#read(conversation)?.instructions.get(digest) ?? null;
  }

  async list(tenant: string | null, limit: number, before: number | null): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    return [...this.#books.values()]
      .filter(({ conversation }) => tenant === null || conversation.tenant === tenant)
      .filter(({ conversation }) => before === null || conversation.usedAt < before)
      .toSorted(
        (a, b) => b.conversation.usedAt - a.conversation.usedAt || (a.conversation.id < b.conversation.id ? 1 : -1),
      )
      .slice(0, limit)
      .map(({ conversation, nodes, calls }) => ({
        ...conversation,
        nodes: nodes.size,
        calls: calls.size,
        summaries: [...nodes.values()].filter(isSummary).length,
      }));
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

  async close(): Promise<void> {}

  #find(key: ConversationKey): Book | null {
    const book = this.#books.get(key.id);
    if (book !== undefined && book.conversation.tenant !== key.tenant) throw conversationNotFound();
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

  #append(book: Book, node: NewNode): void {
    const { id } = book.conversation;
    book.nodes.set(node.id, { ...node, conversation: id, seq: book.nodes.size + 1, createdAt: this.#clock() });
  }

  /** The one way HEAD moves here; a summary is never HEAD (SPEC 8.1). */
  #setHead(book: Book, to: string): void {
    requireChainNode(book, to, 'head');
    book.conversation = { ...book.conversation, head: to };
  }

  #use(book: Book): void {
    book.conversation = { ...book.conversation, usedAt: this.#clock() };
  }
}

function newBook(conversation: NewConversation, now: number): Book {
  return {
    conversation: { ...conversation, head: ROOT, activeSummary: null, createdAt: now, usedAt: now },
    nodes: new Map(),
    calls: new Map(),
    marks: [],
    instructions: new Map(),
  };
}

function requireChainNode(book: Book, id: string, field: string): void {
  const node = book.nodes.get(id);
  if (node === undefined || isSummary(node)) {
    throw new SpillwayError('node_not_found', 'There is no such node in the conversation.', field);
  }
}

function nodesNamed(book: Book, ids: readonly string[]): readonly Node[] {
  return ids.flatMap((id) => book.nodes.get(id) ?? []);
}

/** The spine of a node, first node first. */
function walk(book: Book, head: string): readonly Node[] {
  const nodes: Node[] = [];
  for (let node = book.nodes.get(head); node !== undefined; node = book.nodes.get(node.predecessor)) nodes.push(node);
  return nodes.toReversed();
}

/** Whether these are the stored nodes of one spine, from its first node on. */
function isSpine(book: Book, ids: readonly string[]): boolean {
  return ids.every((id, index) => {
    const node = book.nodes.get(id);
    return node !== undefined && !isSummary(node) && node.predecessor === (ids[index - 1] ?? ROOT);
  });
}

function activeOn(book: Book, chain: readonly string[], policy: SummaryPolicy): Summary | null {
  const summaries = [...book.nodes.values()].flatMap((node): readonly Summary[] => {
    if (!isSummary(node)) return [];
    const { id, content, tokens, tokenizer, metadata } = node;
    const [first = ROOT] = metadata.covers_ids;
    const last = metadata.covers_ids.at(-1) ?? ROOT;
    return [{ id, first, last, count: metadata.covers_ids.length, content, tokens, tokenizer }];
  });
  return activeSummary(chain, summaries, policy, book.conversation.activeSummary);
}

/** Of the calls of a model that teach something, the last one of the deepest head on a chain. */
function matchOn(book: Book, chain: readonly string[], model: string): Match | null {
  const calls = [...book.calls.values()].filter((call) => call.model === model && matchOfCall(call) !== null);
  const head = chain.findLast((id) => calls.some((call) => call.manifest.head === id));
  const call = calls.findLast((candidate) => candidate.manifest.head === head);
  return call === undefined ? null : matchOfCall(call);
}

function deepestMark(book: Book, chain: readonly string[], kind: Mark['kind']): readonly Mark[] {
  const marks = book.marks.filter((mark) => mark.kind === kind && chain.includes(mark.head));
  return marks.toSorted((a, b) => chain.indexOf(b.head) - chain.indexOf(a.head)).slice(0, 1);
}

/** One of a kind at a node: the newer one holds. */
function saveMark(book: Book, mark: Mark): void {
  const older = book.marks.findIndex(({ kind, head }) => kind === mark.kind && head === mark.head);
  if (older >= 0) book.marks.splice(older, 1);
  book.marks.push(mark);
}

function conversationNotFound(): SpillwayError {
  return new SpillwayError('conversation_not_found', 'There is no such conversation.', 'conversation');
}
