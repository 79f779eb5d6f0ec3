import { describe, expect, test } from 'vitest';
import type { Usage } from '../../src/core/message.js';
import type { Dialect, EventMeaning, Reply } from '../../src/dialects/dialect.js';
import { createSseSplitter } from '../../src/sse/split.js';

/** A stream in the shape some vendor sends, and the reply that it folds to. */
export interface RecordedStream {
  /** The data of its events. */
  readonly events: readonly string[];
  /** Place of the event with the first content, of the one after which the reply is finished, and of the last. */
  readonly firstContent: number;
  readonly finishedAt: number;
  readonly endsAt: number;
  /** Places of events that hold nothing but usage. */
  readonly usageOnly: readonly number[];
  /** The reply's message as a client sends it back; where it is several, the first of them. */
  readonly source: unknown;
  /** The messages of the same reply that follow it. */
  readonly more?: readonly unknown[];
  readonly stopReason: string;
  readonly usage: Usage | null;
  /** The same reply whole, where it is known. */
  readonly whole?: unknown;
}

interface Folded {
  readonly meanings: readonly EventMeaning[];
  readonly reply: Reply;
}

/** What every dialect's folder holds to, on recorded streams. */
export function foldsStreams(dialect: Dialect, streams: Readonly<Record<string, RecordedStream>>): void {
  const fold = (events: readonly string[]): Folded => {
    const folder = dialect.folder();
    return { meanings: events.map((data) => folder.push(data, eventName(data))), reply: folder.reply() };
  };

  const foldBytes = (chunks: readonly Uint8Array[]): Reply => {
    const splitter = createSseSplitter();
    const folder = dialect.folder();
    for (const block of [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()]) {
      if (block.data !== null) folder.push(block.data, block.event);
    }
    return folder.reply();
  };

  describe.each(Object.entries(streams))('a stream of %s', (_vendor, stream) => {
    const { events, more = [] } = stream;
    const expected = fold(events).reply;

    test('folds to the reply it stands for', () => {
      const { meanings, reply } = fold(events);
      expect(reply.messages).toEqual([stream.source, ...more].map((source) => dialect.readMessage(source)));
      expect(reply).toMatchObject({ stopReason: stream.stopReason, finished: true, error: null, unread: null });
      expect(reply.usage).toEqual(stream.usage);
      const places = (is: (meaning: EventMeaning) => boolean): number[] =>
        meanings.flatMap((meaning, place) => (is(meaning) ? [place] : []));
      expect(places((meaning) => meaning.hasContent)[0]).toBe(stream.firstContent);
      expect(places((meaning) => meaning.usageOnly)).toEqual(stream.usageOnly);
      expect(places((meaning) => meaning.ends)).toEqual([stream.endsAt]);
      expect(places((meaning) => meaning.hasError)).toEqual([]);
    });

    test('cut after any event is finished only from its stop reason on, SPEC 2.3', () => {
      events.forEach((_, last) => {
        const { reply } = fold(events.slice(0, last + 1));
        expect(reply.finished).toBe(last >= stream.finishedAt);
        expect(reply.messages.length > 0).toBe(last >= stream.firstContent);
        expect(reply.messages.length).toBeLessThanOrEqual(1 + more.length);
      });
    });

    test('split at any byte folds to the same reply', () => {
      const text = events.map((data) => `${nameLine(data)}data: ${data}\n\n`).join('');
      const bytes = new TextEncoder().encode(text);
      const unsplit = JSON.stringify(expected);
      for (let at = 1; at < bytes.length; at++) {
        const reply = foldBytes([bytes.slice(0, at), bytes.slice(at)]);
        if (JSON.stringify(reply) !== unsplit) throw new Error(`another reply when split at byte ${at}`);
      }
    });

    test('folds to the same reply with unknown events between and unknown members in them', () => {
      const unknown = '{"type":"brand_new_event","value":{"deep":[1]}}';
      const strange = events.flatMap((data) => [unknown, data.replace(/^\{/, '{"brand_new":{"member":1},')]);
      expect(fold(strange).reply).toEqual(expected);
    });
  });

  const known = Object.entries(streams).flatMap(([vendor, { events, whole }]) =>
    whole === undefined ? [] : [{ vendor, events, whole }],
  );
  test.each(known)('a stream of $vendor folds to the reply that is read whole, and is made again from it', (stream) => {
    const expected = dialect.readReply(stream.whole);
    expect(fold(stream.events).reply).toEqual(expected);
    const made = dialect.streamOf(JSON.stringify(stream.whole), { includesUsage: true }) ?? '';
    expect(foldBytes([new TextEncoder().encode(made)])).toEqual(expected);
  });
}

/** The event's own name where its data says it, as the vendors that name events do. */
function eventName(data: string): string | null {
  return /^\{"type":"([\w.]+)"/.exec(data)?.[1] ?? null;
}

function nameLine(data: string): string {
  const name = eventName(data);
  return name === null ? '' : `event: ${name}\n`;
}
