import type { Dialect, EventMeaning, Reply } from '../dialects/dialect.js';
import { createSseSplitter } from '../sse/split.js';
import type { SseBlock } from '../sse/split.js';

/** One event of a provider's stream: its very bytes and what it means. */
export interface StreamEvent {
  readonly bytes: Uint8Array;
  readonly data: string | null;
  readonly meaning: EventMeaning;
}

const NOTHING: EventMeaning = { hasContent: false, usageOnly: false, hasError: false, ends: false };

/** Reads a provider's stream event by event and folds it on the side (SPEC 6.3). */
export interface StreamReader {
  /** The events that one more chunk completes; null at the end. Rejects when the upstream breaks. */
  next(): Promise<readonly StreamEvent[] | null>;
  /** What was read so far, as one reply. */
  reply(): Reply;
  /** Ends the upstream request. */
  stop(): Promise<void>;
}

/** `choices`: how many replies were asked for. */
export function createStreamReader(body: AsyncIterable<Uint8Array>, dialect: Dialect, choices: number): StreamReader {
  const iterator = body[Symbol.asyncIterator]();
  const splitter = createSseSplitter();
  const folder = dialect.folder(choices);
  let hasGap = false;
  const meaningOf = (block: SseBlock): EventMeaning => {
    hasGap ||= block.oversized;
    // An event too large to be decoded is no sign of life or error: it is content.
    return block.data === null ? { ...NOTHING, hasContent: block.oversized } : folder.push(block.data, block.event);
  };
  const read = (block: SseBlock): StreamEvent => ({
    bytes: block.bytes,
    data: block.data,
    meaning: meaningOf(block),
  });
  return {
    async next() {
      const step = await iterator.next();
      if (step.done !== true) return splitter.push(step.value).map(read);
      const tail = splitter.end().map(read);
      return tail.length > 0 ? tail : null;
    },
    reply() {
      const reply = folder.reply();
      return hasGap ? { ...reply, unread: 'too_large' } : reply;
    },
    async stop() {
      await iterator.return?.();
    },
  };
}
