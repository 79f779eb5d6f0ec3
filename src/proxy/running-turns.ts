import { SpillwayError } from '../core/errors.js';
import type { ConversationKey } from '../core/ports.js';

/** The turns that run in this process, so that none is appended to a place where another is still being answered. */
export interface RunningTurns {
  /** Claims a conversation's HEAD for a thin client; `turn_in_progress` if another holds it (SPEC 1.6). */
  claimHead(conversation: ConversationKey): Release;
  /** Notes that a turn runs whose request ends in `node`. */
  enter(conversation: ConversationKey, node: string): Release;
  /** Rejects with `turn_in_progress` if a turn runs that ends in `node`. */
  refuseAt(conversation: ConversationKey, node: string): void;
  /** The nodes in which the requests of a conversation's running turns end. */
  endsIn(conversation: ConversationKey): readonly string[];
  /** Resolves when no turn runs any more. */
  drain(): Promise<void>;
}

/** Ends a claim; calling it again does nothing. */
export type Release = () => void;

interface Place {
  readonly conversation: ConversationKey;
  /** Null: HEAD, wherever it is. */
  readonly node: string | null;
  readonly holders: number;
}

export function turnInProgress(): SpillwayError {
  const reason = 'a turn is still running at this place; wait for its end and send again';
  return new SpillwayError('turn_in_progress', reason, 'x-spillway-append');
}

export function createRunningTurns(): RunningTurns {
  const places = new Map<string, Place>();
  const idle: (() => void)[] = [];
  const keyOf = ({ tenant, id }: ConversationKey, node: string | null): string => JSON.stringify([tenant, id, node]);
  const hold = (conversation: ConversationKey, node: string | null): Release => {
    const key = keyOf(conversation, node);
    const change = (by: number): void => {
      const holders = (places.get(key)?.holders ?? 0) + by;
      if (holders > 0) places.set(key, { conversation, node, holders });
      else places.delete(key);
    };
    change(1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      change(-1);
      if (places.size === 0) for (const resolve of idle.splice(0)) resolve();
    };
  };
  const refuse = (conversation: ConversationKey, node: string | null): void => {
    if (places.has(keyOf(conversation, node))) throw turnInProgress();
  };
  return {
    claimHead(conversation) {
      refuse(conversation, null);
      return hold(conversation, null);
    },
    enter: hold,
    refuseAt: refuse,
    endsIn: ({ tenant, id }) =>
      [...places.values()].flatMap(({ conversation, node }) =>
        node !== null && conversation.id === id && conversation.tenant === tenant ? [node] : [],
      ),
    drain: () => (places.size === 0 ? Promise.resolve() : new Promise((resolve) => idle.push(resolve))),
  };
}
