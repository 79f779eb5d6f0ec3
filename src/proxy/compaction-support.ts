import type { Clock } from '../core/ports.js';

/** How long an upstream is not asked again that did not know what a compaction is. */
const REMEMBERED_MS = 10 * 60_000;

/** Most places that are remembered. */
const MOST_PLACES = 1_000;

/** By a path of its own, or by the last item of an ordinary request. */
type CompactionWay = 'path' | 'trigger';

/** Whom an upstream refused, and what. Nothing is learned across tenants (SPEC 1.1). */
export interface CompactionPlace {
  readonly tenant: string;
  readonly upstream: string;
  readonly way: CompactionWay;
}

/** Which upstreams are known not to compact. */
export interface CompactionSupport {
  isMissing(place: CompactionPlace): boolean;
  miss(place: CompactionPlace): void;
}

export function createCompactionSupport(clock: Clock): CompactionSupport {
  const missedAt = new Map<string, number>();
  const keyOf = ({ tenant, upstream, way }: CompactionPlace): string => JSON.stringify([tenant, upstream, way]);
  return {
    isMissing: (place) => clock() - (missedAt.get(keyOf(place)) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS,
    miss(place) {
      const key = keyOf(place);
      missedAt.delete(key);
      missedAt.set(key, clock());
      const [oldest] = missedAt.keys();
      if (missedAt.size > MOST_PLACES && oldest !== undefined) missedAt.delete(oldest);
    },
  };
}

/**
 * Whether an upstream's answer says that it does not know what it was asked for. A path is unknown by its status, unless the model is
 * what was not found; an item only where the refusal names it (`trigger`). Every other error is an answer.
 */
export function refusesCompaction(way: CompactionWay, trigger: string, status: number, body: string): boolean {
  if (way === 'trigger') return [400, 404, 422, 501].includes(status) && body.includes(trigger);
  return status === 405 || status === 501 || (status === 404 && !/"model_not_found"|"param"\s*:\s*"model"/.test(body));
}
