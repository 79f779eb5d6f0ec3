/**
 * Cuts a text into pieces of at most `maxLength` UTF-16 units that join to exactly the text: at a line's end where there
 * is one in the second half of a piece, and never inside a surrogate pair.
 */
export function splitText(text: string, maxLength: number): readonly string[] {
  const length = Math.max(2, Math.floor(maxLength));
  const pieces: string[] = [];
  let from = 0;
  while (text.length - from > length) {
    const newline = text.lastIndexOf('\n', from + length - 1);
    let to = newline >= from + length / 2 ? newline + 1 : from + length;
    if (isHighSurrogate(text.charCodeAt(to - 1)) && isLowSurrogate(text.charCodeAt(to))) to--;
    pieces.push(text.slice(from, to));
    from = to;
  }
  pieces.push(text.slice(from));
  return pieces;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
