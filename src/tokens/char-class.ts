/** Classes of characters that the tokenizers' patterns tell apart, one bit each; every character has exactly one. */
export const UPPER = 1; // \p{Lu}\p{Lt}
export const LOWER = 2; // \p{Ll}
export const CASELESS = 4; // \p{Lm}\p{Lo}
export const MARK = 8; // \p{M}
export const NUMBER = 16; // \p{N}
export const BLANK = 32; // \s without line ends
export const LINE_END = 64; // [\r\n]
export const SYMBOL = 128; // everything else
const CLASS_BITS = 8;

const TESTS: readonly (readonly [RegExp, number])[] = [
  [/^[\p{Lu}\p{Lt}]/u, UPPER],
  [/^\p{Ll}/u, LOWER],
  [/^[\p{Lm}\p{Lo}]/u, CASELESS],
  [/^\p{M}/u, MARK],
  [/^\p{N}/u, NUMBER],
  [/^[\r\n]/u, LINE_END],
  [/^\s/u, BLANK],
];

/**
 * Classifies the characters of valid UTF-8. The table fills itself from the engine's own Unicode data, a character at a
 * time as they are met, so nothing is computed for scripts nobody writes in.
 */
export class CharClasses {
  /** By code point: its class bit, and above it its length in UTF-8; 0 until met. */
  readonly #table = new Uint16Array(0x110000);

  /** Class of the character that starts at `index`, and its length: see `classOf` and `widthOf`. */
  at(bytes: Uint8Array, index: number): number {
    const codePoint = codePointAt(bytes, index);
    const known = this.#table[codePoint];
    return known ? known : (this.#table[codePoint] = classify(codePoint));
  }

  /** Where a run of characters of the classes `mask`, begun at `index`, ends. */
  runEnd(bytes: Uint8Array, index: number, mask: number): number {
    let end = index;
    while (end < bytes.length) {
      const char = this.at(bytes, end);
      if ((char & mask) === 0) break;
      end += widthOf(char);
    }
    return end;
  }
}

export function widthOf(char: number): number {
  return char >> CLASS_BITS;
}

function codePointAt(bytes: Uint8Array, index: number): number {
  const lead = bytes[index] ?? 0;
  if (lead < 0x80) return lead;
  const second = (bytes[index + 1] ?? 0) & 0x3f;
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | second;
  const third = (bytes[index + 2] ?? 0) & 0x3f;
  if (lead < 0xf0) return ((lead & 0x0f) << 12) | (second << 6) | third;
  return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | ((bytes[index + 3] ?? 0) & 0x3f);
}

function classify(codePoint: number): number {
  const text = String.fromCodePoint(codePoint);
  const width = codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4;
  const charClass = TESTS.find(([pattern]) => pattern.test(text))?.[1] ?? SYMBOL;
  return (width << CLASS_BITS) | charClass;
}
