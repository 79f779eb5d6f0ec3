import type { Clock, ConversationEntry, ConversationKey, Directory } from '../core/ports.js';
import { answer, type Answer } from './durable-answer.js';
import { durableDatabase, type DurableStorage } from './durable-database.js';
import { SqlConversations } from './sql-conversations.js';
import type { SqlDatabase } from './sql-database.js';
import { SqlLedger } from './sql-ledger.js';
import { stateFrom } from './sql-rows.js';

export type DirectoryMethod = keyof Directory;
export type DirectoryArguments = { readonly [M in DirectoryMethod]: Parameters<Directory[M]> };
export type DirectoryResults = { readonly [M in DirectoryMethod]: Awaited<ReturnType<Directory[M]>> };

/** What the object of a directory is asked from afar. */
export interface DirectoryMethods {
  ask<M extends DirectoryMethod>(method: M, args: DirectoryArguments[M]): Promise<Answer<DirectoryResults[M]>>;
  /** Takes over what is to be listed of a conversation. */
  note(entry: ConversationEntry): Promise<void>;
  /** A conversation was erased, or of it, where they are given, these nodes. */
  forget(conversation: ConversationKey, nodes: readonly string[] | null): Promise<void>;
}

/**
 * A directory in a Durable Object of its own (SPEC 2.7): the very tables of the SQL ledger, of which those of nodes and calls stay
 * empty. The objects of the conversations tell what is listed here.
 */
export class DurableDirectory implements DirectoryMethods {
  readonly #database: SqlDatabase;
  readonly #conversations: SqlConversations;
  readonly #ledger: SqlLedger;

  /** Throws `store_unavailable` if the storage cannot be used. */
  constructor(storage: DurableStorage, clock: Clock) {
    this.#database = durableDatabase(storage);
    this.#ledger = new SqlLedger(this.#database, clock);
    this.#conversations = new SqlConversations(this.#database);
  }

  ask<M extends DirectoryMethod>(method: M, args: DirectoryArguments[M]): Promise<Answer<DirectoryResults[M]>> {
    return answer(() => {
      const methods: {
        readonly [N in DirectoryMethod]: (...args: DirectoryArguments[N]) => Promise<DirectoryResults[N]>;
      } = this.#ledger;
      return methods[method](...args);
    });
  }

  async note(entry: ConversationEntry): Promise<void> {
    this.#conversations.save(stateFrom(entry));
  }

  async forget(conversation: ConversationKey, nodes: readonly string[] | null): Promise<void> {
    if (nodes === null) {
      await this.#ledger.eraseConversation(conversation, null);
      return;
    }
    this.#database.run(
      'DELETE FROM reference WHERE tenant = ? AND conversation = ? AND node IN (SELECT value FROM json_each(?))',
      conversation.tenant,
      conversation.id,
      JSON.stringify(nodes),
    );
  }
}
