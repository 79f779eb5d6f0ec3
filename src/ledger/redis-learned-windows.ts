import { z } from 'zod';
import type { Clock } from '../core/ports.js';
import { narrower, widened, type LearnedWindow, type WindowKey } from '../core/windows.js';
import * as scripts from './redis-directory-scripts.js';
import { textsAt, unexpected } from './redis-reply.js';
import type { Fields, RedisScript } from './redis-script.js';

const windowSchema = z.strictObject({
  tenant: z.string(),
  upstream: z.string(),
  model: z.string(),
  tokens: z.number(),
  source: z.enum(['stated', 'usage', 'success']),
  rule: z.string(),
  learnedAt: z.number(),
  expiresAt: z.number(),
}) satisfies z.ZodType<LearnedWindow>;

/** Runs a script on a tenant's directory. */
export type RunOnDirectory = (tenant: string, script: RedisScript, fields: Fields) => Promise<readonly unknown[]>;

/** Others may write at the same moment; so often they do not. */
const MOST_ATTEMPTS = 20;

/** The learned windows of all processes, one hash for each tenant (SPEC 6.5). */
export class RedisLearnedWindows {
  readonly #run: RunOnDirectory;
  readonly #clock: Clock;

  constructor(run: RunOnDirectory, clock: Clock) {
    this.#run = run;
    this.#clock = clock;
  }

  async list(tenants: readonly string[], limit: number): Promise<readonly LearnedWindow[]> {
    const now = this.#clock();
    const replies = await Promise.all(tenants.map((tenant) => this.#run(tenant, scripts.readWindows, { now })));
    return replies
      .flatMap((reply) => textsAt(reply, 1).map(windowOf))
      .toSorted((a, b) => b.learnedAt - a.learnedAt || (fullKeyOf(a) < fullKeyOf(b) ? -1 : 1))
      .slice(0, limit);
  }

  learn(window: LearnedWindow): Promise<void> {
    return this.#change(window, (known) => narrower(known, window, this.#clock()));
  }

  widen(key: WindowKey, tokens: number): Promise<void> {
    const now = this.#clock();
    return this.#change(key, (known) =>
      known === null || known.expiresAt <= now ? null : widened(known, tokens, now),
    );
  }

  async forget(key: WindowKey): Promise<boolean> {
    const fields = { key: fieldOf(key), now: this.#clock() };
    return (await this.#run(key.tenant, scripts.forgetWindow, fields))[0] === 'forgotten';
  }

  async forgetAll(tenant: string): Promise<void> {
    await this.#run(tenant, scripts.forgetWindows, {});
  }

  /** Puts what `next` makes of the window there in its place; nothing if that is null or the same. */
  async #change(of: WindowKey, next: (known: LearnedWindow | null) => LearnedWindow | null): Promise<void> {
    const key = fieldOf(of);
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      const before = textsAt(await this.#run(of.tenant, scripts.readWindow, { key }), 1)[0] ?? null;
      const known = before === null ? null : windowOf(before.slice(before.indexOf(' ') + 1));
      const fresh = next(known);
      if (fresh === null || fresh === known) return;
      const fields = { key, before, after: `${fresh.expiresAt} ${JSON.stringify(fresh)}` };
      if ((await this.#run(of.tenant, scripts.replaceWindow, fields))[0] === 'replaced') return;
    }
    throw unexpected();
  }
}

function fieldOf({ upstream, model }: WindowKey): string {
  return JSON.stringify([upstream, model]);
}

function fullKeyOf({ tenant, upstream, model }: WindowKey): string {
  return JSON.stringify([tenant, upstream, model]);
}

function windowOf(json: string): LearnedWindow {
  try {
    return windowSchema.parse(JSON.parse(json));
  } catch {
    throw unexpected();
  }
}
