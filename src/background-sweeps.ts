import { setTimeout as wait } from 'node:timers/promises';
import type { RetentionDeps, Sweep } from './proxy/retention.js';

export interface BackgroundSweeps {
  sweep(around: Pick<RetentionDeps, 'pause' | 'stopped'>): Promise<Sweep>;
  /** Told of each sweep that came to its end. */
  onSwept(sweep: Sweep): void;
  /** Told of each that failed; the next one tries again. */
  onFailed(error: unknown): void;
}

const FIRST_MS = 60_000;
const EVERY_MS = 60 * 60_000;
/** Between two conversations. */
const PAUSE_MS = 20;

/**
 * Sweeps a store about once an hour, for the first time about a minute after the start, each time a little earlier or later so that
 * processes on one store do not meet. What it returns ends that, and resolves when nothing is swept any more.
 */
export function startSweeping({ sweep, onSwept, onFailed }: BackgroundSweeps): () => Promise<void> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  const schedule = (aboutMs: number): void => {
    if (stop.signal.aborted) return;
    timer = setTimeout(run, aboutMs * (0.5 + Math.random()));
    // It keeps no process alive.
    timer.unref();
  };
  const run = (): void => {
    const pause = (): Promise<void> => wait(PAUSE_MS);
    running = sweep({ pause, stopped: stop.signal })
      .then(onSwept, onFailed)
      .then(() => schedule(EVERY_MS));
  };
  schedule(FIRST_MS);
  return () => {
    stop.abort();
    clearTimeout(timer);
    return running;
  };
}
