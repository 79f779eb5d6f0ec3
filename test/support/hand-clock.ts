import { setImmediate as nextRound } from 'node:timers/promises';
import type { Sleep } from '../../src/proxy/sleep.js';

/** Time that only passes when a test says so. */
export class HandClock {
  #now = 0;
  #sleepers: { readonly until: number; wake(): void }[] = [];

  readonly now = (): number => this.#now;

  /** How long those who sleep will do so yet, shortest first. */
  get waits(): readonly number[] {
    return this.#sleepers.map(({ until }) => until - this.#now).toSorted((a, b) => a - b);
  }

  readonly sleep: Sleep = (durationMs, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const wake = (): void => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { until: this.#now + durationMs, wake };
      this.#sleepers.push(sleeper);
      signal.addEventListener('abort', wake);
    });

  /** Lets time pass: whoever wakes has come as far as it gets before the next one does. */
  async pass(durationMs: number): Promise<void> {
    const end = this.#now + durationMs;
    for (;;) {
      await nextRound();
      const next = this.#sleepers.toSorted((a, b) => a.until - b.until)[0];
      if (next === undefined || next.until > end) break;
      this.#now = next.until;
      next.wake();
    }
    this.#now = end;
    await nextRound();
  }
}
