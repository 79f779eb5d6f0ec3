/** A parsed JSON object: its members are whatever came over the wire. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What `read` gives, or null where JSON nests deeper than the stack can follow: it then cannot be read. */
export function unlessTooDeep<Result>(read: () => Result | null): Result | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** JSON with sorted keys: equal values give equal text, whatever order a client wrote them in (SPEC 1.3). */
export function stableJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableJson).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${stableJson(value[key])}`);
  return `{${members.join(',')}}`;
}
