import type { JsonObject } from './json-value.js';

/** A called function's members so far and a delta of them. Strings go on; a name that is sent again is not a longer name. */
export function foldFunction(before: JsonObject, delta: JsonObject): JsonObject {
  const added = Object.entries(delta).map(([key, value]): readonly [string, unknown] => {
    const old = before[key];
    if (typeof old !== 'string' || typeof value !== 'string') return [key, value ?? old];
    return [key, key === 'name' && old === value ? old : old + value];
  });
  return { ...before, ...Object.fromEntries(added) };
}
