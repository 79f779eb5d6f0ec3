import { encodeSse } from './encode.js';
import { createSseSplitter } from './split.js';
import type { SseBlock } from './split.js';

export interface SseRewriter {
  /** The bytes to send in place of the events that `chunk` completes. */
  push(chunk: Uint8Array): readonly Uint8Array[];
  /** The same for the unterminated tail. */
  end(): readonly Uint8Array[];
}

/**
 * Rewrites a byte stream's events: `rewrite` gives the data that is sent for an event's data, or null to leave the event out. An event
 * whose data stays, and what is no event, keep their very bytes.
 */
export function createSseRewriter(rewrite: (data: string) => string | null): SseRewriter {
  const splitter = createSseSplitter();
  const shown = ({ bytes, data, event }: SseBlock): readonly Uint8Array[] => {
    if (data === null) return [bytes];
    const said = rewrite(data);
    if (said === data) return [bytes];
    return said === null ? [] : [encodeSse(said, event)];
  };
  return {
    push: (chunk) => splitter.push(chunk).flatMap(shown),
    end: () => splitter.end().flatMap(shown),
  };
}
