/**
 * The packed form of a tokenizer's ranks, little-endian: a 4-byte mark, the number of tokens (u32), one length byte per
 * token in rank order, then the tokens' bytes. A rank that no token has is a length of 0.
 */
const MARK = 0x31455042; // "BPE1"
const HEADER_BYTES = 8;

const BASE64_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** Value of a base64 digit by its character code. */
const BASE64_VALUES = Uint8Array.from({ length: 128 }, (_, code) => BASE64_DIGITS.indexOf(String.fromCharCode(code)));

export interface UnpackedRanks {
  /** Bytes of each token, by rank; 0 where a rank has no token. */
  readonly lengths: Uint8Array;
  /** All tokens, one after the other in rank order. */
  readonly bytes: Uint8Array;
}

/**
 * Packs ranks in the form js-tiktoken ships them: lines of `! <first rank> <base64 token> <base64 token> …`.
 * Throws if a token is longer than a length byte can say.
 */
export function packRanks(lines: string): Uint8Array {
  const tokens: string[] = [];
  for (const line of lines.split('\n')) {
    const [, firstRank, ...encoded] = line.split(' ');
    for (let rank = tokens.length; rank < Number(firstRank); rank++) tokens.push('');
    for (const token of encoded) tokens.push(token);
  }
  const lengths = Uint8Array.from(tokens, decodedLength);
  const packed = new Uint8Array(HEADER_BYTES + lengths.length + sum(lengths));
  const header = new DataView(packed.buffer);
  header.setUint32(0, MARK, true);
  header.setUint32(4, lengths.length, true);
  packed.set(lengths, HEADER_BYTES);
  let offset = HEADER_BYTES + lengths.length;
  for (const token of tokens) offset = decodeBase64(token, packed, offset);
  return packed;
}

/** Views into `packed`, nothing copied. Throws if it is not what `packRanks` made, or not all of it. */
export function unpackRanks(packed: Uint8Array): UnpackedRanks {
  const header = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  if (packed.length < HEADER_BYTES || header.getUint32(0, true) !== MARK) throw new Error('not packed ranks');
  const bytesStart = HEADER_BYTES + header.getUint32(4, true);
  const lengths = packed.subarray(HEADER_BYTES, bytesStart);
  const bytes = packed.subarray(bytesStart);
  if (sum(lengths) !== bytes.length) throw new Error('packed ranks are damaged');
  return { lengths, bytes };
}

function sum(lengths: Uint8Array): number {
  return lengths.reduce((total, length) => total + length, 0);
}

function decodedLength(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  const length = (base64.length / 4) * 3 - padding;
  if (length > 255) throw new Error(`a token of ${length} bytes cannot be packed`);
  return length;
}

/** Writes what `base64` says at `offset`; the offset behind it. */
function decodeBase64(base64: string, target: Uint8Array, offset: number): number {
  let end = offset;
  let bits = 0;
  let bitCount = 0;
  for (let index = 0; index < base64.length && base64[index] !== '='; index++) {
    bits = (bits << 6) | (BASE64_VALUES[base64.charCodeAt(index)] ?? 0);
    bitCount += 6;
    if (bitCount >= 8) {
      bitCount -= 8;
      target[end++] = bits >> bitCount;
    }
  }
  return end;
}
