import type { ConversationKey, SharedCache } from '../core/ports.js';
import { turnInProgress } from './running-turns.js';
import type { Sleep } from './sleep.js';

/** How long a process that died keeps others from appending to what it was answering. */
const KEPT_MS = 15_000;

/**
 * The turns of thin clients, as processes on one store tell each other of them (SPEC 1.6). Both methods reject as the shared cache
 * does: the reply of a turn that the others do not hear of could get beside HEAD's spine. Without a cache there is one process.
 */
export interface SharedTurns {
  /**
   * Tells of a turn whose request ends in `node`, until it is left. Done before HEAD stands at that node, no other process
   * takes it for a place where nothing runs; of a conversation that is not there yet nothing can be told.
   */
  enter(conversation: ConversationKey, node: string): Promise<Leave>;
  /** Rejects with `turn_in_progress` if a turn runs that ends in `node`. */
  refuseAt(conversation: ConversationKey, node: string): Promise<void>;
}

/** Never rejects. */
export type Leave = () => Promise<void>;

export function createSharedTurns(cache: SharedCache | null, sleep: Sleep): SharedTurns {
  if (cache === null) return { enter: async () => async () => undefined, refuseAt: async () => undefined };
  const fieldOf = (node: string): string => `turn ${node}`;
  return {
    async enter(conversation, node) {
      const ended = new AbortController();
      const tell = (): Promise<void> => cache.set(conversation, fieldOf(node), 'runs', KEPT_MS);
      const goOn = async (): Promise<void> => {
        for (;;) {
          await sleep(KEPT_MS / 3, ended.signal);
          if (ended.signal.aborted) return;
          await tell().catch(() => undefined);
        }
      };
      await tell();
      const telling = goOn();
      return async () => {
        ended.abort();
        // What is told behind the end would keep others away.
        await telling;
        await cache.delete(conversation, fieldOf(node)).catch(() => undefined);
      };
    },
    async refuseAt(conversation, node) {
      if ((await cache.get(conversation, fieldOf(node))) !== null) throw turnInProgress();
    },
  };
}
