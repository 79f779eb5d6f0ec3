const HIGH_WATER_BYTES = 64 * 1024;

/** How a queue acts on the source that fills it. */
export interface BodyFlow {
  pause(): void;
  resume(): void;
  /** The reader left before the end. */
  stop(): void;
}

interface Waiter {
  readonly resolve: (result: IteratorResult<Uint8Array, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

type Ending = { readonly kind: 'end' } | { readonly kind: 'error'; readonly error: unknown };

/**
 * A body between a source that pushes and one reader that pulls. Written out rather than as a generator, so that leaving
 * takes effect at once: before the first read, and while a read is pending.
 */
export class BodyQueue implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #flow: BodyFlow;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #paused = false;
  readonly #waiters: Waiter[] = [];
  #ending: Ending | null = null;

  constructor(flow: BodyFlow) {
    this.#flow = flow;
  }

  push(chunk: Uint8Array): void {
    const waiter = this.#waiters.shift();
    if (waiter) {
      waiter.resolve({ done: false, value: chunk });
      return;
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < HIGH_WATER_BYTES || this.#paused) return;
    this.#paused = true;
    this.#flow.pause();
  }

  /** What was pushed can still be read. */
  end(): void {
    this.#finish({ kind: 'end' });
  }

  /** What was pushed can still be read, then the reader gets `error`. */
  fail(error: unknown): void {
    this.#finish({ kind: 'error', error });
  }

  /** The next read gets `error`, whatever was pushed. */
  abort(error: unknown): void {
    this.#drop();
    this.#finish({ kind: 'error', error });
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const chunk = this.#chunks.shift();
    if (chunk) {
      this.#bytes -= chunk.length;
      if (this.#paused && this.#bytes === 0) {
        this.#paused = false;
        this.#flow.resume();
      }
      return Promise.resolve({ done: false, value: chunk });
    }
    const ending = this.#ending;
    if (!ending) return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
    // An error is told once; whoever reads on finds the end.
    this.#ending = { kind: 'end' };
    return ending.kind === 'end' ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(ending.error);
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#drop();
    if (!this.#ending) {
      this.#flow.stop();
      this.end();
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #finish(ending: Ending): void {
    if (this.#ending) return;
    this.#ending = ending;
    // Only the first waiter can be told of an error; those behind it find the end.
    for (const waiter of this.#waiters.splice(0)) void this.next().then(waiter.resolve, waiter.reject);
  }

  #drop(): void {
    this.#chunks = [];
    this.#bytes = 0;
  }
}
