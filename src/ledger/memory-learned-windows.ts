import { narrower, widened } from '../core/windows.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';

/** The learned windows in memory (SPEC 6.5): the reference for other drivers. */
export class MemoryLearnedWindows {
  readonly #windows = new Map<string, LearnedWindow>();

  list(tenant: string | null, limit: number, now: number): readonly LearnedWindow[] {
    return [...this.#windows]
      .filter(([, window]) => window.expiresAt > now && (tenant === null || window.tenant === tenant))
      .toSorted(([keyA, a], [keyB, b]) => b.learnedAt - a.learnedAt || (keyA < keyB ? -1 : 1))
      .slice(0, limit)
      .map(([, window]) => window);
  }

  learn(window: LearnedWindow, now: number): void {
    const key = keyOf(window);
    this.#windows.set(key, narrower(this.#windows.get(key) ?? null, window, now));
  }

  widen(of: WindowKey, tokens: number, now: number): void {
    const known = this.#windows.get(keyOf(of));
    if (known !== undefined && known.expiresAt > now) this.#windows.set(keyOf(of), widened(known, tokens, now));
  }

  forget(of: WindowKey, now: number): boolean {
    const known = this.#windows.get(keyOf(of));
    this.#windows.delete(keyOf(of));
    return known !== undefined && known.expiresAt > now;
  }

  forgetAll(tenant: string): void {
    for (const [key, window] of this.#windows) if (window.tenant === tenant) this.#windows.delete(key);
  }
}

function keyOf({ tenant, upstream, model }: WindowKey): string {
  return JSON.stringify([tenant, upstream, model]);
}
