import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recognise, reportedCases } from './evidence.js';

type Wrap = (body: string) => string;

const asValue = (body: string): unknown => {
  try {
    const value: unknown = JSON.parse(body);
    return value;
  } catch {
    return body;
  }
};

/** What gateways, routers and servers were seen to do to an error on its way. */
const envelopes: Readonly<Record<string, Wrap>> = {
  'router prefix in message': (body) =>
    JSON.stringify({
      error: {
        message: `litellm.BadRequestError: SomeException - ${body}. Received Model Group=m\nAvailable Model Group Fallbacks=None`,
        type: 'None',
        param: 'None',
        code: '400',
      },
    }),
  'metadata.raw': (body) =>
    JSON.stringify({
      error: { message: 'Provider returned error', code: 400, metadata: { raw: body, provider_name: 'X' } },
    }),
  array: (body) => JSON.stringify([asValue(body)]),
  'event stream': (body) => `event: error\ndata: ${JSON.stringify(asValue(body))}\n\ndata: [DONE]\n\n`,
  'event stream with CRLF and no blanks': (body) =>
    `id:1\r\nevent:error\r\n:HTTP_STATUS/400\r\ndata:${JSON.stringify(asValue(body))}\r\n\r\n`,
  detail: (body) => JSON.stringify({ detail: asValue(body) }),
  'list of details': (body) => JSON.stringify({ detail: [{ loc: ['body'], msg: body, type: 'value_error' }] }),
  'JSON string': (body) => JSON.stringify(body),
  'message holding JSON': (body) => JSON.stringify({ message: body }),
  'prose after': (body) => `${body}\n\nIf you need help, contact support.`,
  'prose before': (body) => `Error code: 400 - ${body}`,
  'error within error': (body) => JSON.stringify({ error: asValue(body) }),
  'errors with status': (body) => JSON.stringify({ success: false, errors: [asValue(body)] }),
  'failed response': (body) =>
    JSON.stringify({
      type: 'response.failed',
      response: { object: 'response', status: 'failed', error: { message: body }, output: [] },
    }),
  'unheard-of keys': (body) => JSON.stringify({ ok: false, failure: { upstream_says: asValue(body) } }),
  'blanks and a BOM': (body) => `\uFEFF\n  ${body}  \n`,
};

const bodies = reportedCases
  .filter((line) => line.is_overflow && line.where === 'http' && line.body !== '')
  .map((line) => (typeof line.body === 'string' ? line.body : JSON.stringify(line.body)));
const lookAlikes = reportedCases
  .filter((line) => !line.is_overflow && line.class !== 'bytes' && line.where === 'http')
  .map((line) => ({
    status: line.status,
    body: typeof line.body === 'string' ? line.body : JSON.stringify(line.body),
  }));

const body = fc.constantFrom(...bodies);
const envelope = fc
  .constantFrom(...Object.keys(envelopes))
  .map((name) => ({ name, wrap: envelopes[name] ?? ((text: string) => text) }));
const sameAs = ({ reason: _, ...verdict }: ReturnType<typeof recognise>): unknown => verdict;

describe('no envelope changes what an error says (SPEC 6.1)', () => {
  it.each(Object.entries(envelopes))('%s', (_, wrap) => {
    for (const text of bodies) expect(sameAs(recognise(wrap(text))), text).toEqual(sameAs(recognise(text)));
  });

  it('two envelopes, one in the other', () => {
    fc.assert(
      fc.property(body, envelope, envelope, (text, outer, inner) => {
        expect(sameAs(recognise(outer.wrap(inner.wrap(text))))).toEqual(sameAs(recognise(text)));
      }),
      { numRuns: 800 },
    );
  });

  it('a look-alike stays one', () => {
    fc.assert(
      fc.property(fc.constantFrom(...lookAlikes), envelope, envelope, ({ status, body: text }, outer, inner) => {
        expect(recognise(outer.wrap(inner.wrap(text)), { status }).kind).toBe('none');
      }),
      { numRuns: 500 },
    );
  });

  it('no status from 200 to 503 but the vetoed ones takes an overflow away', () => {
    fc.assert(
      fc.property(body, fc.constantFrom(null, 200, 400, 413, 422, 424, 500, 502, 503), (text, status) => {
        expect(sameAs(recognise(text, { status }))).toEqual(sameAs(recognise(text)));
      }),
    );
  });
});

describe('a veto outweighs words, a code outweighs a veto (SPEC 6.1)', () => {
  const vetoCodes = [
    'rate_limit_exceeded',
    'rate_limit_error',
    'insufficient_quota',
    'ThrottlingException',
    'RESOURCE_EXHAUSTED',
    'overloaded_error',
    'authentication_error',
    'permission_denied',
    'billing_hard_limit_reached',
    'content_filter',
    'invalid_prompt',
  ];
  const byWords = bodies.filter((text) => {
    const verdict = recognise(text);
    return verdict.kind !== 'none' && !verdict.reason.startsWith('code');
  });
  const byCode = bodies.filter((text) => !byWords.includes(text));

  it('both kinds of evidence are among the bodies', () => {
    expect(byWords.length).toBeGreaterThan(30);
    expect(byCode.length).toBeGreaterThan(10);
  });

  it('a veto code anywhere beside words makes it none', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...byWords),
        fc.constantFrom(...vetoCodes),
        fc.constantFrom('code', 'type', 'status', 'error_type'),
        (text, code, key) => {
          expect(recognise({ error: { message: text, [key]: code } }).kind).toBe('none');
          expect(recognise([{ [key]: code }, asValue(text)]).kind).toBe('none');
        },
      ),
    );
  });

  it.each([401, 402, 403, 404, 408, 429, 504, 529])(
    'status %i makes words none, of the answer and of the body',
    (status) => {
      for (const text of byWords) {
        expect(recognise(text, { status }).kind).toBe('none');
        expect(recognise({ error: { code: status, message: text } }, { status: 200 }).kind).toBe('none');
      }
    },
  );

  it('an exact code stands against a veto', () => {
    for (const text of byCode) expect(recognise(text, { status: 429 }).kind).not.toBe('none');
  });

  it('what a router tells of other attempts is neither evidence nor veto', () => {
    const first = 'litellm.BadRequestError: prompt is too long: 9000 tokens > 8192 maximum';
    const appended = '. Received Model Group=a\nAvailable Model Group Fallbacks=b\nError doing the fallback: ';
    expect(recognise({ error: { message: `${first}${appended}litellm.RateLimitError: tokens per minute` } }).kind).toBe(
      'context',
    );
    expect(recognise({ error: { message: `litellm.APIError: broke${appended}${first}` } }).kind).toBe('none');
    expect(
      recognise({
        error: { message: `litellm.APIError: broke${appended}{"error":{"code":"context_length_exceeded"}}` },
      }).kind,
    ).toBe('none');
    expect(recognise({ error: { message: 'broke', metadata: { previous_errors: [{ message: first }] } } }).kind).toBe(
      'none',
    );
  });
});
