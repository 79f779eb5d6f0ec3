import type { Clock, UniqueId } from '../core/ports.js';
import type { HeaderPair } from '../upstream/headers.js';
import { concatenate } from './read-whole.js';
import type { Sink } from './sink.js';
import type { Turn } from './turn.js';

/** What a waiting client is sent, in its dialect. */
export interface SignsOfLife {
  /** Counted by real clients as life and ignored as content (SPEC 6.6). */
  readonly keepAlive: string;
  /** An error body inside a stream that has begun. */
  streamError(body: string): string;
  /** Headers of the response, if a sign of life has to begin it. */
  readonly headers: readonly HeaderPair[];
}

/** A sink that can keep its client waiting without losing it. */
export interface PatientSink extends Sink {
  /**
   * Waits for work, and sends signs of life meanwhile, the first after one interval of grace. Null signs: the client does not
   * stream, and is sent none.
   */
  waitFor<T>(work: Promise<T>, signs: SignsOfLife | null): Promise<T>;
}

/**
 * Wraps a sink. Nothing is sent before the grace is over, so that fast work keeps plain HTTP semantics; once a sign of life has begun the
 * response, whatever is no event stream arrives in it as the dialect's error (SPEC 6.6).
 */
export function createPatientSink(sink: Sink, intervalMs: number): PatientSink {
  let signs: SignsOfLife | null = null;
  let timer: ReturnType<typeof setInterval> | undefined;
  let begun = false;
  /** What may not be sent as it is, because the stream has begun: gathered, and sent as one error at the end. */
  let gathered: Uint8Array[] | null = null;

  const rest = (): void => clearInterval(timer);
  const beat = (): void => {
    if (signs === null || sink.closed.aborted) return rest();
    if (!begun) sink.start(200, [['content-type', 'text/event-stream; charset=utf-8'], ...signs.headers]);
    begun = true;
    // A client that reads too slowly for this needs no sign of life.
    void sink.write(new TextEncoder().encode(signs.keepAlive));
  };
  return {
    closed: sink.closed,
    async waitFor(work, given) {
      if (given === null || intervalMs === 0) return work;
      signs = given;
      timer = setInterval(beat, intervalMs);
      try {
        return await work;
      } finally {
        rest();
      }
    },
    start(status, headers) {
      if (!begun) sink.start(status, headers);
      else if (status >= 400 || !isEventStream(headers)) gathered = [];
    },
    async write(chunk) {
      if (gathered === null) return sink.write(chunk);
      gathered.push(chunk);
    },
    async end() {
      if (gathered !== null && signs !== null) {
        await sink.write(new TextEncoder().encode(signs.streamError(new TextDecoder().decode(concatenate(gathered)))));
      }
      await sink.end();
    },
    abort: () => sink.abort(),
  };
}

function isEventStream(headers: readonly HeaderPair[]): boolean {
  return headers.some(
    ([name, value]) => name === 'content-type' && value.toLowerCase().startsWith('text/event-stream'),
  );
}

/** What a turn's client is sent while it waits; null if it does not stream. */
export function signsOfLife(
  turn: Turn,
  deps: { readonly uniqueId: UniqueId; readonly clock: Clock },
): SignsOfLife | null {
  const { dialect, conversation, spine, read } = turn;
  if (!read.stream) return null;
  return {
    keepAlive: dialect.keepAlive({ model: read.model, id: deps.uniqueId(), createdAt: deps.clock() }),
    streamError: (body) => dialect.streamError(body),
    headers: [
      ['x-spillway-conversation', conversation.id],
      ['x-spillway-head', spine.at(-1)?.id ?? ''],
    ],
  };
}
