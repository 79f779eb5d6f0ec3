const LF = 10;
const CR = 13;
const DEFAULT_LIMIT_BYTES = 8 * 1024 * 1024;

/** A piece of a server-sent event stream. The pieces' bytes, in order, are the stream's bytes: none added, none lost. */
export interface SseBlock {
  readonly bytes: Uint8Array;
  /** The `event` field; null if there is none. */
  readonly event: string | null;
  /** The `data` lines joined by LF; null if there are none (comments, bare blank lines) or it was not decoded. */
  readonly data: string | null;
  /** One event with its blank line. False for the stream's unterminated tail and for pieces of an event over the limit. */
  readonly whole: boolean;
  /** A piece of an event over the limit. */
  readonly oversized: boolean;
}

export interface SseSplitter {
  /** The blocks that `chunk` completes. An event is complete at its blank line, without a look at what follows. */
  push(chunk: Uint8Array): readonly SseBlock[];
  /** The tail, decoded as far as it came. Empty when the stream ended at a blank line. */
  end(): readonly SseBlock[];
}

/**
 * Splits a byte stream into events and keeps every byte, so that what is relayed is what was sent: the reason why this is
 * not eventsource-parser, which yields fields only. Line ends may be LF, CRLF or CR, mixed, and chunks may be cut at any
 * byte; a LF cut off from its CR at an event's very end opens the next block, where a parser ignores it. Memory stays
 * under `limitBytes` and one chunk: an event that is larger is handed on in pieces with neither field.
 */
export function createSseSplitter(limitBytes: number = DEFAULT_LIMIT_BYTES): SseSplitter {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  let lineEmpty = true;
  let afterCr = false;
  let oversized = false;
  let streamStart = true;

  function take(last: Uint8Array, whole: boolean): SseBlock {
    const bytes = pending.length === 0 ? last : concat([...pending, last], pendingBytes + last.length);
    pending = [];
    pendingBytes = 0;
    const skippedBytes = streamStart && startsWithBom(bytes) ? 3 : 0;
    streamStart = false;
    if (oversized || bytes.length > limitBytes) {
      return { bytes, event: null, data: null, whole: false, oversized: true };
    }
    return { bytes, ...readFields(decoder.decode(bytes.subarray(skippedBytes))), whole, oversized: false };
  }

  function keep(rest: Uint8Array): readonly SseBlock[] {
    if (rest.length === 0) return [];
    if (oversized || pendingBytes + rest.length > limitBytes) {
      oversized = true;
      return [take(rest, false)];
    }
    pending.push(rest);
    pendingBytes += rest.length;
    return [];
  }

  return {
    push(chunk) {
      if (chunk.length === 0) return [];
      const blocks: SseBlock[] = [];
      let start = 0;
      let at = afterCr && chunk[0] === LF ? 1 : 0;
      afterCr = false;
      let nextLf = -1;
      let nextCr = -1;
      while (at < chunk.length) {
        if (nextLf < at) nextLf = indexOrEnd(chunk, LF, at);
        if (nextCr < at) nextCr = indexOrEnd(chunk, CR, at);
        const lineEnd = Math.min(nextLf, nextCr);
        const blank = lineEmpty && lineEnd === at;
        lineEmpty = lineEnd < chunk.length;
        if (!lineEmpty) break;
        at = lineEnd + 1;
        if (lineEnd === nextCr && chunk[at] === LF) at += 1;
        else if (lineEnd === nextCr) afterCr = at === chunk.length;
        if (!blank) continue;
        blocks.push(take(chunk.subarray(start, at), true));
        oversized = false;
        start = at;
      }
      blocks.push(...keep(chunk.subarray(start)));
      return blocks;
    },
    end() {
      return pendingBytes === 0 ? [] : [take(new Uint8Array(0), false)];
    },
  };
}

function indexOrEnd(bytes: Uint8Array, byte: number, from: number): number {
  const index = bytes.indexOf(byte, from);
  return index === -1 ? bytes.length : index;
}

function startsWithBom(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

function concat(parts: readonly Uint8Array[], totalBytes: number): Uint8Array {
  const joined = new Uint8Array(totalBytes);
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

function readFields(text: string): { readonly event: string | null; readonly data: string | null } {
  let event: string | null = null;
  let data: string | null = null;
  for (const line of text.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    if (field !== 'data' && field !== 'event') continue;
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') event = value;
    else data = data === null ? value : `${data}\n${value}`;
  }
  return { event, data };
}
