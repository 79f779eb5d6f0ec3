import { isTypedUserMessage } from '../core/message.js';
import type { Hash } from '../core/ports.js';
import { NO_REDUCTION } from '../core/request/reduction.js';
import type { Reduction } from '../core/request/reduction.js';
import type { ResultCandidate } from '../core/request/tool-results.js';
import type { Turn } from './turn.js';

/** Most invocations that are remembered; the one that was used longest ago goes first. */
const MOST_INVOCATIONS = 256;

/** Most results that one invocation remembers; past it the oldest are forgotten, and made anew if they are needed. */
const MOST_RESULTS = 4_096;

/** What one tool loop under one user message has had made for it (SPEC 7.6). Never stored. */
export interface Invocation {
  /** What its latest request substituted; the following ones begin with it. */
  readonly reduction: Reduction;
  known(candidate: ResultCandidate): string | null | undefined;
  remember(candidate: ResultCandidate, text: string | null): void;
  keep(reduction: Reduction): void;
  /** Runs `work` when no other request of this invocation does, so that nothing is paid for twice. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export interface Invocations {
  /** The invocation a turn belongs to; null if no typed user message opened one. */
  of(turn: Turn): Invocation | null;
  /** Forgets it: its last reply called no tool. */
  end(turn: Turn): void;
}

/** `settings`: whatever else a shortened text depends on, so that another setting never meets it. */
export function createInvocations(hash: Hash, settings: string): Invocations {
  const invocations = new Map<string, Invocation>();
  const keyOf = (turn: Turn): string | null => {
    const opener = turn.spine.findLast((node) => !node.command && isTypedUserMessage(node.message));
    if (opener === undefined) return null;
    return JSON.stringify([turn.conversation.tenant, turn.conversation.id, opener.id, turn.read.model, settings]);
  };
  return {
    of(turn) {
      const key = keyOf(turn);
      if (key === null) return null;
      const invocation = invocations.get(key) ?? createInvocation(hash);
      invocations.delete(key);
      invocations.set(key, invocation);
      const oldest = invocations.keys().next();
      if (invocations.size > MOST_INVOCATIONS && oldest.done !== true) invocations.delete(oldest.value);
      return invocation;
    },
    end(turn) {
      const key = keyOf(turn);
      if (key !== null) invocations.delete(key);
    },
  };
}

function createInvocation(hash: Hash): Invocation {
  const results = new Map<string, string | null>();
  let reduction = NO_REDUCTION;
  let last: Promise<unknown> = Promise.resolve();
  const keyOf = ({ call, text }: ResultCandidate): string => hash(JSON.stringify([call.name, call.arguments, text]));
  return {
    get reduction() {
      return reduction;
    },
    known: (candidate) => results.get(keyOf(candidate)),
    remember(candidate, text) {
      results.set(keyOf(candidate), text);
      const oldest = results.keys().next();
      if (results.size > MOST_RESULTS && oldest.done !== true) results.delete(oldest.value);
    },
    keep(next) {
      reduction = next;
    },
    alone(work) {
      const run = last.then(work, work);
      last = run.catch(() => undefined);
      return run;
    },
  };
}
