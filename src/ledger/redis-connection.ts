import { setTimeout as sleep } from 'node:timers/promises';
import { SpillwayError } from '../core/errors.js';
import type { RedisAddress } from './redis-address.js';
import { redisClient, type RedisClient } from './redis-client.js';
import { isAnswer, isLasting, isPassing, reasonOf, redisUnavailable } from './redis-failure.js';

export interface RedisConnectionOptions {
  readonly address: RedisAddress;
  /** Longest that an operation takes, whatever happens to the connection meanwhile; then the store is unavailable. */
  readonly timeoutMs: number;
}

/** After a failure nobody waits for Redis again this long, nor then, before one operation has found it back. */
const PAUSE_MS = 500;
const FIRST_RETRY_MS = 25;

/**
 * A connection that outlives restarts and failovers. An operation is tried again while its time lasts, so it must do nothing
 * twice when it is sent twice: the answer to the first may be what got lost. All failures are
 * `SpillwayError('store_unavailable')`.
 */
export class RedisConnection {
  readonly #client: RedisClient;
  readonly #timeoutMs: number;
  /** One node of a Cluster that is away says nothing of the others, so that there every operation tries for itself. */
  readonly #isOne: boolean;
  /** What the connection last complained of: the reason, where a command only learns that there is no connection. */
  #complaint: unknown = null;
  #pauseUntilMs = 0;
  #isProbing = false;
  #isClosed = false;

  constructor({ address, timeoutMs }: RedisConnectionOptions) {
    this.#client = redisClient(address, timeoutMs);
    this.#timeoutMs = timeoutMs;
    this.#isOne = address.kind.name !== 'cluster';
    const complain = (error: unknown): void => void (this.#complaint = reasonOf(error));
    this.#client.on('error', complain);
    this.#client.on('node error', complain);
    this.#client.on('ready', () => {
      this.#complaint = null;
      this.#pauseUntilMs = 0;
    });
  }

  /** Waits for a first answer; rejects at once for what waiting does not mend: a refused password, a wrong kind of Redis. */
  async connect(waitMs: number): Promise<void> {
    const deadlineMs = performance.now() + waitMs;
    // The client goes on connecting by itself after a first failure, whose reason the next look shows.
    await this.#once((client) => client.connect(), this.#timeoutMs).catch(
      (error: unknown) => (this.#complaint ??= error),
    );
    for (;;) {
      try {
        await this.#once((client) => client.ping(), this.#timeoutMs);
        return;
      } catch (error) {
        const isHopeless = isLasting(error) || isLasting(this.#complaint);
        if (isHopeless || performance.now() >= deadlineMs) throw redisUnavailable(error, this.#complaint);
      }
      await sleep(50);
    }
  }

  async send<T>(command: (client: RedisClient) => Promise<T>): Promise<T> {
    const { isProbe } = this.#admit();
    const deadlineMs = performance.now() + this.#timeoutMs;
    try {
      for (let pauseMs = FIRST_RETRY_MS; ; pauseMs *= 2) {
        try {
          const answer = await this.#once(command, deadlineMs - performance.now());
          this.#pauseUntilMs = 0;
          return answer;
        } catch (error) {
          const mayPass = isPassing(error) && !isProbe && performance.now() + pauseMs < deadlineMs && !this.#isClosed;
          if (!mayPass) throw error;
        }
        await sleep(pauseMs);
      }
    } catch (error) {
      if (!isAnswer(error)) this.#pauseUntilMs = performance.now() + PAUSE_MS;
      throw redisUnavailable(error, this.#complaint);
    } finally {
      if (isProbe) this.#isProbing = false;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#client.disconnect();
  }

  /** While Redis is known to be away operations fail at once, but for one now and then that looks for it. */
  #admit(): { readonly isProbe: boolean } {
    if (this.#isClosed) throw new SpillwayError('store_unavailable', 'The store is closed.');
    if (!this.#isOne || this.#pauseUntilMs === 0) return { isProbe: false };
    if (this.#isProbing || performance.now() < this.#pauseUntilMs) throw redisUnavailable(null, this.#complaint);
    this.#isProbing = true;
    return { isProbe: true };
  }

  async #once<T>(command: (client: RedisClient) => Promise<T>, timeoutMs: number): Promise<T> {
    const timer = new AbortController();
    const tooLate = sleep(Math.max(1, timeoutMs), undefined, { signal: timer.signal }).then(() => {
      throw new SpillwayError('store_unavailable', `Redis did not answer within ${Math.ceil(this.#timeoutMs)} ms.`);
    });
    tooLate.catch(() => undefined);
    try {
      return await Promise.race([command(this.#client), tooLate]);
    } finally {
      timer.abort();
    }
  }
}
