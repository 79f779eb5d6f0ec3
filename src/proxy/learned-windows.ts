import type { Clock, Directory } from '../core/ports.js';
import { narrower, widened } from '../core/windows.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';

/**
 * The learned windows of the tenants that are served here (SPEC 6.5). Each tenant's are read from the store once and then
 * again beside a request, never in its way; what is learned here holds at once. A store that fails costs what it knew.
 */
export interface LearnedWindows {
  /** Waits for the store only at the first request of a tenant. */
  of(key: WindowKey): Promise<LearnedWindow | null>;
  learn(window: LearnedWindow): void;
  /** Raises what is known of a key, if that is less. */
  widen(key: WindowKey, tokens: number): void;
  /** False if there was none. Rejects as the store does. */
  forget(key: WindowKey): Promise<boolean>;
  /** Forgets all of a tenant's. Rejects as the store does. */
  forgetTenant(tenant: string): Promise<void>;
  /** Resolves when nothing is being read or written any more. */
  drain(): Promise<void>;
}

/** How long another instance's lesson may take to be heard of. */
const FRESH_MS = 30_000;
/** Least lately used go first. */
const MOST_TENANTS = 1_000;
const MOST_WINDOWS = 1_000;

interface Shelf {
  windows: Map<string, LearnedWindow>;
  readAt: number;
  reading: Promise<void> | null;
  /** Grows with each change made here, so that a reading that began before one is not taken for the newer. */
  changes: number;
}

export function createLearnedWindows(
  directory: Pick<Directory, 'learnedWindows' | 'learnWindow' | 'widenWindow' | 'forgetWindow' | 'forgetWindows'>,
  clock: Clock,
): LearnedWindows {
  const shelves = new Map<string, Shelf>();
  const pending = new Set<Promise<unknown>>();

  const beside = (work: Promise<unknown>): void => {
    const settled = work.catch(() => undefined).finally(() => pending.delete(settled));
    pending.add(settled);
  };
  const read = async (tenant: string, shelf: Shelf): Promise<void> => {
    const { changes } = shelf;
    try {
      const windows = await directory.learnedWindows(tenant, MOST_WINDOWS);
      if (shelf.changes === changes) shelf.windows = new Map(windows.map((window) => [keyOf(window), window]));
    } finally {
      shelf.readAt = clock();
      shelf.reading = null;
    }
  };
  const shelfOf = (tenant: string): Shelf => {
    const shelf = shelves.get(tenant) ?? { windows: new Map(), readAt: -Infinity, reading: null, changes: 0 };
    shelves.delete(tenant);
    shelves.set(tenant, shelf);
    const [oldest] = shelves.keys();
    if (shelves.size > MOST_TENANTS && oldest !== undefined) shelves.delete(oldest);
    return shelf;
  };
  const known = (shelf: Shelf, key: WindowKey): LearnedWindow | null => {
    const window = shelf.windows.get(keyOf(key));
    return window !== undefined && window.expiresAt > clock() ? window : null;
  };
  const change = (shelf: Shelf, window: LearnedWindow): void => {
    shelf.changes += 1;
    shelf.windows.set(keyOf(window), window);
  };
  return {
    async of(key) {
      const shelf = shelfOf(key.tenant);
      if (clock() - shelf.readAt >= FRESH_MS && shelf.reading === null) {
        shelf.reading = read(key.tenant, shelf);
        beside(shelf.reading);
      }
      if (shelf.readAt === -Infinity) await shelf.reading?.catch(() => undefined);
      return known(shelf, key);
    },
    learn(window) {
      const shelf = shelfOf(window.tenant);
      const kept = narrower(known(shelf, window), window, clock());
      if (kept === window) change(shelf, window);
      beside(directory.learnWindow(window));
    },
    widen(key, tokens) {
      const shelf = shelfOf(key.tenant);
      const window = known(shelf, key);
      if (window === null || window.tokens >= tokens) return;
      change(shelf, widened(window, tokens, clock()));
      beside(directory.widenWindow(key, tokens));
    },
    async forget(key) {
      const shelf = shelfOf(key.tenant);
      shelf.changes += 1;
      shelf.windows.delete(keyOf(key));
      return directory.forgetWindow(key);
    },
    async forgetTenant(tenant) {
      const shelf = shelfOf(tenant);
      shelf.changes += 1;
      shelf.windows.clear();
      return directory.forgetWindows(tenant);
    },
    async drain() {
      while (pending.size > 0) await Promise.all(pending);
    },
  };
}

function keyOf({ upstream, model }: WindowKey): string {
  return JSON.stringify([upstream, model]);
}
