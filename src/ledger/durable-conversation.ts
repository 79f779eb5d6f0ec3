import type { NewNode } from '../core/node.js';
import type {
  Clock,
  ConversationEntry,
  ConversationKey,
  Directory,
  Ledger,
  OpenedTurn,
  OpenTurn,
} from '../core/ports.js';
import { answer, type Answer } from './durable-answer.js';
import { CacheTable } from './durable-cache.js';
import { durableDatabase, type DurableStorage } from './durable-database.js';
import { followDeletions, withLargeText } from './durable-large-text.js';
import { text, type SqlDatabase } from './sql-database.js';
import { SqlLedger } from './sql-ledger.js';

/** What an object answers as a ledger does; for the others it has methods of its own. */
export type LedgerMethod = Exclude<keyof Ledger, 'openTurn' | 'eraseBranch' | 'eraseConversation' | 'close'>;
export type LedgerArguments = { readonly [M in LedgerMethod]: Parameters<Ledger[M]> };
export type LedgerResults = { readonly [M in LedgerMethod]: Awaited<ReturnType<Ledger[M]>> };

/** A turn whose callback, which would be a call back for every node, is replaced by the nodes of `chain` from `from` on. */
export interface SentTurn extends Omit<OpenTurn, 'node'> {
  readonly from: number;
  readonly nodes: readonly NewNode[];
}

/** `missingFrom`: nodes are missing from there on, not all of them were sent, and nothing was written. */
export type OpenedOrNot = { readonly opened: OpenedTurn } | { readonly missingFrom: number };

export type ErasedBranch = Awaited<ReturnType<Ledger['eraseBranch']>>;

/** What the object of a conversation is asked from afar. */
export interface ConversationMethods {
  open(turn: SentTurn): Promise<Answer<OpenedOrNot>>;
  ask<M extends LedgerMethod>(method: M, args: LedgerArguments[M]): Promise<Answer<LedgerResults[M]>>;
  /** As the ledger's method. What is derived from it in the directories is gone too. */
  eraseBranch(...args: Parameters<Ledger['eraseBranch']>): Promise<Answer<ErasedBranch>>;
  /** Likewise. */
  eraseConversation(...args: Parameters<Ledger['eraseConversation']>): Promise<Answer<boolean>>;
  /** What the shared cache holds for it. */
  cached(conversation: ConversationKey, field: string): Promise<Answer<string | null>>;
  /** A value of null takes the field out. */
  cache(conversation: ConversationKey, field: string, value: string | null, durationMs: number): Promise<Answer<null>>;
  /** Resolves when the directories know of all that was written. */
  told(): Promise<void>;
}

export interface DurableConversationDeps {
  readonly storage: DurableStorage & { deleteAll(): Promise<void> };
  readonly clock: Clock;
  /** Tells the directories what is to be listed of it; after the write, one at a time, the latest last. */
  note(entry: ConversationEntry): Promise<void>;
  /** Tells them that it was erased, or of it, where they are given, these nodes. */
  forget(conversation: ConversationKey, nodes: readonly string[] | null): Promise<void>;
}

/** What stands on the object's storage once it is open. */
interface Opened {
  readonly database: SqlDatabase;
  readonly ledger: Ledger & Directory;
  readonly cache: CacheTable;
}

/**
 * A conversation in a Durable Object of its own: the SQL ledger on the object's storage (SPEC 2.7). An object without a conversation
 * keeps nothing at all, so neither a question about an unknown id nor an erased conversation leaves anything behind.
 */
export class DurableConversation implements ConversationMethods {
  readonly #deps: DurableConversationDeps;
  #opened: Opened | null = null;
  /** The entry that the directories were told last, or are being told. */
  #told = '';
  #telling: Promise<void> = Promise.resolve();

  constructor(deps: DurableConversationDeps) {
    this.#deps = deps;
  }

  open({ from, nodes, ...turn }: SentTurn): Promise<Answer<OpenedOrNot>> {
    return this.#answer(async ({ ledger }) => {
      try {
        return { opened: await ledger.openTurn({ ...turn, node: (index) => sentNode(nodes, from, index) }) };
      } catch (error) {
        if (error instanceof NodeNotSent) return { missingFrom: error.index };
        throw error;
      }
    });
  }

  ask<M extends LedgerMethod>(method: M, args: LedgerArguments[M]): Promise<Answer<LedgerResults[M]>> {
    return this.#answer(({ ledger }) => {
      const methods: { readonly [N in LedgerMethod]: (...args: LedgerArguments[N]) => Promise<LedgerResults[N]> } =
        ledger;
      return methods[method](...args);
    });
  }

  eraseBranch(...args: Parameters<Ledger['eraseBranch']>): Promise<Answer<ErasedBranch>> {
    return this.#answer(async ({ ledger, database }) => {
      const before = nodesIn(database);
      const erased = await ledger.eraseBranch(...args);
      const left = new Set(nodesIn(database));
      const [conversation] = args;
      await this.#deps.forget(
        conversation,
        before.filter((id) => !left.has(id)),
      );
      return erased;
    });
  }

  eraseConversation(...args: Parameters<Ledger['eraseConversation']>): Promise<Answer<boolean>> {
    return this.#answer(async ({ ledger }) => {
      const erased = await ledger.eraseConversation(...args);
      // Also when there was none: what is listed and not there is forgotten when somebody wants it gone.
      if ((await entryOf(ledger)) === null) {
        const [conversation] = args;
        this.#told = '';
        const forgetting = this.#telling.then(() => this.#deps.forget(conversation, null));
        // What begins anew meanwhile is told behind it.
        this.#telling = forgetting.catch(() => undefined);
        await forgetting;
      }
      return erased;
    });
  }

  cached(conversation: ConversationKey, field: string): Promise<Answer<string | null>> {
    return this.#answer(async ({ cache }) => cache.get(conversation, field));
  }

  cache(conversation: ConversationKey, field: string, value: string | null, durationMs: number): Promise<Answer<null>> {
    return this.#answer(async ({ cache }) => {
      if (value === null) cache.delete(conversation, field);
      else cache.set(conversation, field, value, durationMs);
      return null;
    });
  }

  told(): Promise<void> {
    return this.#telling;
  }

  #answer<T>(work: (opened: Opened) => Promise<T>): Promise<Answer<T>> {
    return answer(async () => {
      const opened = (this.#opened ??= this.#open());
      try {
        return await work(opened);
      } finally {
        await this.#settle();
      }
    });
  }

  #open(): Opened {
    const { storage, clock } = this.#deps;
    const database = withLargeText(durableDatabase(storage));
    const opened = { database, ledger: new SqlLedger(database, clock), cache: new CacheTable(database, clock) };
    followDeletions(database);
    return opened;
  }

  /** Not by what `work` had opened: while it told the directories, another question may have been answered here. */
  async #settle(): Promise<void> {
    if (this.#opened === null) return;
    const entry = await entryOf(this.#opened.ledger);
    if (entry !== null) return this.#tell(entry);
    this.#opened = null;
    await this.#deps.storage.deleteAll();
  }

  #tell(entry: ConversationEntry): void {
    const news = JSON.stringify(entry);
    if (news === this.#told) return;
    this.#told = news;
    this.#telling = this.#telling.then(async () => {
      // A later one waits behind.
      if (news !== this.#told) return;
      // A directory may lag: what it missed it hears with the next write, or after the object's next start.
      await this.#deps.note(entry).catch(() => (this.#told = ''));
    });
  }
}

/** Breaks off a turn, and with it what it has written, that turns out to need a node that was not sent. */
class NodeNotSent extends Error {
  readonly index: number;

  constructor(index: number) {
    super('a node was not sent');
    this.index = index;
  }
}

function sentNode(nodes: readonly NewNode[], from: number, index: number): NewNode {
  const node = nodes[index - from];
  if (node === undefined) throw new NodeNotSent(index);
  return node;
}

/** What is stored of the one conversation here, deleted or not; null if there is none. */
async function entryOf(ledger: Directory): Promise<ConversationEntry | null> {
  const [entry] = await ledger.oldest(null, 1);
  return entry ?? null;
}

function nodesIn(database: SqlDatabase): readonly string[] {
  return database.all('SELECT id FROM node').map((row) => text(row, 'id'));
}
