import * as fc from 'fast-check';

/** Pieces of text in which the tokenizers' patterns have to choose: one or more of each class, and their edges. */
const UNITS: readonly string[] = [
  ['a', 'z', 'ß', 'A', 'Z', 'É', 'ǅ', 'ʰ', 'ª', '中', 'あ', '한', 'א', '𝐀', '𝐚', '𐐀'],
  ['\u0301', '\u0903', '\u20dd', '\u{e0100}', '1', '42', '٣', 'Ⅷ', '½', '𝟙'],
  [' ', '  ', '\t', '\v', '\u00a0', '\u0085', '\u1680', '\u3000', '\u2028', '\ufeff', '\n', '\r', '\r\n'],
  ["'", "'s", "'LL", "'Re", "'vE", "'D", "'ſ", '’s', '/', '//', '!', '_', '-', '$', '😀', '\u200d', '\0', '\ue000'],
  ['\ud800', '\udc00', '\ud83d', '\ufffd', '<|endoftext|>', '<|fim_prefix|>', 'the', 'Hello', ' world', 'HTTP'],
].flat();

const unit = fc.constantFrom(...UNITS);

/** Text of any kind, with long runs of one unit in it. */
export const hostileText: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: unit },
      {
        weight: 1,
        arbitrary: fc.tuple(unit, fc.integer({ min: 2, max: 40 })).map(([text, times]) => text.repeat(times)),
      },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
      { weight: 1, arbitrary: fc.base64String({ maxLength: 40 }) },
    ),
    { maxLength: 24 },
  )
  .map((parts) => parts.join(''));

/** A reproducible stream of whole numbers in [0, below). */
export function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
