import type { Dialect, Reply } from '../dialects/dialect.js';
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
      /** Too long to be held, or encoded: passed on as it comes, unread. */
      readonly kind: 'long';
      readonly response: UpstreamResponse;
      readonly body: AsyncIterable<Uint8Array>;
    };

/** Sends one request and holds the answer; rejects as `SendUpstream` does. */
export async function exchange(
  send: SendUpstream,
  request: UpstreamRequest,
  dialect: Dialect,
  choices: number,
): Promise<Answer> {
  const response = await send(request);
  // Asked for without one; whoever encodes all the same cannot be read.
  if (isEncoded(response)) return { kind: 'long', response, body: response.body };
  return response.status < 400 && isEventStream(response)
    ? holdStream(response, dialect, choices)
    : holdWhole(response, dialect);
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

async function holdWhole(response: UpstreamResponse, dialect: Dialect): Promise<Answer> {
  const iterator = response.body[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
    chunks.push(step.value);
    length += step.value.byteLength;
    if (length > WHOLE_LIMIT_BYTES) return { kind: 'long', response, body: chain(chunks, iterator) };
  }
  const bytes = concatenate(chunks);
  const text = new TextDecoder().decode(bytes);
  return { kind: 'whole', response, bytes, text, reply: response.status === 200 ? readReply(text, dialect) : null };
}

async function* chain(first: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* first;
  for (let step = await rest.next(); step.done !== true; step = await rest.next()) yield step.value;
}

function readReply(text: string, dialect: Dialect): Reply | null {
  try {
    return dialect.readReply(JSON.parse(text));
  } catch {
    return null;
  }
}

async function holdStream(response: UpstreamResponse, dialect: Dialect, choices: number): Promise<Answer> {
  const reader = createStreamReader(response.body, dialect, choices);
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
