import { z } from 'zod';
import type { ConversationKey, Hash, SharedCache } from '../core/ports.js';
import type { InvocationMemory } from './invocation.js';

/** A tool loop takes longer between two of its reductions only where somebody went away. */
const KEPT_MS = 60 * 60_000;

/** Most characters of what is shared of one invocation. */
const MOST_CHARACTERS = 1_000_000;

/** Where the memory of an invocation is shared. */
export interface SharedPlace {
  readonly conversation: ConversationKey;
  readonly field: string;
}

/**
 * What processes on one store share of their invocations (SPEC 7.6). Never rejects: where the cache fails, each process has only its
 * own.
 */
export interface SharedInvocations {
  /** What was saved last, with a stamp of it; null if that is the one `stamp` names, or nothing is there. */
  load(
    place: SharedPlace,
    stamp: string | null,
  ): Promise<{ readonly memory: InvocationMemory; readonly stamp: string } | null>;
  /** Resolves to the stamp of what was saved; null if nothing was. */
  save(place: SharedPlace, memory: InvocationMemory): Promise<string | null>;
  drop(place: SharedPlace): Promise<void>;
}

const segment = { first: z.string(), last: z.string(), count: z.number() };

const memorySchema = z.strictObject({
  reductions: z.array(
    z.strictObject({
      head: z.string(),
      reduction: z.strictObject({
        results: z.array(
          z.strictObject({ node: z.string(), callId: z.string(), text: z.string(), savedTokens: z.number() }),
        ),
        checkpoints: z.array(z.strictObject({ ...segment, content: z.string(), tokens: z.number() })),
      }),
    }),
  ),
  results: z.array(z.tuple([z.string(), z.string().nullable()])),
  givenUp: z.array(z.string()),
}) satisfies z.ZodType<InvocationMemory>;

export function createSharedInvocations(cache: SharedCache, hash: Hash): SharedInvocations {
  // The stamp is read with every request of a tool loop; the memory, which may be large, only when it has changed.
  const stampOf = ({ field }: SharedPlace): string => `${field}:stamp`;
  return {
    load: (place, stamp) =>
      orNull(async () => {
        const saved = await cache.get(place.conversation, stampOf(place));
        if (saved === null || saved === stamp) return null;
        const text = await cache.get(place.conversation, place.field);
        return text === null ? null : { memory: memorySchema.parse(JSON.parse(text)), stamp: saved };
      }),
    save: (place, memory) =>
      orNull(async () => {
        const text = textWithin(MOST_CHARACTERS, memory);
        if (text === null) return null;
        const stamp = hash(text);
        await cache.set(place.conversation, place.field, text, KEPT_MS);
        await cache.set(place.conversation, stampOf(place), stamp, KEPT_MS);
        return stamp;
      }),
    async drop(place) {
      await orNull(() => cache.delete(place.conversation, stampOf(place)));
      await orNull(() => cache.delete(place.conversation, place.field));
    },
  };
}

async function orNull<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch {
    return null;
  }
}

/** The memory as JSON, what was used longest ago left out where it is too long; null if not even the last reduction fits. */
function textWithin(mostCharacters: number, memory: InvocationMemory): string | null {
  const text = JSON.stringify(memory);
  if (text.length <= mostCharacters) return text;
  const { results, reductions } = memory;
  if (results.length > 0) {
    return textWithin(mostCharacters, { ...memory, results: results.slice(Math.ceil(results.length / 2)) });
  }
  return reductions.length > 1 ? textWithin(mostCharacters, { ...memory, reductions: reductions.slice(1) }) : null;
}
