import type { Dialect, Reply, Unread } from '../dialects/dialect.js';
import { createBeginning } from '../sse/beginning.js';
import type { Beginning } from '../sse/beginning.js';
import type { UpstreamRequest, UpstreamResponse, SendUpstream } from '../upstream/upstream.js';
import { concatenate } from './read-whole.js';
import { createStreamReader } from './stream-reader.js';
import type { StreamEvent, StreamReader } from './stream-reader.js';

/** Until the first content, this much or this long is held back, so that an overflow can still be retried (SPEC 6.3). */
const HOLD_BYTES = 256 * 1024;
const HOLD_MS = 5_000;

/** Most bytes of a body that is held whole; a longer one is passed on as it comes, unread. */
const WHOLE_LIMIT_BYTES = 32 * 1024 * 1024;

/** The upstream's answer, held as far as needed to judge it. Nothing of it has reached the client. */
export type Answer =
  | {
      readonly kind: 'whole';
      readonly response: UpstreamResponse;
      readonly bytes: Uint8Array;
      readonly text: string;
      /** Null for an error or a body that is no reply. */
      readonly reply: Reply | null;
    }
  | {
      readonly kind: 'stream';
      readonly response: UpstreamResponse;
      readonly held: readonly StreamEvent[];
      readonly reader: StreamReader;
      /** A read that was under way when the time to hold was up. */
      readonly pending: Promise<readonly StreamEvent[] | null> | null;
      /** What the stream said before any content, if that was an error; JSON text. */
      readonly earlyError: string | null;
    }
  | {
      /** Passed on as it comes, unread. */
      readonly kind: 'long';
      readonly response: UpstreamResponse;
      readonly body: AsyncIterable<Uint8Array>;
      readonly unread: Unread;
    }
  | {
      /**
       * Nothing but white space for as long as an answer is held (SPEC 6.3): some providers keep a connection alive with it, for
       * minutes, before they answer in JSON. It goes through as it comes; what follows can no longer be retried.
       */
      readonly kind: 'late';
      readonly response: UpstreamResponse;
      /** Ends before the first chunk that holds anything else. */
      readonly space: AsyncIterable<Uint8Array>;
      /** What follows, once `space` has ended. */
      rest(): Promise<Exclude<Answer, { readonly kind: 'late' }>>;
    };

interface Reading {
  readonly response: UpstreamResponse;
  readonly source: AsyncIterator<Uint8Array>;
  readonly dialect: Dialect;
  readonly choices: number;
}

/** Sends one request and holds the answer; rejects as `SendUpstream` does. */
export async function exchange(
  send: SendUpstream,
  request: UpstreamRequest,
  dialect: Dialect,
  choices: number,
): Promise<Answer> {
  const response = await send(request);
  // Asked for without one, and in one that cannot be undone.
  if (isEncoded(response)) return { kind: 'long', response, body: response.body, unread: 'encoded' };
  const reading = { response, source: response.body[Symbol.asyncIterator](), dialect, choices };
  if (response.status >= 400) return holdWhole(reading, []);
  return isEventStream(response) ? holdStream(reading, []) : holdByBeginning(reading);
}

function isEventStream(response: UpstreamResponse): boolean {
  return header(response, 'content-type').startsWith('text/event-stream');
}

function isEncoded(response: UpstreamResponse): boolean {
  return !['', 'identity'].includes(header(response, 'content-encoding'));
}

function header(response: UpstreamResponse, name: string): string {
  return (
    response.headers
      .find(([given]) => given === name)?.[1]
      .trim()
      .toLowerCase() ?? ''
  );
}

/** Some servers stream events as JSON, as bytes or as nothing in particular: what a body is, its beginning tells. */
async function holdByBeginning(reading: Reading): Promise<Answer> {
  const { source } = reading;
  const judge = createBeginning();
  const timer = startTimer(HOLD_MS);
  const held: Uint8Array[] = [];
  let heldBytes = 0;
  let isLate = false;
  try {
    for (;;) {
      const pending = source.next();
      let step = isLate ? await pending : await Promise.race([pending, timer.done]);
      if (step === 'time') {
        isLate = true;
        if (held.length > 0) return lateAnswer(reading, held, pending);
        // A client that gets nothing either way loses nothing by waiting.
        step = await pending;
      }
      if (step.done === true) return await holdWhole(reading, held);
      held.push(step.value);
      heldBytes += step.value.byteLength;
      const beginning = judge(step.value);
      if (beginning === 'events') return await holdStream(reading, held);
      if (beginning === 'other') return await holdWhole(reading, held);
      if (beginning === 'space' && (isLate || heldBytes >= HOLD_BYTES)) return lateAnswer(reading, held, null);
    }
  } finally {
    timer.stop();
  }
}

type Step = Promise<IteratorResult<Uint8Array, unknown>>;

function lateAnswer(reading: Reading, held: readonly Uint8Array[], pending: Step | null): Answer {
  const { response, source } = reading;
  const judge = createBeginning();
  const first: Uint8Array[] = [];
  let beginning: Beginning = 'space';
  /** The next chunk, unless it is white space: that is handed out. Null at the end. */
  const advance = async (next: Step): Promise<Uint8Array | null> => {
    const step = await next;
    if (step.done === true) return null;
    beginning = judge(step.value);
    if (beginning === 'space') return step.value;
    first.push(step.value);
    return null;
  };
  const isOpen = (): boolean => beginning === 'open';
  async function* space(): AsyncGenerator<Uint8Array> {
    yield* held;
    for (let chunk = await advance(pending ?? source.next()); chunk !== null; chunk = await advance(source.next())) {
      yield chunk;
    }
  }
  return {
    kind: 'late',
    response,
    space: space(),
    async rest() {
      for (let before = 0; isOpen() && first.length > before;) {
        before = first.length;
        await advance(source.next());
      }
      return beginning === 'events' ? holdStream(reading, first) : holdWhole(reading, first);
    },
  };
}

async function holdWhole(
  { response, source, dialect }: Reading,
  first: readonly Uint8Array[],
): Promise<Extract<Answer, { kind: 'whole' | 'long' }>> {
  const chunks = [...first];
  let length = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  for (let step = await source.next(); step.done !== true; step = await source.next()) {
    chunks.push(step.value);
    length += step.value.byteLength;
    if (length > WHOLE_LIMIT_BYTES) {
      return { kind: 'long', response, body: chain(chunks, source), unread: 'too_large' };
    }
  }
  const bytes = concatenate(chunks);
  const text = new TextDecoder().decode(bytes);
  return { kind: 'whole', response, bytes, text, reply: response.status === 200 ? readReply(text, dialect) : null };
}

/** Written out, because a generator that waits for its source cannot be left. */
function chain(first: readonly Uint8Array[], source: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  const waiting = [...first];
  const iterator: AsyncIterator<Uint8Array> = {
    next() {
      const chunk = waiting.shift();
      return chunk === undefined ? source.next() : Promise.resolve({ done: false, value: chunk });
    },
    async return() {
      await source.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

function readReply(text: string, dialect: Dialect): Reply | null {
  try {
    return dialect.readReply(JSON.parse(text));
  } catch {
    return null;
  }
}

async function holdStream(
  { response, source, dialect, choices }: Reading,
  first: readonly Uint8Array[],
): Promise<Extract<Answer, { kind: 'stream' }>> {
  const reader = createStreamReader(chain(first, source), dialect, choices);
  const held: StreamEvent[] = [];
  const timer = startTimer(HOLD_MS);
  let pending: Promise<readonly StreamEvent[] | null> | null = null;
  let earlyError: string | null = null;
  let heldBytes = 0;
  try {
    while (heldBytes < HOLD_BYTES) {
      pending ??= reader.next();
      const events = await Promise.race([pending, timer.done]);
      if (events === 'time') break;
      pending = null;
      if (events === null) break;
      held.push(...events);
      heldBytes += events.reduce((sum, event) => sum + event.bytes.byteLength, 0);
      const telling = events.find((event) => event.meaning.hasContent || event.meaning.hasError);
      if (telling === undefined) continue;
      if (telling.meaning.hasError) earlyError = telling.data;
      break;
    }
  } finally {
    timer.stop();
  }
  return { kind: 'stream', response, held, reader, pending, earlyError };
}

function startTimer(durationMs: number): { readonly done: Promise<'time'>; stop(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const done = new Promise<'time'>((resolve) => {
    timer = setTimeout(() => resolve('time'), durationMs);
  });
  return { done, stop: () => clearTimeout(timer) };
}
