/**
 * Text as every store can hold it. Clients and models may send NUL, at which some SQLite bindings cut, and lone
 * surrogates, which UTF-8 has no form for; the same stored text must render to the same bytes every time (SPEC 4.5). Such
 * text is kept as JSON behind a marker character, all other text as it is.
 */
const MARKER = '\u0001';
const UNSAFE = /^\u0001|\0|\p{Surrogate}/u;

export function toStoredText(text: string): string {
  return UNSAFE.test(text) ? MARKER + JSON.stringify(text) : text;
}

/** The inverse of `toStoredText`. */
export function fromStoredText(stored: string): string {
  return stored.startsWith(MARKER) ? String(JSON.parse(stored.slice(1))) : stored;
}
