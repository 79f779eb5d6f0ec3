import { SpillwayError } from '../core/errors.js';

/* What Redis answered, read with care: another shape than a script gives is a broken store. */

export function textAt(reply: readonly unknown[], index: number): string {
  const value = reply[index];
  if (typeof value !== 'string') throw unexpected();
  return value;
}

/** An integer, given as one or as text. */
export function integerAt(reply: readonly unknown[], index: number): number {
  const value = Number(reply[index]);
  if (!Number.isSafeInteger(value)) throw unexpected();
  return value;
}

export function listAt(reply: readonly unknown[], index: number): readonly unknown[] {
  const value: unknown = reply[index];
  if (!Array.isArray(value)) throw unexpected();
  return value;
}

export function textsAt(reply: readonly unknown[], index: number): readonly string[] {
  const list = listAt(reply, index);
  return list.map((_, at) => textAt(list, at));
}

/** A list of fixed-size groups, one behind the other. */
export function groupsOf(list: readonly unknown[], size: number): readonly (readonly unknown[])[] {
  return Array.from({ length: list.length / size }, (_, group) => list.slice(group * size, (group + 1) * size));
}

export function unexpected(): SpillwayError {
  return new SpillwayError('store_unavailable', 'The store holds something unexpected.');
}
