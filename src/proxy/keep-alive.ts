import type { Clock, UniqueId } from '../core/ports.js';
import { createBeginning } from '../sse/beginning.js';
import type { Beginning } from '../sse/beginning.js';
import { createSseRewriter } from '../sse/rewrite.js';
import type { SseRewriter } from '../sse/rewrite.js';
import type { HeaderPair } from '../upstream/headers.js';
import { concatenate } from './read-whole.js';
import type { Sink } from './sink.js';
import type { Turn } from './turn.js';

/** What a waiting client is sent, in its dialect. */
export interface SignsOfLife {
  /** Counted by real clients as life and ignored as content (SPEC 6.6); `sent`: how many it got before. */
  keepAlive(sent: number): string;
  /** How the data of a stream's events goes on behind them, see `Dialect.resume`. */
  resume(sent: number): ((data: string) => string | null) | null;
  /** A whole reply as a stream; null if the body is none. */
  streamOf(body: string): string | null;
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

/** What came as no event stream after a stream has begun: it cannot go on as it is. */
interface Misfit {
  readonly status: number;
  readonly chunks: Uint8Array[];
  readonly judge: (chunk: Uint8Array) => Beginning;
}

/**
 * Wraps a sink. Nothing is sent before the grace is over, so that fast work keeps plain HTTP semantics; once a sign of life has begun the
 * response, whatever is no event stream arrives in it as one: a whole reply in the dialect's chunks, anything else as its error (SPEC
 * 6.6).
 */
export function createPatientSink(sink: Sink, intervalMs: number): PatientSink {
  let signs: SignsOfLife | null = null;
  let timer: ReturnType<typeof setInterval> | undefined;
  let sent = 0;
  let rewriter: SseRewriter | null = null;
  let misfit: Misfit | null = null;

  const rest = (): void => clearInterval(timer);
  const beat = (): void => {
    if (signs === null || sink.closed.aborted) return rest();
    if (sent === 0) sink.start(200, [['content-type', 'text/event-stream; charset=utf-8'], ...signs.headers]);
    // A client that reads too slowly for this needs no sign of life.
    void sink.write(new TextEncoder().encode(signs.keepAlive(sent++)));
  };
  const wait = (): void => {
    timer = setInterval(beat, intervalMs);
  };
  /** Once a stream has begun: what comes of the one that was waited for. */
  const goOn = (): void => {
    const resume = signs?.resume(sent) ?? null;
    rewriter = resume === null ? null : createSseRewriter(resume);
  };
  const pass = async (chunks: readonly Uint8Array[]): Promise<void> => {
    if (chunks.length > 0) await sink.write(concatenate(chunks));
  };
  const passOn = (chunk: Uint8Array): Promise<void> => pass(rewriter === null ? [chunk] : rewriter.push(chunk));
  return {
    closed: sink.closed,
    async waitFor(work, given) {
      if (given === null || intervalMs === 0) return work;
      signs = given;
      wait();
      try {
        return await work;
      } finally {
        rest();
      }
    },
    start(status, headers) {
      if (sent === 0) return sink.start(status, headers);
      if (status < 400 && isEventStream(headers)) return goOn();
      misfit = { status, chunks: [], judge: createBeginning() };
      // It may take as long as a summary.
      wait();
    },
    async write(chunk) {
      if (misfit === null) return passOn(chunk);
      misfit.chunks.push(chunk);
      if (misfit.status >= 400 || misfit.judge(chunk) !== 'events') return;
      // An event stream that was not called one.
      const held = concatenate(misfit.chunks);
      misfit = null;
      rest();
      goOn();
      await passOn(held);
    },
    async end() {
      rest();
      if (misfit !== null && signs !== null) {
        const body = new TextDecoder().decode(concatenate(misfit.chunks));
        const stream = misfit.status < 400 ? signs.streamOf(body) : null;
        goOn();
        await passOn(new TextEncoder().encode(stream ?? signs.streamError(body)));
      }
      await pass(rewriter?.end() ?? []);
      await sink.end();
    },
    abort() {
      rest();
      sink.abort();
    },
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
  const own = { model: read.model, id: deps.uniqueId(), createdAt: deps.clock() };
  return {
    keepAlive: (sent) => dialect.keepAlive(own, sent),
    resume: (sent) => dialect.resume(sent),
    streamOf: (body) => dialect.streamOf(body, { includesUsage: read.includesUsage }),
    streamError: (body) => dialect.streamError(body, own),
    headers: [
      ['x-spillway-conversation', conversation.id],
      ['x-spillway-head', spine.at(-1)?.id ?? ''],
    ],
  };
}
