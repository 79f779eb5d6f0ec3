/**
 * What a body is, by how it begins. `space`: nothing but white space has come; `open`: too little else to tell; `events`: an event
 * stream, whatever the headers say; `other`: anything else.
 */
export type Beginning = 'space' | 'open' | 'events' | 'other';

/** What the first line of an event stream begins with; a colon alone begins a comment. */
const FIRST = [':', 'data:', 'event:', 'id:', 'retry:'];
const LONGEST = Math.max(...FIRST.map((first) => first.length));

/** Tab, line feed, carriage return, space, and the three bytes of a byte order mark. */
const SPACE = new Set([0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf]);

/** Judges a body as its chunks come; each call judges all that came so far. */
export function createBeginning(): (chunk: Uint8Array) => Beginning {
  let seen = '';
  return (chunk) => {
    const start = seen === '' ? chunk.findIndex((byte) => !SPACE.has(byte)) : 0;
    if (start >= 0) seen += String.fromCharCode(...chunk.subarray(start, start + LONGEST - seen.length));
    if (seen === '') return 'space';
    if (FIRST.some((first) => seen.startsWith(first))) return 'events';
    return FIRST.some((first) => first.startsWith(seen)) ? 'open' : 'other';
  };
}
