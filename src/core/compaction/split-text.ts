/**
 * Cuts a text into pieces of at most `maxLength` UTF-16 units that join to exactly the text (SPEC 5.6): at a line's end where there
 * is one in the second half of a piece, never inside a surrogate pair, and never inside a fenced block that fits a piece. A longer
 * block is cut at its lines' ends; only a line that is longer than a piece is cut within.
 */
export function splitText(text: string, maxLength: number): readonly string[] {
  const length = Math.max(2, Math.floor(maxLength));
  const blocks = fencedBlocks(text);
  const pieces: string[] = [];
  let from = 0;
  let next = 0;
  while (text.length - from > length) {
    const end = from + length;
    while ((blocks[next]?.to ?? Infinity) <= end) next++;
    const block = blocks[next];
    const to = cutOf(text, from, length, block !== undefined && block.from < end ? block : null);
    pieces.push(text.slice(from, to));
    from = to;
  }
  pieces.push(text.slice(from));
  return pieces;
}

/** A fenced block, whole lines, as offsets `[from, to)`. */
interface Block {
  readonly from: number;
  readonly to: number;
}

/** Where the piece ends that begins at `from`. `block`: the one that a piece of full length would cut. */
function cutOf(text: string, from: number, length: number, block: Block | null): number {
  if (block !== null && block.from > from && block.to - block.from <= length) return block.from;
  const end = from + length;
  const line = text.lastIndexOf('\n', end - 1) + 1;
  if (line >= from + (block === null ? length / 2 : 1)) return line;
  return isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end;
}

/** What opens a block, behind a label of who said it at most. */
const OPENING_FENCE = /^(?:\[[^\]\n]{1,200}\] )?[ \t]*(`{3,}(?=[^`]*$)|~{3,})/;
const CLOSING_FENCE = /^[ \t]*(`{3,}|~{3,})[ \t\r]*$/;

/** The fenced blocks of a text in order. One that is never closed goes to the end. */
function fencedBlocks(text: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: { readonly from: number; readonly fence: string } | null = null;
  for (let from = 0; from < text.length;) {
    const newline = text.indexOf('\n', from);
    const to = newline < 0 ? text.length : newline + 1;
    const line = text.slice(from, newline < 0 ? to : newline);
    if (open === null) {
      const fence = OPENING_FENCE.exec(line)?.[1];
      if (fence !== undefined) open = { from, fence };
    } else if (CLOSING_FENCE.exec(line)?.[1]?.startsWith(open.fence) === true) {
      blocks.push({ from: open.from, to });
      open = null;
    }
    from = to;
  }
  if (open !== null) blocks.push({ from: open.from, to: text.length });
  return blocks;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
