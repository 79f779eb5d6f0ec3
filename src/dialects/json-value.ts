/** A parsed JSON object: its members are whatever came over the wire. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Null, `""`, `[]` and `{}` say nothing. */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** The value of a JSON text; undefined for any other text. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A count of tokens that a provider reports in a member; null if it does not. */
export function tokenCount(value: unknown, member: string): number | null {
  const count = isJsonObject(value) ? value[member] : null;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** A cap that a client gives, in tokens; null if it gives none. */
export function positiveInteger(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
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
