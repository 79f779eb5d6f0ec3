import type { Outcome } from '../core/message.js';
import type { Reply } from '../dialects/dialect.js';
import type { Answer } from './exchange.js';
import { concatenate } from './read-whole.js';
import type { Sink } from './sink.js';
import type { StreamEvent } from './stream-reader.js';

/** What came of relaying an answer to the client. */
export interface Relayed {
  readonly outcome: Outcome;
  /** What was relayed, folded; null if it was no reply. */
  readonly reply: Reply | null;
  /** An error event that came after content, when nothing could be retried any more; JSON text. */
  readonly lateError: string | null;
}

export interface RelayOptions {
  readonly hidesUsage: boolean;
  /**
   * Records the reply. Called once, before the end of the response is passed on (SPEC 2.4), or when it broke off; never
   * rejects.
   */
  record(relayed: Relayed): Promise<string | null>;
  /**
   * Starts the response: at once for what is passed on as it comes, and for a whole reply once it is recorded, with the id of its
   * node.
   */
  start(reply: string | null): void;
}

/** Passes a held answer on, byte for byte. Rejects only while nothing was sent. */
export async function relay(answer: Answer, sink: Sink, options: RelayOptions): Promise<Relayed> {
  switch (answer.kind) {
    case 'whole':
      return relayWhole(answer, sink, options);
    case 'stream':
      return relayStream(answer, sink, options);
    case 'long':
      return relayLong(answer.body, sink, options);
  }
}

async function relayWhole(
  answer: Extract<Answer, { kind: 'whole' }>,
  sink: Sink,
  options: RelayOptions,
): Promise<Relayed> {
  const finished = answer.reply !== null && answer.reply.finished && !sink.closed.aborted;
  const relayed: Relayed = { outcome: outcomeOf(sink, finished), reply: answer.reply, lateError: null };
  options.start(await options.record(relayed));
  await sink.write(answer.bytes);
  await sink.end();
  return relayed;
}

async function relayLong(body: AsyncIterable<Uint8Array>, sink: Sink, options: RelayOptions): Promise<Relayed> {
  options.start(null);
  const broken = await settles(async () => {
    for await (const chunk of body) {
      if (sink.closed.aborted) return;
      await sink.write(chunk);
    }
  });
  const relayed: Relayed = { outcome: outcomeOf(sink, !broken && !sink.closed.aborted), reply: null, lateError: null };
  await options.record(relayed);
  if (broken) sink.abort();
  else await sink.end();
  return relayed;
}

async function relayStream(
  answer: Extract<Answer, { kind: 'stream' }>,
  sink: Sink,
  options: RelayOptions,
): Promise<Relayed> {
  options.start(null);
  const { reader } = answer;
  let lateError: string | null = null;
  let recorded: Relayed | null = null;
  const record = async (): Promise<Relayed> => {
    if (recorded !== null) return recorded;
    const reply = reader.reply();
    recorded = { outcome: outcomeOf(sink, reply.finished), reply, lateError };
    await options.record(recorded);
    return recorded;
  };
  const pass = async (events: readonly StreamEvent[]): Promise<void> => {
    const end = events.findIndex((event) => event.meaning.ends);
    const before = end < 0 ? events : events.slice(0, end);
    lateError ??= events.find((event) => event.meaning.hasError)?.data ?? null;
    await write(before, sink, options);
    if (end < 0) return;
    await record();
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
  const relayed = await record();
  if (sink.closed.aborted) await settles(() => reader.stop());
  else if (broken) sink.abort();
  else await sink.end();
  return relayed;
}

async function write(events: readonly StreamEvent[], sink: Sink, options: RelayOptions): Promise<void> {
  const shown = options.hidesUsage ? events.filter((event) => !event.meaning.usageOnly) : events;
  if (shown.length > 0) await sink.write(concatenate(shown.map((event) => event.bytes)));
}

function outcomeOf(sink: Sink, finished: boolean): Outcome {
  if (finished) return 'complete';
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
