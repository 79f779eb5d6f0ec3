/** Characters `start` up to, not including, `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/**
 * The values of the object that begins at or after `from` in valid JSON, by name. Of a repeated name the last value
 * counts, as in `JSON.parse`. Empty if no object begins there. Builds no values: time is linear in the object's text.
 */
export function memberSpans(text: string, from = 0): ReadonlyMap<string, Span> {
  const members = new Map<string, Span>();
  let at = skipSpace(text, from);
  if (text.charCodeAt(at) !== OPEN_BRACE) return members;
  at = skipSpace(text, at + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACE) {
    const nameEnd = skipString(text, at);
    const name: unknown = JSON.parse(text.slice(at, nameEnd));
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = skipValue(text, start);
    members.set(String(name), { start, end });
    at = skipComma(text, end);
  }
  return members;
}

/** The elements of the array that begins at or after `from` in valid JSON; empty if none begins there. */
export function elementSpans(text: string, from = 0): readonly Span[] {
  const elements: Span[] = [];
  let at = skipSpace(text, from);
  if (text.charCodeAt(at) !== OPEN_BRACKET) return elements;
  at = skipSpace(text, at + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = skipValue(text, at);
    elements.push({ start: at, end });
    at = skipComma(text, end);
  }
  return elements;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    if (!isSpace(text.charCodeAt(at))) break;
  }
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function skipComma(text: string, from: number): number {
  const at = skipSpace(text, from);
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at;
}

/** End of the string whose opening quote is at `from`. A quote closes it unless an odd run of backslashes precedes it. */
function skipString(text: string, from: number): number {
  for (let quote = text.indexOf('"', from + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (text.charCodeAt(first - 1) === BACKSLASH) first--;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** End of the value that begins at `from`. Counts depth instead of recursing: nesting cannot exhaust the stack. */
function skipValue(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      // At depth 0 it closes the surroundings of a number or literal.
      if (depth === 0) return endOfLiteral(text, at);
      if (--depth === 0) return at + 1;
    } else if (code === COMMA && depth === 0) {
      return endOfLiteral(text, at);
    }
    at++;
  }
  return endOfLiteral(text, at);
}

/** A number or literal ends before the white space that precedes `delimiter`. */
function endOfLiteral(text: string, delimiter: number): number {
  let end = delimiter;
  while (end > 0 && isSpace(text.charCodeAt(end - 1))) end--;
  return end;
}
