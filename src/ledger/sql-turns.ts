import { ROOT, type NewNode } from '../core/node.js';
import type { Clock, CloseTurn, Mark, NewConversation, OpenedTurn, OpenTurn } from '../core/ports.js';
import { checkChainNode, endOfReplies, headOf, invalid } from './check-writes.js';
import { onChain } from './sql-on-chain.js';
import { isSummaryPlace, stateFrom, type ConversationState, type Place } from './sql-rows.js';
import { chainPlace, requireHead, withHead, type SqlStore } from './sql-store.js';

/** A chain that goes on from HEAD is looked up from there, if no more than this is behind it. */
const MOST_BEHIND_HEAD = 64;

/** Opening and closing a turn, each inside a transaction. */
export class SqlTurns {
  readonly #store: SqlStore;
  readonly #clock: Clock;

  constructor(store: SqlStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  open(turn: OpenTurn): OpenedTurn {
    const { chain } = turn;
    const { id } = turn.conversation;
    const now = this.#clock();
    const before = this.#store.find(turn.conversation);
    requireHead(before?.head ?? ROOT, turn.expectedHead, 'expectedHead');
    const known = before === null ? NOTHING_KNOWN : this.#knownPrefix(before, chain);
    let state = before ?? newState(turn.conversation, now);
    let { last } = known;
    if (last !== null && last.deletedAt !== null) {
      this.#store.nodes.liftSpine(id, last.id);
      state = { ...state, revision: state.revision + 1 };
    }
    for (let index = known.count; index < chain.length; index += 1) {
      const node = turn.node(index);
      checkChainNode(node, chain[index] ?? '', last?.id ?? ROOT, 'chain');
      [state, last] = this.#append(state, node, last, now, null);
    }
    if (last === null) throw invalid('chain', 'is empty');
    state = { ...state, deletedAt: null };
    if (turn.advanceHead) state = withHead(state, last);
    const isUse = before === null || hasChanged(before, state);
    state = { ...state, bytes: state.bytes + this.#store.records.storeInstructions(id, turn.instructions) };
    if (isUse) this.#store.conversations.save({ ...state, usedAt: now });
    else if (before.bytes !== state.bytes) this.#store.conversations.save(state);

    const { summaries, match, marks } = onChain(this.#store.db, id, turn.model, chain);
    const active = this.#store.active(state, chain, turn.policy, summaries);
    const behind = active === null ? chain : chain.slice(chain.indexOf(active.last) + 1);
    const counts =
      turn.tokenizer === null ? new Map<string, number>() : this.#store.nodes.counts(id, behind, turn.tokenizer);
    return {
      head: state.head,
      known: known.count,
      active,
      commands: this.#store.nodes.commands(id, last),
      counts,
      match,
      marks,
    };
  }

  close(turn: CloseTurn): { readonly head: string } {
    const { call, replies } = turn;
    let state = this.#store.require(turn.conversation);
    const { id } = state;
    const now = this.#clock();
    const headId = headOf(turn);
    const named = [...(headId === null ? [] : [headId]), ...replies.map((reply) => reply.id)];
    const places = new Map(this.#store.nodes.places(id, named));
    const head = headId === null ? null : chainPlace(places.get(headId), 'head');
    // A call that is recorded already was closed by an earlier attempt whose answer got lost.
    if (call !== null && this.#store.records.hasCall(id, call.id)) return { head: state.head };

    for (const reply of replies) {
      const there = places.get(reply.id);
      if (there === undefined) {
        const after = places.get(reply.predecessor) ?? null;
        const [next, place] = this.#append(state, reply, after, now, head?.deletedAt ?? null);
        state = next;
        places.set(reply.id, place);
      } else if (isSummaryPlace(there) || there.predecessor !== reply.predecessor) {
        throw invalid('replies', 'is a node of another place');
      } else if (there.deletedAt !== null && head?.deletedAt === null) {
        this.#store.nodes.lift(id, [reply.id]);
        state = { ...state, revision: state.revision + 1 };
      }
    }
    const isComplete = call === null || call.outcome === 'complete';
    const end = places.get(endOfReplies(replies));
    const extendsHead = replies[0]?.predecessor === state.head;
    if (turn.advanceHead && isComplete && extendsHead && end !== undefined) state = withHead(state, end);
    if (call !== null && head !== null) {
      const seq = state.lastCall + 1;
      const bytes = turn.reduction === null ? 0 : this.#store.records.storeInstructions(id, [turn.reduction]);
      state = { ...state, calls: state.calls + 1, lastCall: seq, bytes: state.bytes + bytes };
      const later = replies.filter((reply) => reply.predecessor !== head.id).map((reply) => reply.id);
      this.#store.records.insertCall(call, { seq, depth: head.depth }, later);
    }
    if (turn.tokenizer !== null) {
      for (const [node, tokens] of turn.counts) this.#store.nodes.fillCount(id, node, tokens, turn.tokenizer);
    }
    for (const mark of turn.marks) this.saveMark(id, mark);
    this.#store.conversations.save({ ...state, usedAt: now });
    return { head: state.head };
  }

  /** Throws `node_not_found` if its head is no chain node. */
  saveMark(conversation: string, mark: Mark): void {
    const { depth } = this.#store.requireChainNode(conversation, mark.head, 'mark.head');
    this.#store.records.saveMark(conversation, mark, depth);
  }

  /** What is known of a chain is a prefix, since an id names its whole prefix (SPEC 1.4). */
  #knownPrefix(state: ConversationState, chain: readonly string[]): KnownPrefix {
    const fromHead = chain.lastIndexOf(state.head);
    const known =
      fromHead >= 0 && chain.length - fromHead <= MOST_BEHIND_HEAD
        ? this.#knownFrom(state.id, chain, fromHead)
        : this.#knownBySearch(state.id, chain);
    const { count, last } = known;
    const isOneSpine = last === null || (last.depth === count && last.predecessor === (chain[count - 2] ?? ROOT));
    if (!isOneSpine || new Set(chain.slice(count)).size < chain.length - count)
      throw invalid('chain', 'is not one spine');
    return known;
  }

  /** One look at all from a known node on: an ordinary turn. */
  #knownFrom(conversation: string, chain: readonly string[], from: number): KnownPrefix {
    const places = this.#store.nodes.places(conversation, chain.slice(from));
    let count = from;
    while (places.has(chain[count] ?? '')) count += 1;
    if (places.size > count - from) throw invalid('chain', 'is not one spine');
    return { count, last: places.get(chain[count - 1] ?? '') ?? null };
  }

  #knownBySearch(conversation: string, chain: readonly string[]): KnownPrefix {
    let last: Place | null = null;
    let low = 0;
    let high = chain.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const place = this.#store.nodes.place(conversation, chain[middle - 1] ?? '');
      if (place === null) {
        high = middle - 1;
      } else {
        last = place;
        low = middle;
      }
    }
    if (this.#store.nodes.places(conversation, chain.slice(low)).size > 0) throw invalid('chain', 'is not one spine');
    return { count: low, last };
  }

  #append(
    state: ConversationState,
    node: NewNode,
    after: Place | null,
    createdAt: number,
    deletedAt: number | null,
  ): [ConversationState, Place] {
    const seq = state.lastSeq + 1;
    const { place, bytes } = this.#store.nodes.insert(state.id, node, {
      seq,
      depth: (after?.depth ?? 0) + 1,
      lastCommand: after?.lastCommand ?? null,
      createdAt,
      deletedAt,
    });
    return [{ ...state, nodes: state.nodes + 1, bytes: state.bytes + bytes, lastSeq: seq }, place];
  }
}

interface KnownPrefix {
  readonly count: number;
  readonly last: Place | null;
}

const NOTHING_KNOWN: KnownPrefix = { count: 0, last: null };

function hasChanged(before: ConversationState, after: ConversationState): boolean {
  const columns = ['lastSeq', 'head', 'revision', 'deletedAt'] as const;
  return columns.some((column) => before[column] !== after[column]);
}

function newState(conversation: NewConversation, now: number): ConversationState {
  return stateFrom({
    ...conversation,
    head: ROOT,
    activeSummary: null,
    createdAt: now,
    usedAt: now,
    deletedAt: null,
    nodes: 0,
    calls: 0,
    summaries: 0,
    bytes: 0,
  });
}
