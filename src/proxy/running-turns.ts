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
  /** Resolves when no turn runs any more. */
  drain(): Promise<void>;
}

/** Ends a claim; calling it again does nothing. */
export type Release = () => void;

export function createRunningTurns(): RunningTurns {
  const places = new Map<string, number>();
  const idle: (() => void)[] = [];
  const hold = (place: string): Release => {
    places.set(place, (places.get(place) ?? 0) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = (places.get(place) ?? 1) - 1;
      if (left > 0) places.set(place, left);
      else places.delete(place);
      if (places.size === 0) for (const resolve of idle.splice(0)) resolve();
    };
  };
  const place = (conversation: ConversationKey, node: string): string =>
    JSON.stringify([conversation.tenant, conversation.id, node]);
  const refuse = (at: string): void => {
    if (places.has(at)) {
      throw new SpillwayError(
        'turn_in_progress',
        'a turn is still running at this place; wait for its end and send again',
        'x-spillway-append',
      );
    }
  };
  return {
    claimHead(conversation) {
      refuse(place(conversation, 'HEAD'));
      return hold(place(conversation, 'HEAD'));
    },
    enter: (conversation, node) => hold(place(conversation, node)),
    refuseAt: (conversation, node) => refuse(place(conversation, node)),
    drain: () => (places.size === 0 ? Promise.resolve() : new Promise((resolve) => idle.push(resolve))),
  };
}
