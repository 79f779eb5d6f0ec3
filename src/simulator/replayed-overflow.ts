import type { Refusal } from './answer.js';
import type { Script } from './reply-plan.js';

export interface Replay {
  /** How many requests get it; 1 unless given. */
  readonly times?: number | undefined;
  /** The content type and what else comes with it; a JSON body unless given. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Answers the first requests with this very body, whatever their size, and leaves the rest to the default reply. */
export function replayedOverflow(body: Refusal['body'], status: number, replay: Replay = {}): Script {
  let left = replay.times ?? 1;
  return () => {
    left -= 1;
    return left < 0 ? null : { kind: 'refusal', status, headers: replay.headers, body };
  };
}
