import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeError, MAX_DEPTH, MAX_NODES, MAX_TEXT_CHARACTERS } from '../../../src/core/overflow/decode.js';
import { TEXT_FAMILIES } from '../../../src/core/overflow/families.js';
import { COUNT } from '../../../src/core/overflow/limits.js';
import { MAX_CLIENT_LOOKUPS } from '../../../src/core/overflow/recognise.js';
import { errorBody, recognise } from './evidence.js';

const nobody = (): boolean => false;
const read = (body: unknown): ReturnType<typeof decodeError> =>
  decodeError(typeof body === 'string' ? body : JSON.stringify(body), nobody);

describe('an error body is read generously (SPEC 6.1)', () => {
  it('finds text, codes and statuses wherever they stand', () => {
    expect(read({ error: { message: 'a b', code: 'x_y', param: 'messages' }, status: 400 })).toMatchObject({
      texts: ['a b', 'messages'],
      codes: ['x_y', '400'],
      statuses: [400],
    });
    expect(read({ code: 'prose of a code', error: 'text' }).texts).toEqual(['prose of a code', 'text']);
    expect(read({ error: 'context_exceeded' }).codes).toEqual(['context_exceeded']);
    expect(read({ error: { code: '429' } }).statuses).toEqual([429]);
  });

  it('reads counts that came as fields, as numbers or as digits', () => {
    expect(read({ error: { n_prompt_tokens: 9000, n_ctx: '8192' } })).toMatchObject({ used: 9000, limit: 8192 });
    expect(read({ error: { n_prompt_tokens: -1, n_ctx: 'many' } })).toMatchObject({ used: null, limit: null });
    expect(read({ usage: { prompt_tokens: 5 }, error: {} })).toMatchObject({ used: null });
  });

  it('reads a page of HTML as its text', () => {
    expect(
      read('<html><head><title>413 Request Entity Too Large</title></head><body>model&#39;s &gt; x</body></html>')
        .texts,
    ).toEqual(["413 Request Entity Too Large model's > x"]);
  });

  it('reads nothing out of nothing', () => {
    for (const body of ['', '   ', 'null', '{}', '[]', '""', '42', 'data: [DONE]\n\n']) {
      expect(read(body)).toMatchObject({ texts: [], codes: [], statuses: [], limit: null, used: null });
    }
  });

  it('does not take a range in prose for JSON', () => {
    expect(read('Range of input length should be [1, 6000]').texts).toEqual([
      'Range of input length should be [1, 6000]',
    ]);
  });

  it('says each text once', () => {
    expect(read({ error: { message: 'same', details: 'same', errors: [{ message: 'same' }] } }).texts).toEqual([
      'same',
    ]);
  });

  it('keeps both ends of a text that is too long', () => {
    const [text = ''] = read(errorBody(`first ${'x'.repeat(200_000)} last`)).texts;
    expect(text.startsWith('first ')).toBe(true);
    expect(text.endsWith(' last')).toBe(true);
  });

  it('never throws, and keeps its bounds, whatever the body is', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => `x ${json} y`),
          fc.json().map((json) => `data:${json}\n\n`),
        ),
        (body) => {
          const decoded = read(body);
          expect(decoded.nodes).toBeLessThanOrEqual(MAX_NODES);
          expect(recognise(body).reason.length).toBeGreaterThan(0);
        },
      ),
    );
  });
});

describe('a hostile body costs no more than its length (SPEC 6.1)', () => {
  const MEGABYTE = 1_000_000;
  const seeds = [
    '[',
    '{',
    '"',
    '{"a":',
    '[{"message":"x"},',
    '{"a":1} ',
    'data: {"error":"x"}\n\n',
    "'prompt is too long' ",
    'exceeds context ',
    'prompt 1 ',
    '<',
    '\\"',
    '1,111,',
    'input max_tokens ',
  ];

  it.each(seeds)('a megabyte of %s', (seed) => {
    const text = seed.repeat(Math.ceil(MEGABYTE / seed.length));
    for (const body of [text, errorBody(text)]) {
      let lookups = 0;
      const decoded = read(body);
      expect(decoded.nodes).toBeLessThanOrEqual(MAX_NODES);
      expect(decoded.texts.join('').length).toBeLessThanOrEqual(MAX_TEXT_CHARACTERS);
      recognise(body, {
        clientWrote: () => {
          lookups += 1;
          return false;
        },
      });
      expect(lookups).toBeLessThanOrEqual(MAX_CLIENT_LOOKUPS);
    }
  });

  it('nesting ends at its bound', () => {
    const nest = (levels: number): string => `${'{"error":'.repeat(levels)}"prompt is too long"${'}'.repeat(levels)}`;
    expect(read(nest(MAX_DEPTH)).texts).toHaveLength(1);
    expect(read(nest(MAX_DEPTH + 1)).texts).toHaveLength(0);
  });

  it('a value nested past all sense is not parsed but searched', () => {
    const body = `${'['.repeat(500)}{"error":"prompt is too long"}${']'.repeat(500)}`;
    expect(read(body).texts).toContain('prompt is too long');
  });

  it('no pattern repeats without a bound, so none can backtrack without one', () => {
    for (const source of [
      ...TEXT_FAMILIES.flatMap(({ pattern, besides }) => [pattern.source, besides?.source ?? '']),
      COUNT,
    ]) {
      const bare = source.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x');
      expect(bare).not.toMatch(/[*+]|\{\d+,\}/);
    }
  });
});
