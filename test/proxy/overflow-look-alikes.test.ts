import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeError } from '../../src/core/overflow/decode.js';
import { replayedOverflow } from '../../src/simulator/replayed-overflow.js';
import type { Replay } from '../../src/simulator/replayed-overflow.js';
import { say } from '../../src/simulator/reply-plan.js';
import { errorBody, reportedCases } from '../core/overflow/evidence.js';
import type { ReportedCase } from '../core/overflow/evidence.js';
import type { WireMessage } from '../support/chat.js';
import { sendChat } from '../support/raw-client.js';
import { FACT_TOLD, longConversation, scriptedPair } from '../support/scripted-pair.js';

const pair = scriptedPair();
/** For very many requests at once. */
const busy = scriptedPair({ SPILLWAY_STORE: 'memory' });

const LIMITED = { 'content-type': 'application/json', 'retry-after': '7', 'x-ratelimit-reset-tokens': '6m0s' };
const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8', 'retry-after': '7' };

interface Sent {
  readonly model: string;
  readonly stream: boolean;
  readonly messages?: readonly WireMessage[];
}

/** One request over a connection of its own; the body is what came over the wire. */
async function send({ model, stream, messages = longConversation(model) }: Sent, to = pair) {
  const answer = await sendChat(to.started.spillway.url, { model, stream, messages }).answer;
  return { status: answer.status, headers: answer.headers, body: await answer.body() };
}

/** The error reaches the client as it was sent, and nothing was asked but what the client asked. */
async function expectUntouched(sent: Sent, body: string | Uint8Array, status: number, headers: Record<string, string>) {
  pair.script(sent.model, replayedOverflow(body, status, { times: Infinity, headers }));
  pair.newRequests();
  const answer = await send(sent);
  expect(answer.status).toBe(status);
  expect(answer.body.equals(Buffer.from(body))).toBe(true);
  expect(answer.headers).toMatchObject({ ...headers, 'x-spillway-action': 'none' });
  expect(answer.headers['x-request-id']).toMatch(/^req_simulated_/);
  expect(pair.newRequests().map(({ kind }) => kind)).toEqual(['chat']);
}

const textOf = (line: ReportedCase): string => (typeof line.body === 'string' ? line.body : JSON.stringify(line.body));

/** A cap on bytes is an overflow that compaction may help with (SPEC 6.4); the others are none. */
const lookAlikes = reportedCases
  .map((line, index) => ({ line, name: `${index} ${line.provider} ${line.status} ${line.class}` }))
  .filter(({ line }) => !line.is_overflow && line.class !== 'bytes');

describe('what only looks like an overflow reaches the client byte for byte (SPEC 6.1)', () => {
  it('none is forgotten', () => expect(lookAlikes).toHaveLength(44));

  const cases = lookAlikes.flatMap(({ line, name }) =>
    [false, true]
      .filter((stream) => stream || line.where !== 'sse')
      .map((stream) => [`${name}, stream ${stream}`, stream, line] as const),
  );

  it.each(cases)('%s', (model, stream, line) => {
    const isEvents = line.status < 400 && stream;
    const body = isEvents && line.where !== 'sse' ? `data: ${textOf(line)}\n\n` : textOf(line);
    return expectUntouched({ model, stream }, body, line.status, isEvents ? EVENTS : LIMITED);
  });

  it('a hundred times in a row without a compaction, a learned window or one request too many', async () => {
    const refusals = lookAlikes.filter(({ line }) => line.status >= 400).slice(0, 20);
    expect(refusals).toHaveLength(20);
    await Promise.all(
      refusals.map(async ({ line, name }) => {
        busy.script(name, replayedOverflow(textOf(line), line.status, { times: Infinity, headers: LIMITED }));
        const messages = longConversation(name, 100);
        for (let time = 0; time < 100; time++) {
          const { status, body } = await send({ model: name, stream: time % 2 === 0, messages }, busy);
          expect(status).toBe(line.status);
          expect(body.toString()).toBe(textOf(line));
        }
      }),
    );
    const requests = busy.newRequests();
    expect(requests.filter(({ kind }) => kind === 'summary')).toEqual([]);
    expect(requests).toHaveLength(2_000);
    const { data } = (await busy.started.api('/models')) as { data: { source: string }[] };
    expect(data.length).toBeGreaterThan(0);
    expect(data.filter(({ source }) => source === 'learned')).toEqual([]);
  }, 120_000);
});

/** What providers say of an overflow, each sentence once. */
const SENTENCES: readonly string[] = [
  ...new Set(
    reportedCases
      .filter((line) => line.is_overflow)
      .flatMap((line) => decodeError(textOf(line), () => false).texts.toSorted((a, b) => b.length - a.length)[0] ?? []),
  ),
];

type Echo = readonly [
  place: string,
  messages: (sentence: string) => readonly WireMessage[],
  error: (sentence: string) => string,
];

const called = (argumentsText: string, result: string): readonly WireMessage[] => [
  { role: 'user', content: 'Look it up.' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'search', arguments: argumentsText } }],
  },
  { role: 'tool', tool_call_id: 'call_1', content: result },
];

const ECHOES: readonly Echo[] = [
  [
    'a message',
    (sentence) => [{ role: 'user', content: `I got this error: ${sentence}` }],
    (sentence) => `Invalid value: 'I got this error: ${sentence}'. Supported values are: 'auto' and 'none'.`,
  ],
  [
    'a part of a message',
    (sentence) => [{ role: 'user', content: `What does "${sentence}" mean?` }],
    (sentence) => `Invalid 'messages[0].content': the template does not allow '${sentence}' here.`,
  ],
  [
    'a part of a message, without quotes',
    (sentence) => [{ role: 'user', content: `What does "${sentence}" mean?` }],
    (sentence) => `Invalid 'messages[0].content': the template does not allow ${sentence} here.`,
  ],
  [
    'a tool result',
    (sentence) => called('{}', `Log:\n${sentence}\nEnd.`),
    (sentence) => `Invalid 'messages[2].content': expected JSON but got "${sentence}".`,
  ],
  [
    'tool arguments',
    (sentence) => called(JSON.stringify({ query: sentence }), 'Nothing.'),
    (sentence) => `Failed to parse tool call arguments as JSON: ${JSON.stringify({ query: sentence })}`,
  ],
  [
    'the name of a file',
    (sentence) => [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Read this.' },
          { type: 'file', file: { filename: `${sentence}.pdf`, file_data: 'data:application/pdf;base64,JVBERi0=' } },
        ],
      },
    ],
    (sentence) => `The file ${sentence}.pdf could not be opened: it is encrypted.`,
  ],
];

describe('what the client wrote itself is no evidence (SPEC 6.1)', () => {
  it('every family of sentences is tried', () => expect(SENTENCES.length).toBeGreaterThan(50));

  it.each(ECHOES.map(([place, messages, error]) => [place, messages, error] as const))(
    'played back in an unrelated error: %s',
    async (place, messages, error) => {
      for (const [index, sentence] of SENTENCES.entries()) {
        const model = `echo ${place} ${index}`;
        const history = [...longConversation(model).slice(0, -1), ...messages(sentence)];
        const body = errorBody(error(sentence), { code: 'invalid_value', param: 'messages' });
        await expectUntouched({ model, stream: index % 2 === 0, messages: history }, body, 400, LIMITED);
      }
    },
  );

  it.each([false, true])('said by the model itself it is a reply, stream %s', async (stream) => {
    for (const [index, sentence] of SENTENCES.entries()) {
      const model = `said ${index} ${stream}`;
      pair.script(model, () => say(sentence));
      pair.newRequests();
      const messages = [{ role: 'user', content: `Say: ${sentence}` }];
      const { status, headers } = await send({ model, stream, messages });
      expect(status).toBe(200);
      expect(headers['x-spillway-action']).toBe('none');
      expect(pair.newRequests().map(({ kind }) => kind)).toEqual(['chat']);
    }
  });

  it('does not hide an overflow that the client only talks about', async () => {
    const sentence = 'prompt is too long: 213462 tokens > 200000 maximum';
    const model = 'talks of overflows';
    const messages = [...longConversation(model, 250)];
    messages.splice(
      2,
      0,
      { role: 'user', content: `What is this? ${sentence}` },
      { role: 'assistant', content: 'Hm.' },
    );
    pair.script(model, replayedOverflow(errorBody(sentence), 400));
    const { status, body } = await send({ model, stream: false, messages });
    expect(status).toBe(200);
    expect(body.toString()).toContain(FACT_TOLD);
  });
});

/** An error that says nothing of sizes, in bytes that no JSON writer makes. */
const ODD_BODIES: readonly (readonly [string, string | Uint8Array, Record<string, string>])[] = [
  ['odd white space and numbers', ' {"error" :{"message":"No.","big":12345678901234567890}}\r\n\n', {}],
  [
    'bytes that are no UTF-8',
    Buffer.from('7b226572726f72223a22ff fe c0 80 ed a0 80 22 7d'.replaceAll(' ', ''), 'hex'),
    {},
  ],
  ['a byte order mark', Buffer.from('\uFEFF{"error":{"message":"No."}}'), {}],
  [
    'UTF-16',
    Buffer.from('{"error":{"message":"No."}}', 'utf16le'),
    { 'content-type': 'application/json; charset=utf-16' },
  ],
  ['Latin-1', Buffer.from('{"error":{"message":"Schl\u00fcssel ung\u00fcltig"}}', 'latin1'), {}],
  ['a page', '<html>\r\n<h1>502 Bad Gateway</h1></html>\r\n', { 'content-type': 'text/html' }],
  ['zero bytes', Buffer.alloc(1_000), { 'content-type': 'application/octet-stream' }],
  ['a coding nobody can read', gzipSync(errorBody('prompt is too long')), { 'content-encoding': 'x-unheard-of' }],
  ['nothing', '', {}],
  ['a megabyte', errorBody('x'.repeat(1 << 20)), {}],
];

describe('an error that is passed on is the very bytes that came', () => {
  it.each(ODD_BODIES.flatMap(([name, ...rest]) => [400, 500].map((status) => [name, status, ...rest] as const)))(
    '%s with a %s',
    async (name, status, body, headers) => {
      for (const stream of [false, true])
        await expectUntouched({ model: `odd ${name}`, stream }, body, status, { ...LIMITED, ...headers });
    },
  );

  const context = (time: number): string =>
    `{ "error":{"code":"context_length_exceeded","big":1234567890123456789${time},\n"message":"Too long, \u00e9."} }\n`;
  const SECOND: readonly (readonly [string, number, (time: number) => string | Uint8Array, Record<string, string>])[] =
    [
      ['over HTTP', 400, context, LIMITED],
      ['with a 413', 413, context, LIMITED],
      [
        'with bytes that are no UTF-8',
        400,
        (time) => Buffer.concat([Buffer.from(context(time)), Buffer.of(0xff, 0xfe)]),
        LIMITED,
      ],
      [
        'first in a stream',
        200,
        (time) => `: hello\r\n\r\nevent: error\r\ndata: ${context(time).replace(/\n/g, '')}\r\n\r\n`,
        EVENTS,
      ],
      [
        'behind the role',
        200,
        (time) =>
          `data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\ndata: ${context(time).replace(/\n/g, '')}\n\ndata: [DONE]\n\n`,
        EVENTS,
      ],
    ];

  it.each(SECOND)('a second overflow, SPEC 6.4: %s', async (name, status, body, headers) => {
    for (const stream of status === 200 ? [true] : [false, true]) {
      const model = `second ${name} ${stream}`;
      let time = 0;
      pair.script(model, (request) => {
        time += 1;
        const replay: Replay = { headers: { ...headers, 'x-time': String(time) } };
        return replayedOverflow(body(time), status, replay)(request);
      });
      pair.newRequests();
      const answer = await send({ model, stream });
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({ ...headers, 'x-time': '2' });
      expect(answer.body.equals(Buffer.from(body(2)))).toBe(true);
      const kinds = pair.newRequests().map(({ kind }) => kind);
      expect(kinds).toEqual(['chat', ...kinds.slice(1, -1).map(() => 'summary'), 'chat']);
      expect(kinds.length).toBeGreaterThan(2);
    }
  });
});
