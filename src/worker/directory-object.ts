import { DurableObject, type DurableObjectState } from 'cloudflare:workers';
import { SpillwayError } from '../core/errors.js';
import type { Clock, ConversationEntry, ConversationKey } from '../core/ports.js';
import { defectOf } from '../http/errors.js';
import { unwrap, type Answer } from '../ledger/durable-answer.js';
import {
  DurableDirectory,
  type DirectoryArguments,
  type DirectoryMethod,
  type DirectoryMethods,
  type DirectoryResults,
} from '../ledger/durable-directory.js';
import { createDurableLedger } from '../ledger/durable-ledger.js';
import { sweep, type RetentionLimits, type Sweep } from '../proxy/retention.js';
import { ALL_TENANTS, objectsOf, type Bindings } from './bindings.js';
import { createLog, type Log } from './log.js';
import { readWorkerConfig } from './worker-config.js';

const HOUR_MS = 60 * 60_000;
const MINUTE_MS = 60_000;

/** Each costs calls to other objects, of which one run of an alarm has a thousand. */
const MOST_ERASED_AT_ONCE = 100;

const logFrom = (least: Parameters<typeof createLog>[0]): Log => createLog(least, (line) => console.log(line));

/**
 * The Durable Object of a tenant's directory, which also erases what that tenant keeps too long (SPEC 2.6), or of the directory of all
 * tenants.
 */
export class DirectoryObject extends DurableObject<Bindings> implements DirectoryMethods {
  readonly #directory: DurableDirectory;

  constructor(state: DurableObjectState, bindings: Bindings, clock: Clock = () => Date.now()) {
    super(state, bindings);
    this.#directory = new DurableDirectory(state.storage, clock);
  }

  ask<M extends DirectoryMethod>(method: M, args: DirectoryArguments[M]): Promise<Answer<DirectoryResults[M]>> {
    return this.#directory.ask(method, args);
  }

  async note(entry: ConversationEntry): Promise<void> {
    await this.#directory.note(entry);
    if (this.ctx.id.name !== ALL_TENANTS && (await this.ctx.storage.getAlarm()) === null) {
      await this.ctx.storage.setAlarm(Date.now() + HOUR_MS);
    }
  }

  forget(conversation: ConversationKey, nodes: readonly string[] | null): Promise<void> {
    return this.#directory.forget(conversation, nodes);
  }

  /** One sweep; the next one when there will be something to erase again. */
  async alarm(): Promise<void> {
    let log = logFrom('error');
    let nextAt: number | null = Date.now() + HOUR_MS;
    try {
      const { retention, logLevel } = readWorkerConfig(this.env);
      log = logFrom(logLevel);
      const swept = await this.#sweep(retention);
      if (swept.conversations > 0) log.info(swept, 'erased by retention');
      nextAt = await this.#nextSweepAt(retention, swept);
    } catch (error) {
      // An alarm that fails too often is given up, and nothing would ever be erased here again.
      if (error instanceof SpillwayError) log.error({ code: error.code }, 'retention failed');
      else log.error(defectOf(error), 'defect');
    }
    if (nextAt !== null) await this.ctx.storage.setAlarm(nextAt);
  }

  #sweep(limits: RetentionLimits): Promise<Sweep> {
    const enough = new AbortController();
    let offered = 0;
    const own = {
      oldest: (_: string | null, limit: number) => unwrap(this.#directory.ask('oldest', [null, limit])),
      tenants: () => unwrap(this.#directory.ask('tenants', [])),
    };
    return sweep(
      {
        ledger: createDurableLedger(objectsOf(this.env)),
        directory: own,
        limits,
        onErased: () => undefined,
        pause: async () => {
          offered += 1;
          if (offered >= MOST_ERASED_AT_ONCE) enough.abort();
        },
        stopped: enough.signal,
      },
      Date.now(),
    );
  }

  /** Null: when a conversation is written next. */
  async #nextSweepAt({ keepMs, tenantBytes }: RetentionLimits, last: Sweep): Promise<number | null> {
    const now = Date.now();
    if (last.conversations >= MOST_ERASED_AT_ONCE) return now + MINUTE_MS;
    const [oldest] = await unwrap(this.#directory.ask('oldest', [null, 1]));
    if (oldest === undefined) return null;
    if (tenantBytes !== null) return now + HOUR_MS;
    return keepMs === null ? null : Math.max(now + HOUR_MS, oldest.usedAt + keepMs);
  }
}
