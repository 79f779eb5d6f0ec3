import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { elementSpans, memberSpans } from '../../src/dialects/json-spans.js';

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const escapedText = fc
  .array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\\"', '\\\\', '{', ']', ',')))
  .map((bits) => bits.join(''));

/** A JSON text of a random value: random white space, characters escaped at random, names that may repeat. */
const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('null', 'true', 'false', '0', '-1.50e+3', '123456789012345678901234567890', '""', '[]', '{ }'),
    stringText(),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .array(fc.tuple(space, tie('value'), space), { maxLength: 4 })
    .map((list) => `[${list.map((part) => part.join('')).join(',')}]`),
  object: fc
    .array(
      fc.tuple(
        space,
        fc.oneof(fc.constantFrom('"a"', '"\\u0061"', '"messages"', '"__proto__"'), stringText()),
        space,
        space,
        tie('value'),
        space,
      ),
      {
        maxLength: 5,
      },
    )
    .map((list) => `{${list.map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`).join(',')}}`),
})).value;

function stringText(): fc.Arbitrary<string> {
  return fc.tuple(escapedText, fc.array(fc.boolean(), { minLength: 1 })).map(([text, flips]) => {
    const units = text
      .split('')
      .map((unit, index) =>
        flips[index % flips.length] === true
          ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
          : JSON.stringify(unit).slice(1, -1),
      );
    return `"${units.join('')}"`;
  });
}

describe('json spans', () => {
  test('the spans of members and elements parse to what JSON.parse finds there, the last of repeated names', () => {
    fc.assert(
      fc.property(jsonText, space, space, (json, before, after) => {
        const text = `${before}${json}${after}`;
        const value: unknown = JSON.parse(text);
        const parseAt = ({ start, end }: { start: number; end: number }): unknown => JSON.parse(text.slice(start, end));
        const isArray = Array.isArray(value);
        expect(elementSpans(text).map(parseAt)).toEqual(isArray ? value : []);
        const members = [...memberSpans(text)].map(([name, span]) => [name, parseAt(span)]);
        expect(new Map(members as [string, unknown][])).toEqual(
          new Map(typeof value === 'object' && value !== null && !isArray ? Object.entries(value) : []),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  test('a span holds the very characters of its value, without the white space around it', () => {
    const text = '\n{ "a" : 1.50 ,\t"b":[ 10000000000000000001 , "x\\\\" ] , "a" : "\\"}" }';
    const cut = (span: { start: number; end: number } | undefined): string => text.slice(span?.start, span?.end);
    const members = memberSpans(text);
    expect([...members.keys()]).toEqual(['a', 'b']);
    expect(cut(members.get('a'))).toBe('"\\"}"');
    expect(elementSpans(text, members.get('b')?.start).map(cut)).toEqual(['10000000000000000001', '"x\\\\"']);
  });

  test('nesting of a million levels is skipped without exhausting the stack', () => {
    const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000);
    const span = memberSpans(`{"deep":${deep},"b":1}`).get('b');
    expect(span).toEqual({ start: 8 + 2_000_000 + 5, end: 8 + 2_000_000 + 6 });
  });
});

test('white space behind a literal costs its length once, however long it is', () => {
  const text = `{"n":1${' '.repeat(1_000_000)},"m":2}`;
  const span = memberSpans(text).get('n');
  expect(text.slice(span?.start, span?.end)).toBe('1');
});
