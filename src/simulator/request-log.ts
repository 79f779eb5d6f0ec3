import type { GeneratedReply } from './generate.js';
import type { PrefixHit } from './prefix-cache.js';
import type { RequestKind } from './routed.js';

/** What became of a request. `aborted`: the client left before the answer was sent; `cut`: the script cut it short. */
export type RequestState = 'receiving' | 'answering' | 'answered' | 'cut' | 'aborted';

/** A request as it arrived and what it was answered; a live object, filled in as the exchange goes on. */
export interface RecordedRequest {
  /** Counts from 0 over all requests, those no longer kept included. */
  readonly index: number;
  readonly kind: RequestKind;
  readonly method: string;
  readonly path: string;
  /** With its `?`, or empty. */
  readonly query: string;
  /** Lower-case names; credentials are shortened to their last four characters. */
  readonly headers: Readonly<Record<string, string>>;
  /** Grows while the body arrives. */
  readonly bytesReceived: number;
  /** The body as received; empty until it is complete. */
  readonly bytes: Uint8Array;
  /** The body's JSON; undefined if it is none. */
  readonly body: unknown;
  /** JSON that holds all the model could read, what the provider itself held included; undefined if no model came to read it. */
  readonly reads?: unknown;
  /** What the model read, counted; null if it came to no counting. */
  readonly promptTokens: number | null;
  /** What of it the prompt cache had; null for all but chats that were answered. */
  readonly prefix: PrefixHit | null;
  readonly state: RequestState;
  /** Status that was, or was about to be, sent; null before an answer was chosen. */
  readonly status: number | null;
  /** What the model said; null for an error or another route. */
  readonly reply: GeneratedReply | null;
  /** Milliseconds since the epoch. */
  readonly arrivedAt: number;
  readonly endedAt: number | null;
}

export type MutableRecord = { -readonly [Key in keyof RecordedRequest]: RecordedRequest[Key] };

export interface RequestLog {
  /** Oldest first; at most `keep` of them. */
  readonly requests: readonly RecordedRequest[];
  add(record: Omit<RecordedRequest, 'index'>): MutableRecord;
  /** To be called after each change of a record. */
  changed(): void;
  waitFor(predicate: (request: RecordedRequest) => boolean, timeoutMs: number): Promise<RecordedRequest>;
  /** Rejects everyone who still waits. */
  close(): void;
}

interface Waiter {
  readonly look: () => void;
  readonly fail: (reason: string) => void;
}

/** A log that keeps the newest `keep` requests. */
export function createRequestLog(keep: number): RequestLog {
  const requests: RecordedRequest[] = [];
  const waiters = new Set<Waiter>();
  let count = 0;
  return {
    requests,
    add: (record) => {
      const added = { ...record, index: count };
      count += 1;
      requests.push(added);
      if (requests.length > keep) requests.shift();
      return added;
    },
    changed: () => {
      for (const waiter of waiters) waiter.look();
    },
    waitFor: (predicate, timeoutMs) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => waiter.fail(`no such request within ${timeoutMs} ms`), timeoutMs);
        const finish = () => {
          clearTimeout(timer);
          waiters.delete(waiter);
        };
        const waiter: Waiter = {
          look: () => {
            const found = requests.find(predicate);
            if (found === undefined) return;
            finish();
            resolve(found);
          },
          fail: (reason) => {
            finish();
            reject(new Error(`simulator: ${reason}; it saw ${count} requests`));
          },
        };
        waiters.add(waiter);
        waiter.look();
      }),
    close: () => {
      for (const waiter of waiters) waiter.fail('it was closed');
    },
  };
}
