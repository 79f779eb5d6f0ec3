/** Counts what happens, so that a test can do something at the nth of a kind and not at a time. */
export class Milestones<Kind extends string> {
  readonly #counts = new Map<Kind, number>();
  #waiting: readonly { readonly kind: Kind; readonly count: number; reach(): void }[] = [];

  count(kind: Kind): number {
    return this.#counts.get(kind) ?? 0;
  }

  note(kind: Kind): void {
    const count = this.count(kind) + 1;
    this.#counts.set(kind, count);
    const reached = this.#waiting.filter((one) => one.kind === kind && one.count <= count);
    this.#waiting = this.#waiting.filter((one) => !reached.includes(one));
    for (const one of reached) one.reach();
  }

  /** Resolves at the `count`th, also if it was before. */
  reached(kind: Kind, count: number): Promise<void> {
    if (this.count(kind) >= count) return Promise.resolve();
    return new Promise((reach) => {
      this.#waiting = [...this.#waiting, { kind, count, reach }];
    });
  }
}
