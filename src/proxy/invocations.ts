import type { Clock, ConversationKey, Hash } from '../core/ports.js';
import { createInvocation } from './invocation.js';
import type { Invocation } from './invocation.js';
import type { SharedInvocations, SharedPlace } from './shared-invocations.js';
import { openerOf } from './turn.js';
import type { Turn } from './turn.js';

/** Most invocations that are remembered; the one that was used longest ago goes first. */
const MOST_INVOCATIONS = 256;

/** One that was not used for so long is over, whatever became of it. */
const KEPT_MS = 60 * 60_000;

/** The tool loops under way, each with what was made for it (SPEC 7.6). */
export interface Invocations {
  /** The invocation a turn belongs to; null if no typed user message opened one. */
  of(turn: Turn): Invocation | null;
  /** Like `of`, but null where nothing is remembered yet. */
  find(turn: Turn): Invocation | null;
  /** Takes in what other processes remember of a turn's invocation. Never rejects. */
  load(turn: Turn): Promise<void>;
  /** Lets them know what is remembered here. Never rejects. */
  save(turn: Turn): Promise<void>;
  /** The last reply of this turn's branch called no tool: what was made for it is forgotten. Never rejects. */
  end(turn: Turn): Promise<void>;
  /** Forgets all that was made for a conversation, which is erased (SPEC 2.6). */
  forget(conversation: ConversationKey): void;
}

export interface InvocationsDeps {
  readonly hash: Hash;
  readonly clock: Clock;
  /** Whatever else a shortened text depends on, so that another setting never meets it. */
  readonly settings: string;
  /** Null where this process is alone on its store. */
  readonly shared: SharedInvocations | null;
}

interface Entry {
  readonly place: SharedPlace;
  readonly invocation: Invocation;
  readonly usedAt: number;
  /** Of what other processes were last known to remember. */
  readonly stamp: string | null;
}

export function createInvocations({ hash, clock, settings, shared }: InvocationsDeps): Invocations {
  // In the order of use, oldest first.
  const entries = new Map<string, Entry>();

  const placeOf = (turn: Turn): SharedPlace | null => {
    const opener = openerOf(turn);
    if (opener === undefined) return null;
    const { tenant, id } = turn.conversation;
    return {
      conversation: { tenant, id },
      field: `invocation:${hash(JSON.stringify([opener.id, turn.read.model, settings]))}`,
    };
  };
  const keyOf = ({ conversation: { tenant, id }, field }: SharedPlace): string => JSON.stringify([tenant, id, field]);
  const set = (entry: Omit<Entry, 'usedAt'>): void => {
    const key = keyOf(entry.place);
    entries.delete(key);
    entries.set(key, { ...entry, usedAt: clock() });
  };
  const forgetOld = (): void => {
    for (const [key, { usedAt }] of entries) {
      if (entries.size <= MOST_INVOCATIONS && usedAt >= clock() - KEPT_MS) return;
      entries.delete(key);
    }
  };
  const entryOf = (turn: Turn): Entry | null => {
    forgetOld();
    const place = placeOf(turn);
    const known = place === null ? undefined : entries.get(keyOf(place));
    if (known !== undefined) set(known);
    return known ?? null;
  };
  const of = (turn: Turn): Invocation | null => {
    const place = placeOf(turn);
    if (place === null) return null;
    const known = entryOf(turn);
    if (known !== null) return known.invocation;
    const invocation = createInvocation(hash);
    set({ place, invocation, stamp: null });
    return invocation;
  };

  return {
    of,
    find: (turn) => entryOf(turn)?.invocation ?? null,
    async load(turn) {
      const place = placeOf(turn);
      if (shared === null || place === null) return;
      const saved = await shared.load(place, entryOf(turn)?.stamp ?? null);
      const invocation = saved === null ? null : of(turn);
      if (saved === null || invocation === null) return;
      invocation.take(saved.memory);
      set({ place, invocation, stamp: saved.stamp });
    },
    async save(turn) {
      const entry = entryOf(turn);
      if (shared === null || entry === null) return;
      const stamp = await shared.save(entry.place, entry.invocation.memory());
      // Erased meanwhile: what was saved goes with it.
      if (!entries.has(keyOf(entry.place))) return shared.drop(entry.place);
      if (stamp !== null) set({ ...entry, stamp });
    },
    async end(turn) {
      const entry = entryOf(turn);
      if (entry === null) return;
      const { place, invocation, stamp } = entry;
      invocation.drop(turn.spine);
      if (invocation.isEmpty) entries.delete(keyOf(place));
      if (shared !== null && stamp !== null) {
        await (invocation.isEmpty ? shared.drop(place) : shared.save(place, invocation.memory()));
      }
    },
    forget({ tenant, id }) {
      for (const [key, { place }] of entries) {
        if (place.conversation.id === id && place.conversation.tenant === tenant) entries.delete(key);
      }
    },
  };
}
