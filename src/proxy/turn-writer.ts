import type { NewNode } from '../core/node.js';
import type {
  Call,
  ConversationKey,
  Instruction,
  Ledger,
  Mark,
  NewConversation,
  OpenedTurn,
  OpenTurn,
} from '../core/ports.js';

export interface TurnEnd {
  readonly call: Call | null;
  readonly reduction: Instruction | null;
  readonly replies: readonly NewNode[];
  readonly counts: ReadonlyMap<string, number>;
  readonly tokenizer: string | null;
  readonly marks: readonly Mark[];
}

/**
 * Every chain write of a turn goes through here, and nowhere else is it decided whether one may move HEAD (SPEC 8.4). A
 * spawned turn moves nothing, failures included (SPEC 8.3).
 */
export class TurnWriter {
  readonly #ledger: Ledger;
  readonly #conversation: NewConversation;
  readonly #advanceHead: boolean;

  constructor(ledger: Ledger, conversation: NewConversation, advanceHead: boolean) {
    this.#ledger = ledger;
    this.#conversation = conversation;
    this.#advanceHead = advanceHead;
  }

  get conversation(): ConversationKey {
    return this.#conversation;
  }

  /** Makes the request's nodes durable (SPEC 2.4). */
  open(turn: Omit<OpenTurn, 'conversation' | 'advanceHead'>): Promise<OpenedTurn> {
    return this.#ledger.openTurn({ ...turn, conversation: this.#conversation, advanceHead: this.#advanceHead });
  }

  /** Records a call and what was relayed of its reply (SPEC 2.3, 2.5). */
  close(end: TurnEnd): Promise<{ readonly head: string }> {
    return this.#ledger.closeTurn({ ...end, conversation: this.#conversation, advanceHead: this.#advanceHead });
  }

  setMark(mark: Mark): Promise<void> {
    return this.#ledger.setMark(this.#conversation, mark);
  }
}
