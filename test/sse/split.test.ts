import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeSse } from '../../src/sse/encode.js';
import { createSseSplitter, type SseBlock } from '../../src/sse/split.js';

const utf8 = new TextEncoder();

function split(chunks: readonly Uint8Array[], limitBytes?: number): readonly SseBlock[] {
  const splitter = createSseSplitter(limitBytes);
  return [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()];
}

function splitText(input: string, limitBytes?: number): readonly SseBlock[] {
  return split([utf8.encode(input)], limitBytes);
}

function text({ bytes }: SseBlock): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

function events(blocks: readonly SseBlock[]): readonly (readonly [string | null, string | null])[] {
  return blocks.filter(({ event, data }) => event !== null || data !== null).map(({ event, data }) => [event, data]);
}

function cut(bytes: Uint8Array, at: readonly number[]): readonly Uint8Array[] {
  const ends = [...new Set(at.map((position) => position % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...ends].map((start, index) => bytes.slice(start, ends[index] ?? bytes.length));
}

const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
const line = fc.oneof(
  fc.constantFrom(
    '',
    '',
    'data',
    'data:',
    'data: ',
    ': comment',
    'event: name',
    'event:x',
    'id: 1',
    'retry: 5',
    'data: [DONE]',
  ),
  fc.string({ unit: 'binary' }).map((value) => `data: ${value}`),
  fc.string({ unit: 'grapheme' }),
);
const stream = fc
  .tuple(
    fc.constantFrom('', '\uFEFF'),
    fc.array(
      fc.tuple(line, lineEnd).map((parts) => parts.join('')),
      { maxLength: 30 },
    ),
  )
  .map(([bom, lines]) => utf8.encode(bom + lines.join('')));

describe('createSseSplitter', () => {
  it('yields each event with its raw bytes, blank line included', () => {
    const blocks = splitText('event: a\ndata: 1\n\ndata: 2\ndata: 3\n\n');
    expect(blocks.map(text)).toEqual(['event: a\ndata: 1\n\n', 'data: 2\ndata: 3\n\n']);
    expect(events(blocks)).toEqual([
      ['a', '1'],
      [null, '2\n3'],
    ]);
    expect(blocks.every(({ whole }) => whole)).toBe(true);
  });

  it('takes one space off a value, knows fields without a colon, and ignores other fields', () => {
    expect(events(splitText('data:a\ndata:  b\ndata\nid: 7\nretry: 1\ndatax: no\n\n'))).toEqual([[null, 'a\n b\n']]);
  });

  it('yields comments and bare blank lines as blocks without data', () => {
    const blocks = splitText(': ping\n\n\ndata: 1\n\n');
    expect(blocks.map(text)).toEqual([': ping\n\n', '\n', 'data: 1\n\n']);
    expect(blocks.map(({ data }) => data)).toEqual([null, null, '1']);
  });

  it('completes an event at its blank line without waiting for a byte more, whatever the line end', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const splitter = createSseSplitter();
      expect(splitter.push(utf8.encode(`data: 1${end}${end}`)).map(({ data }) => data)).toEqual(['1']);
    }
  });

  it('does not take the halves of a CRLF for two line ends', () => {
    expect(
      events(split(['data: 1\r', '\ndata: 2\r', '\n\r', '\ndata: 3\r\n\r\n'].map((part) => utf8.encode(part)))),
    ).toEqual([
      [null, '1\n2'],
      [null, '3'],
    ]);
  });

  it('skips a byte order mark at the start only', () => {
    expect(events(splitText('\uFEFFdata: 1\n\n\uFEFFdata: 2\n\ndata: \uFEFF3\n\n'))).toEqual([
      [null, '1'],
      [null, '\uFEFF3'],
    ]);
  });

  it('yields an unterminated tail, decoded as far as it came and marked', () => {
    const [first, tail, ...rest] = splitText('data: 1\n\ndata: [DONE]');
    expect(first).toMatchObject({ data: '1', whole: true });
    expect(tail).toMatchObject({ data: '[DONE]', whole: false });
    expect(rest).toEqual([]);
  });

  it('hands an event over the limit on raw and undecoded, and goes on with the next', () => {
    const blocks = splitText(`data: 1\n\ndata: ${'x'.repeat(50)}\n\ndata: 2\n\n`, 20);
    expect(blocks.map(({ data, whole }) => [data, whole])).toEqual([
      ['1', true],
      [null, false],
      ['2', true],
    ]);
  });

  it('keeps no more than the limit and one chunk, however long an event is', () => {
    const splitter = createSseSplitter(100);
    let keptBytes = 0;
    let mostKeptBytes = 0;
    for (let index = 0; index < 1000; index += 1) {
      keptBytes += 10;
      for (const block of splitter.push(utf8.encode('x'.repeat(10)))) keptBytes -= block.bytes.length;
      mostKeptBytes = Math.max(mostKeptBytes, keptBytes);
    }
    expect(mostKeptBytes).toBe(100);
    expect(events([...splitter.push(utf8.encode('\n\ndata: 2\n\n')), ...splitter.end()])).toEqual([[null, '2']]);
  });

  it('keeps every byte, for any bytes, any cuts and any limit', () => {
    const bytes = fc.oneof(stream, fc.uint8Array({ max: 16 }), fc.uint8Array());
    fc.assert(
      fc.property(bytes, fc.array(fc.nat()), fc.integer({ min: 1, max: 200 }), (input, at, limitBytes) => {
        const blocks = split(cut(input, at), limitBytes);
        expect(Buffer.concat(blocks.map((block) => block.bytes))).toEqual(Buffer.from(input));
        expect(blocks.every((block) => block.bytes.length > 0)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('finds the same events wherever the chunks are cut', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat()), (input, at) => {
        expect(events(split(cut(input, at)))).toEqual(events(split([input])));
      }),
      { numRuns: 2000 },
    );
  });

  it('finds the same events when every byte is a chunk of its own', () => {
    fc.assert(
      fc.property(stream, (input) => {
        expect(events(split(Array.from(input, (byte) => Uint8Array.of(byte))))).toEqual(events(split([input])));
      }),
    );
  });

  it('agrees with a reading of the standard line by line', () => {
    fc.assert(
      fc.property(stream, (input) => {
        expect(events(split([input]))).toEqual(readByTheStandard(new TextDecoder().decode(input)));
      }),
      { numRuns: 1000 },
    );
  });
});

/** Normalises line ends first and cuts at blank lines: plain, and only possible with the whole text at hand. */
function readByTheStandard(whole: string): readonly (readonly [string | null, string | null])[] {
  const blocks = whole.replaceAll(/\r\n|\r/g, '\n').split(/(?<=\n|^)\n/);
  return blocks
    .map((block) => {
      const fields = block.split('\n').map((one) => /^([^:]*)(?:: ?)?(.*)$/su.exec(one)?.slice(1) ?? []);
      const data = fields.filter(([name]) => name === 'data').map(([, value]) => value);
      const event = fields.findLast(([name]) => name === 'event')?.[1] ?? null;
      return [event, data.length === 0 ? null : data.join('\n')] as const;
    })
    .filter(([event, data]) => event !== null || data !== null);
}

describe('encodeSse', () => {
  it('writes the event name first and each line of data on its own', () => {
    expect(new TextDecoder().decode(encodeSse('1\n2', 'ping'))).toBe('event: ping\ndata: 1\ndata: 2\n\n');
  });

  it('is undone by the splitter, line ends of the data as LF', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.option(fc.constantFrom('ping', 'a b', '')), (data, event) => {
        expect(events(split([encodeSse(data, event)]))).toEqual([[event, data.replaceAll(/\r\n|\r/g, '\n')]]);
      }),
    );
  });
});
