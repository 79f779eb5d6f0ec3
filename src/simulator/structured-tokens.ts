import type { TokenCounter } from '../core/ports.js';
import { isRecord } from './json-value.js';
import { mediaOf } from './part-media.js';

/** Members of items and blocks that the model does not read: kinds, notes, and ids, which are unlike from one run to the next. */
const UNREAD: ReadonlySet<string> = new Set([
  'type',
  'id',
  'call_id',
  'tool_use_id',
  'status',
  'role',
  'annotations',
  'logprobs',
  'cache_control',
  'signature',
]);

/** Members that clients drop, add and change without changing what is said. */
const NOTES: ReadonlySet<string> = new Set(['annotations', 'logprobs', 'cache_control']);

/**
 * Tokens of an item or block as the model reads it: every string in it, its names and notes left out, numbers and the like as JSON
 * text, media by the counter's rule.
 */
export function structuredTokens(value: unknown, counter: TokenCounter): number {
  if (value === null || value === undefined) return 0;
  if (typeof value === 'string') return counter.count(value);
  if (Array.isArray(value)) return value.reduce<number>((sum, entry) => sum + structuredTokens(entry, counter), 0);
  if (!isRecord(value)) return counter.count(JSON.stringify(value));
  const media = mediaOf(value);
  if (media !== null) return counter.countMedia(media);
  return Object.entries(value).reduce(
    (sum, [name, member]) => sum + (UNREAD.has(name) ? 0 : structuredTokens(member, counter)),
    0,
  );
}

/** The same for all ways of writing one item or block: keys in order, and without notes and members that say nothing. */
export function promptText(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (!isRecord(member)) return member ?? undefined;
    const said = Object.entries(member).filter(([name, own]) => !NOTES.has(name) && own !== null);
    return Object.fromEntries(said.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
