import type { Outcome } from '../core/message.js';
import type { Reply, Unread } from '../dialects/dialect.js';
import type { Answer } from './exchange.js';
import { concatenate } from './read-whole.js';
import type { Recorded } from './record-call.js';
import type { Sink } from './sink.js';
import type { StreamEvent } from './stream-reader.js';

type AnswerOf<Kind extends Answer['kind']> = Extract<Answer, { readonly kind: Kind }>;

/** What came of relaying an answer to the client. */
export interface Relayed {
  readonly outcome: Outcome;
  /** What was relayed, folded; null if it was no reply. */
  readonly reply: Reply | null;
  /** An error event that came after content, when nothing could be retried any more; JSON text. */
  readonly lateError: string | null;
  /** Why it, or a part of it, went through unread; null if all was read. */
  readonly unread: Unread | null;
}

export interface RelayOptions {
  readonly hidesUsage: boolean;
  /**
   * Records the reply. Called once, before the end of the response is passed on (SPEC 2.4), or when it broke off; never
   * rejects.
   */
  record(relayed: Relayed): Promise<Recorded>;
  /** Starts the response: at once for what is passed on as it comes, with null, and for a whole reply once it is recorded. */
  start(recorded: Recorded | null): void;
}

/** Passes a held answer on, byte for byte. Rejects only while nothing was sent. */
export async function relay(answer: Answer, sink: Sink, options: RelayOptions): Promise<Relayed> {
  switch (answer.kind) {
    case 'whole':
      return relayWhole(answer, sink, options);
    case 'stream':
      return relayStream(answer, sink, options);
    case 'long':
      return relayLong(answer, sink, options);
    case 'late':
      return relayLate(answer, sink, options);
  }
}

async function relayWhole(answer: AnswerOf<'whole'>, sink: Sink, options: RelayOptions): Promise<Relayed> {
  const { reply } = answer;
  // Nothing of it has reached a client that left.
  const relayed: Relayed = sink.closed.aborted
    ? { outcome: 'cancelled', reply, lateError: null, unread: null }
    : relayedOf(reply, sink, { lateError: null, isAtEnd: true });
  options.start(await options.record(relayed));
  await sink.write(answer.bytes);
  await sink.end();
  return relayed;
}

async function relayLong(answer: AnswerOf<'long'>, sink: Sink, options: RelayOptions): Promise<Relayed> {
  const { response, body, unread } = answer;
  options.start(null);
  const broken = await settles(async () => {
    for await (const chunk of body) {
      if (sink.closed.aborted) return;
      await sink.write(chunk);
    }
  });
  const isWhole = !broken && !sink.closed.aborted && response.status === 200;
  const outcome = isWhole ? 'unread' : incomplete(sink);
  const relayed: Relayed = { outcome, reply: null, lateError: null, unread };
  await options.record(relayed);
  if (broken) sink.abort();
  else await sink.end();
  return relayed;
}

async function relayLate(answer: AnswerOf<'late'>, sink: Sink, options: RelayOptions): Promise<Relayed> {
  options.start(null);
  const rest = await passSpace(answer, sink);
  const begun = { ...options, start: () => undefined };
  if (rest === null) {
    const relayed: Relayed = { outcome: incomplete(sink), reply: null, lateError: null, unread: null };
    await options.record(relayed);
    sink.abort();
    return relayed;
  }
  if (rest.kind !== 'whole') return relay(rest, sink, begun);
  // Whatever error it tells of, nothing can be retried any more.
  const lateError = rest.reply?.error == null ? null : rest.text;
  return relayWhole(rest, sink, { ...begun, record: (relayed) => options.record({ ...relayed, lateError }) });
}

/** Resolves to what follows the white space; null if the answer broke off before. */
async function passSpace({ space, rest }: AnswerOf<'late'>, sink: Sink): Promise<Answer | null> {
  try {
    for await (const chunk of space) await sink.write(chunk);
    return await rest();
  } catch {
    return null;
  }
}

async function relayStream(answer: AnswerOf<'stream'>, sink: Sink, options: RelayOptions): Promise<Relayed> {
  options.start(null);
  const { reader } = answer;
  let lateError: string | null = null;
  let recorded: Relayed | null = null;
  const record = async (isAtEnd: boolean): Promise<Relayed> => {
    if (recorded !== null) return recorded;
    recorded = relayedOf(reader.reply(), sink, { lateError, isAtEnd });
    await options.record(recorded);
    return recorded;
  };
  const pass = async (events: readonly StreamEvent[]): Promise<void> => {
    const end = events.findIndex((event) => event.meaning.ends);
    const before = end < 0 ? events : events.slice(0, end);
    lateError ??= events.find((event) => event.meaning.hasError)?.data ?? null;
    await write(before, sink, options);
    if (end < 0) return;
    await record(true);
    await write(events.slice(end), sink, options);
  };

  const broken = await settles(async () => {
    await pass(answer.held);
    let events = await (answer.pending ?? reader.next());
    while (events !== null && !sink.closed.aborted) {
      await pass(events);
      events = await reader.next();
    }
  });
  const relayed = await record(false);
  if (sink.closed.aborted) await settles(() => reader.stop());
  else if (broken) sink.abort();
  else await sink.end();
  return relayed;
}

async function write(events: readonly StreamEvent[], sink: Sink, options: RelayOptions): Promise<void> {
  const shown = options.hidesUsage ? events.filter((event) => !event.meaning.usageOnly) : events;
  if (shown.length > 0) await sink.write(concatenate(shown.map((event) => event.bytes)));
}

/** `isAtEnd`: the answer said so itself, so that what is missing of its reply was not read. */
function relayedOf(
  reply: Reply | null,
  sink: Sink,
  { lateError, isAtEnd }: { readonly lateError: string | null; readonly isAtEnd: boolean },
): Relayed {
  const unread = reply?.error == null ? (reply?.unread ?? null) : null;
  const finished = reply?.finished === true;
  if (unread !== null && (finished || isAtEnd)) return { outcome: 'unread', reply, lateError, unread };
  return { outcome: finished ? 'complete' : incomplete(sink), reply, lateError, unread };
}

function incomplete(sink: Sink): Outcome {
  return sink.closed.aborted ? 'cancelled' : 'failed';
}

/** True if it broke off. */
async function settles(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch {
    return true;
  }
}
