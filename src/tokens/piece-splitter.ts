import { BLANK, CASELESS, CharClasses, LINE_END, LOWER, MARK, NUMBER, SYMBOL, UPPER, widthOf } from './char-class.js';
import type { Encoding } from './encoding.js';

const LETTER = UPPER | LOWER | CASELESS;
const SPACE = BLANK | LINE_END;
const MAX_DIGITS = 3;

const CODE_SPACE = 0x20;
const CODE_APOSTROPHE = 0x27;
const CODE_SLASH = 0x2f;
const LOWER_CASE_BIT = 0x20;

/**
 * Cuts text into the pieces that the tokenizer's regular expression would match, without a regular expression: those
 * overflow the stack on runs of a few million characters. Each method is one or two alternatives of the pattern, tried
 * in its order, and says where the piece ends, or returns `start` where it does not match. What one piece gives back,
 * the next one takes, so every character is looked at a bounded number of times.
 */
export class PieceSplitter {
  readonly #chars = new CharClasses();
  readonly #isO200k: boolean;

  constructor(encoding: Encoding) {
    this.#isO200k = encoding === 'o200k_base';
  }

  /** The end of the piece that starts at `start` < `bytes.length`; `bytes` is valid UTF-8. */
  pieceEnd(bytes: Uint8Array, start: number): number {
    const char = this.#chars.at(bytes, start);
    const word = this.#isO200k ? this.#o200kWord(bytes, start, char) : this.#cl100kWord(bytes, start, char);
    if (word > start) return word;
    if ((char & NUMBER) !== 0) return this.#digits(bytes, start);
    const symbols = this.#symbols(bytes, start);
    return symbols > start ? symbols : this.#spaces(bytes, start);
  }

  /**
   * o200k_base, `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+('s|…)?` and its twin,
   * tried second, that needs capitals but no lower case. A mark may be prefix or letter, and is read as a letter: the
   * first alternative then always matches, and gives the same piece either way.
   */
  #o200kWord(bytes: Uint8Array, start: number, first: number): number {
    const letters = (first & (BLANK | SYMBOL)) !== 0 ? start + widthOf(first) : start;
    let end = letters;
    let lastCaselessEnd = letters;
    while (end < bytes.length) {
      const char = this.#chars.at(bytes, end);
      if ((char & (UPPER | CASELESS | MARK)) === 0) {
        if ((char & LOWER) !== 0) {
          return this.#withContraction(bytes, this.#chars.runEnd(bytes, end, LOWER | CASELESS | MARK));
        }
        break;
      }
      end += widthOf(char);
      if ((char & UPPER) === 0) lastCaselessEnd = end;
    }
    if (end === letters) return start;
    // No lower case follows: the pattern gives back capitals until a caseless letter can stand as its lower-case end.
    return this.#withContraction(bytes, lastCaselessEnd > letters ? lastCaselessEnd : end);
  }

  /** cl100k_base, `('s|…)|[^\r\n\p{L}\p{N}]?\p{L}+`. */
  #cl100kWord(bytes: Uint8Array, start: number, first: number): number {
    const contraction = this.#withContraction(bytes, start);
    if (contraction > start) return contraction;
    const letters = (first & (MARK | BLANK | SYMBOL)) !== 0 ? start + widthOf(first) : start;
    const end = this.#chars.runEnd(bytes, letters, LETTER);
    return end > letters ? end : start;
  }

  /** `'s|'t|'re|'ve|'m|'ll|'d` in either case, if it stands at `index`: its end, else `index`. */
  #withContraction(bytes: Uint8Array, index: number): number {
    if (bytes[index] !== CODE_APOSTROPHE) return index;
    const first = (bytes[index + 1] ?? 0) | LOWER_CASE_BIT;
    const letters = String.fromCharCode(first, (bytes[index + 2] ?? 0) | LOWER_CASE_BIT);
    if (/^[stmd]/.test(letters)) return index + 2;
    return /^(?:re|ve|ll)/.test(letters) ? index + 3 : index;
  }

  /** `\p{N}{1,3}` */
  #digits(bytes: Uint8Array, start: number): number {
    let end = start;
    for (let count = 0; count < MAX_DIGITS && end < bytes.length; count++) {
      const char = this.#chars.at(bytes, end);
      if ((char & NUMBER) === 0) break;
      end += widthOf(char);
    }
    return end;
  }

  /** ` ?[^\s\p{L}\p{N}]+[\r\n]*`; o200k_base also takes slashes among the line ends. */
  #symbols(bytes: Uint8Array, start: number): number {
    const symbols = bytes[start] === CODE_SPACE ? start + 1 : start;
    let end = this.#chars.runEnd(bytes, symbols, MARK | SYMBOL);
    if (end === symbols) return start;
    while (isLineEnd(bytes[end]) || (this.#isO200k && bytes[end] === CODE_SLASH)) end++;
    return end;
  }

  /** `\s*[\r\n]+|\s+(?!\S)|\s+` */
  #spaces(bytes: Uint8Array, start: number): number {
    let end = start;
    let lastStart = start;
    let lastLineEnd = start;
    while (end < bytes.length) {
      const char = this.#chars.at(bytes, end);
      if ((char & SPACE) === 0) break;
      lastStart = end;
      end += widthOf(char);
      if ((char & LINE_END) !== 0) lastLineEnd = end;
    }
    if (lastLineEnd > start) return lastLineEnd;
    // The last blank before a word belongs to that word's piece.
    return end < bytes.length && lastStart > start ? lastStart : end;
  }
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x0d;
}
