import { SpillwayError } from '../../src/core/errors.js';
import type { Clock, ConversationKey, SharedCache } from '../../src/core/ports.js';

/** A shared cache in memory that notes what is asked of it. */
export class MemoryCache implements SharedCache {
  readonly asked: string[] = [];
  /** While set, it answers nothing. */
  isDown = false;
  readonly #values = new Map<string, { readonly value: string; readonly expiresAt: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock = Date.now) {
    this.#clock = clock;
  }

  /** Fields there now, with their values. */
  get values(): ReadonlyMap<string, string> {
    const now = this.#clock();
    return new Map(
      [...this.#values].flatMap(([key, { value, expiresAt }]) => (expiresAt > now ? [[key, value] as const] : [])),
    );
  }

  async get(conversation: ConversationKey, field: string): Promise<string | null> {
    this.#ask('get');
    return this.values.get(keyOf(conversation, field)) ?? null;
  }

  async set(conversation: ConversationKey, field: string, value: string, durationMs: number): Promise<void> {
    this.#ask('set');
    this.#values.set(keyOf(conversation, field), { value, expiresAt: this.#clock() + durationMs });
  }

  async delete(conversation: ConversationKey, field: string): Promise<void> {
    this.#ask('delete');
    this.#values.delete(keyOf(conversation, field));
  }

  #ask(what: string): void {
    this.asked.push(what);
    if (this.isDown) throw new SpillwayError('store_unavailable', 'The cache is down.');
  }
}

function keyOf({ tenant, id }: ConversationKey, field: string): string {
  return JSON.stringify([tenant, id, field]);
}
