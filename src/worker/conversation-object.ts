import { DurableObject, type DurableObjectState } from 'cloudflare:workers';
import type { Clock, ConversationKey } from '../core/ports.js';
import type { Answer } from '../ledger/durable-answer.js';
import {
  DurableConversation,
  type ConversationMethods,
  type ErasedBranch,
  type LedgerArguments,
  type LedgerMethod,
  type LedgerResults,
  type OpenedOrNot,
  type SentTurn,
} from '../ledger/durable-conversation.js';
import { objectsOf, type Bindings } from './bindings.js';

/** The Durable Object of one conversation, named by the conversation's id. */
export class ConversationObject extends DurableObject<Bindings> implements ConversationMethods {
  readonly #conversation: DurableConversation;

  constructor(state: DurableObjectState, bindings: Bindings, clock: Clock = () => Date.now()) {
    super(state, bindings);
    const { directory } = objectsOf(bindings);
    this.#conversation = new DurableConversation({
      storage: state.storage,
      clock,
      async note(entry) {
        await Promise.all([directory(entry.tenant).note(entry), directory(null).note(entry)]);
      },
      async forget(key, nodes) {
        await Promise.all([directory(key.tenant).forget(key, nodes), directory(null).forget(key, nodes)]);
      },
    });
  }

  open(turn: SentTurn): Promise<Answer<OpenedOrNot>> {
    return this.#conversation.open(turn);
  }

  ask<M extends LedgerMethod>(method: M, args: LedgerArguments[M]): Promise<Answer<LedgerResults[M]>> {
    return this.#conversation.ask(method, args);
  }

  eraseBranch(...args: Parameters<ConversationMethods['eraseBranch']>): Promise<Answer<ErasedBranch>> {
    return this.#conversation.eraseBranch(...args);
  }

  eraseConversation(...args: Parameters<ConversationMethods['eraseConversation']>): Promise<Answer<boolean>> {
    return this.#conversation.eraseConversation(...args);
  }

  cached(conversation: ConversationKey, field: string): Promise<Answer<string | null>> {
    return this.#conversation.cached(conversation, field);
  }

  cache(conversation: ConversationKey, field: string, value: string | null, durationMs: number): Promise<Answer<null>> {
    return this.#conversation.cache(conversation, field, value, durationMs);
  }

  told(): Promise<void> {
    return this.#conversation.told();
  }
}
