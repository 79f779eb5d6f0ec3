import { SpillwayError } from './core/errors.js';

const NEWLINE = 0x0a;

/** Far above the largest message that a request can carry. */
const LONGEST_BYTES = 256 * 1024 * 1024;

/**
 * The lines of a text in UTF-8, without their ends; other separators than the newline are text. Throws `invalid_request` that names
 * the line that is too long or no UTF-8.
 */
export async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let lineNumber = 1;
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  const fault = (reason: string): SpillwayError =>
    new SpillwayError('invalid_request', `line ${lineNumber}: ${reason}`);
  const add = (piece: Uint8Array): void => {
    pieces.push(piece);
    bytes += piece.byteLength;
    if (bytes > LONGEST_BYTES) throw fault(`it is longer than ${LONGEST_BYTES} bytes`);
  };
  const take = (): string => {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    try {
      const text = pieces.map((piece) => decoder.decode(piece, { stream: true })).join('') + decoder.decode();
      [pieces, bytes] = [[], 0];
      lineNumber += 1;
      return text;
    } catch {
      throw fault('it is not UTF-8');
    }
  };

  for await (const chunk of source) {
    let from = 0;
    for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, to));
      from = to + 1;
      yield take();
    }
    if (from < chunk.byteLength) add(chunk.subarray(from));
  }
  if (bytes > 0) yield take();
}
