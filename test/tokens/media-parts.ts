import type { Media } from '../../src/core/message.js';

/** An inline image by default. */
export function part(fields: Partial<Media>): Media {
  return { kind: 'image', inline: true, data: '', mimeType: null, name: null, detail: null, ...fields };
}

/** The head of a PNG of a size, in base64: all that says how large it is. */
export function png(width: number, height: number): string {
  const bytes = Buffer.from('89504e470d0a1a0a0000000d494844520000000000000000', 'hex');
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes.toString('base64');
}

/** A JPEG whose size stands behind so many bytes of metadata, in base64. */
export function jpeg(width: number, height: number, metadataBytes: number): string {
  const chunks = [Buffer.from('ffd8', 'hex')];
  for (let left = metadataBytes; left > 0; left -= 60_000) {
    const segment = Buffer.alloc(Math.min(left, 60_000) + 4);
    segment.writeUInt16BE(0xffed, 0);
    segment.writeUInt16BE(segment.length - 2, 2);
    chunks.push(segment);
  }
  const frame = Buffer.from('ffc0001108000000000301220002110103110100', 'hex');
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  return Buffer.concat([...chunks, frame]).toString('base64');
}

/** A WAV recording with a stated number of bytes a second, in base64. */
export function wav(byteRate: number, dataBytes: number): string {
  const bytes = Buffer.alloc(44 + dataBytes);
  bytes.write('RIFF\0\0\0\0WAVEfmt ', 0, 'latin1');
  bytes.writeUInt32LE(byteRate, 28);
  return bytes.toString('base64');
}
