/** Notes sent at once. */
const BATCH = 32;
/** Notes kept while the store is away; older ones are dropped, for a later use of their conversation writes them again. */
const MOST_NOTES = 10_000;

/**
 * What the directory has to be told, in the background and the newest of a conversation only: a turn waits for its own
 * conversation and for nothing else (SPEC 2.7).
 */
export class RedisNotes<N> {
  readonly #send: (note: N) => Promise<unknown>;
  readonly #waiting = new Map<string, N>();
  #sending: Promise<void> | null = null;

  constructor(send: (note: N) => Promise<unknown>) {
    this.#send = send;
  }

  /** Replaces an earlier note of that name which has not been sent yet. */
  put(name: string, note: N): void {
    this.#waiting.delete(name);
    this.#waiting.set(name, note);
    for (const [oldest] of this.#waiting) {
      if (this.#waiting.size <= MOST_NOTES) break;
      this.#waiting.delete(oldest);
    }
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = null));
  }

  /** Resolves when all that was put before is sent, or the store failed. */
  async settled(): Promise<void> {
    await this.#sending;
  }

  /** Ends at the first failure: what is left goes out with the next note. */
  async #sendAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, BATCH);
      const failed = await Promise.all(
        batch.map(async ([name, note]) => {
          this.#waiting.delete(name);
          try {
            await this.#send(note);
            return false;
          } catch {
            if (!this.#waiting.has(name)) this.#waiting.set(name, note);
            return true;
          }
        }),
      );
      if (failed.includes(true)) return;
    }
  }
}
