import { abortAllDurableObjects, env } from 'cloudflare:test';
import type { Clock, Directory, Ledger } from '../../src/core/ports.js';
import { createDurableDirectories } from '../../src/ledger/durable-directories.js';
import { createDurableLedger, type DurableObjects } from '../../src/ledger/durable-ledger.js';
import { objectsOf } from '../../src/worker/bindings.js';
import type { LedgerHarness } from '../ledger/conformance.js';
import { setClock } from './worker.js';

let stores = 0;

export interface DurableStore {
  readonly objects: DurableObjects;
  /** Resolves when the directories lag no more. */
  told(): Promise<void>;
}

/** An empty store: objects under names that no other store has. */
export function createStore(): DurableStore {
  stores += 1;
  const name = `store-${stores}/`;
  const objects = objectsOf({
    ...env,
    CONVERSATIONS: { getByName: (id) => env.CONVERSATIONS.getByName(name + id) },
    DIRECTORIES: { getByName: (tenant) => env.DIRECTORIES.getByName(name + tenant) },
  });
  const touched = new Set<string>();
  return {
    objects: {
      conversation(id) {
        touched.add(id);
        return objects.conversation(id);
      },
      directory: objects.directory,
    },
    async told() {
      await Promise.all([...touched].map((id) => objects.conversation(id).told()));
    },
  };
}

/** A ledger in a store, with a directory that is asked only when it lags no more. */
export function durableLedger({ objects, told }: DurableStore): Ledger & Directory {
  const directory = createDurableDirectories(objects);
  const list: Pick<Directory, 'list' | 'oldest' | 'tenants' | 'resolve'> = {
    list: (...args) => told().then(() => directory.list(...args)),
    oldest: (...args) => told().then(() => directory.oldest(...args)),
    tenants: () => told().then(() => directory.tenants()),
    resolve: (...args) => told().then(() => directory.resolve(...args)),
  };
  return { ...createDurableLedger(objects), ...directory, ...list };
}

export async function durableHarness(clock: Clock): Promise<LedgerHarness> {
  const store = createStore();
  setClock(clock);
  return {
    ledger: durableLedger(store),
    async reopen() {
      await store.told();
      await abortAllDurableObjects();
      return durableLedger(store);
    },
    dispose: () => store.told(),
  };
}
