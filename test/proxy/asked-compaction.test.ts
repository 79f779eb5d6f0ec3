import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import type { ResponseInput } from 'openai/resources/responses/responses';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isSummaryPrompt } from '../../src/core/compaction/headings.js';
import { padding } from '../support/chat.js';
import { startProvider } from '../support/provider.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { conversationsOf, nodesOf, onlyConversation } from '../support/stored.js';

type Item = Readonly<Record<string, unknown>>;
interface Body {
  readonly object: string;
  readonly status?: string;
  readonly output: readonly Item[];
  readonly error?: { readonly message: string; readonly code: string; readonly param: string | null };
}

const model = 'any-model';
const TRIGGER = { type: 'compaction_trigger' };
const KNOWN = 'The value of FACT-harbour is blue-7.';
const user = (content: string): Item => ({ role: 'user', content });
const developer = (content: string): Item => ({ role: 'developer', content });
const question = user('What is the value of FACT-harbour?');
const windows = { SPILLWAY_WINDOWS: '*=8000', SPILLWAY_KEEP_TOKENS: '700' };
const refusing = { servesCompaction: false };

/** What an agent sends before its history. */
const context: readonly Item[] = [developer('Work with care.'), user('<cwd>/work</cwd>')];

/** One request of the user's and a tool loop; the fact is in its oldest result. */
const toolLoop = (rounds = 6): readonly Item[] => [
  ...context,
  user('Look at the files.'),
  ...Array.from({ length: rounds }, (_, index) => [
    {
      type: 'function_call',
      id: `fc_${index}`,
      call_id: `call_${index}`,
      name: 'read_file',
      arguments: `{"path":"${index}"}`,
    },
    {
      type: 'function_call_output',
      call_id: `call_${index}`,
      output: index === 0 ? 'FACT-harbour=blue-7' : padding(`file ${index}`, 200),
    },
  ]).flat(),
];

/** Turns of the user's; the fact is in the first. */
const turns: readonly Item[] = [
  user('Note this: FACT-harbour=blue-7'),
  ...['one', 'two', 'three', 'four', 'five'].flatMap((word) => [
    { role: 'assistant', content: `Said ${word}.` },
    user(padding(word, 300)),
  ]),
];

function post(pair: StartedPair, body: Item, path = '/responses', key = 'sk-test'): Promise<Response> {
  return fetch(`${pair.spillway.url}/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, store: false, ...body }),
  });
}

const read = async (answer: Promise<Response>): Promise<Body> => (await (await answer).json()) as Body;
const ask = (pair: StartedPair, input: readonly Item[], more: Item = {}) => read(post(pair, { input, ...more }));

function only(items: readonly Item[]): Item & { readonly encrypted_content: string } {
  const [item, ...more] = items;
  expect(more).toEqual([]);
  expect(item).toEqual({
    id: expect.stringMatching(/^cmp_/),
    type: 'compaction',
    encrypted_content: expect.any(String),
  });
  return item as Item & { readonly encrypted_content: string };
}

const said = ({ output }: Body): unknown => output.map(({ content }) => (content as { text: string }[])[0]?.text)[0];

/** The last body that the provider received, as text. */
function lastText(pair: StartedPair): string {
  return Buffer.from(pair.simulator.requests.at(-1)?.bytes ?? []).toString();
}

/** The input in it. */
function lastInput(pair: StartedPair): readonly Item[] {
  return (JSON.parse(lastText(pair)) as { input: Item[] }).input;
}

/** Requests that reached the provider to compact there. */
function triggers(pair: StartedPair): number {
  return pair.simulator.requests.filter(({ bytes, path }) =>
    `${path} ${Buffer.from(bytes).toString()}`.match(/"compaction_trigger"|\/compact /),
  ).length;
}

describe('an upstream that compacts', () => {
  it('is asked with the client’s own bytes, and its item goes back to it as it came', async () => {
    const pair = await startPair();
    const input = [...toolLoop(), TRIGGER];
    const item = only((await ask(pair, input)).output);
    expect(lastText(pair)).toEqual(JSON.stringify({ model, store: false, input }));
    const next = [...context, item, question];
    expect(said(await ask(pair, next))).toBe(KNOWN);
    expect(lastText(pair)).toEqual(JSON.stringify({ model, store: false, input: next }));
    expect(pair.simulator.summaryRequests()).toEqual([]);
  });

  it('is asked by path as well, and answers in its own form', async () => {
    const pair = await startPair();
    const { object, output } = await read(post(pair, { input: turns }, '/responses/compact'));
    expect(object).toBe('response.compaction');
    expect(output.map(({ type, role }) => type ?? role)).toContain('compaction');
    expect(pair.simulator.summaryRequests()).toEqual([]);
    expect(said(await ask(pair, [...output, question]))).toBe(KNOWN);
  });

  it('is not asked by path where the ledger has the history: a thin client gets all of it in one item (SPEC 1.6)', async () => {
    const pair = await startPair(windows);
    const thin = (path: string, content: string) =>
      fetch(`${pair.spillway.url}/v1${path}`, {
        method: 'POST',
        headers: {
          authorization: 'Bearer sk-test',
          'content-type': 'application/json',
          'x-spillway-conversation': 'harbour',
          'x-spillway-append': 'true',
        },
        body: JSON.stringify({ model, input: [user(content)], store: false }),
      });
    await (await thin('/responses', 'Note this: FACT-harbour=blue-7')).text();
    const item = only((await read(thin('/responses/compact', 'Compact.'))).output);
    expect(said(await ask(pair, [item, question]))).toBe(KNOWN);
  });
});

describe('an upstream that does not compact', () => {
  it('has it done here: one item for a whole tool loop, and what follows goes on with its facts (SPEC 4.4)', async () => {
    const pair = await startPair(windows, refusing);
    const answer = await post(pair, { input: [...toolLoop(), TRIGGER] });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-spillway-action')).toBe('manual');
    const body = (await answer.json()) as Body;
    expect(body).toMatchObject({ object: 'response', status: 'completed' });
    const item = only(body.output);

    expect(said(await ask(pair, [...context, item, question]))).toBe(KNOWN);
    const sent = lastInput(pair);
    expect(sent.filter((_, index) => index !== 2)).toEqual([...context, question]);
    expect(sent[2]).toMatchObject({ role: 'user' });
    expect(sent[2]?.['content']).toContain('[Previous conversation summary]');
    expect(sent[2]?.['content']).toContain('is background, not a new message');
  });

  it('keeps every message in the ledger, and the history and what follows it are one conversation', async () => {
    const pair = await startPair(windows, refusing);
    const input = toolLoop();
    const item = only((await ask(pair, [...input, TRIGGER])).output);
    const { id } = await onlyConversation(pair);
    await ask(pair, [...context, item, question]);
    const nodes = await nodesOf(pair, (await onlyConversation(pair)).id);
    const contents = nodes.map(({ content }) => content);
    for (const message of input.slice(1)) expect(contents).toContainEqual(message);
    expect((await onlyConversation(pair)).id).toBe(id);
    // The first message stands once; behind it the history forks.
    expect(contents.filter((content) => JSON.stringify(content) === JSON.stringify(context[1]))).toHaveLength(1);
  });

  it('gets the finished turns’ summary as a node like any other (SPEC 3.1), and the latest turn in the envelope too', async () => {
    const pair = await startPair(windows, refusing);
    const latest = user('And FACT-tower=red-3');
    const item = only((await ask(pair, [...turns, { role: 'assistant', content: 'Yes.' }, latest, TRIGGER])).output);
    const { id, summaries } = await onlyConversation(pair);
    expect(summaries).toBe(1);
    const summary = (await nodesOf(pair, id)).find(({ metadata }) => metadata.covers_ids !== undefined);
    expect(summary?.metadata.trigger).toBe('manual');
    const both = user('What are the values of FACT-harbour and FACT-tower?');
    expect(said(await ask(pair, [item, both]))).toBe(`${KNOWN} The value of FACT-tower is red-3.`);
  });

  it('is asked once for each way, and then not again for a while', async () => {
    const pair = await startPair(windows, refusing);
    for (const word of ['a', 'b', 'c']) only((await ask(pair, [...toolLoop(2), user(word), TRIGGER])).output);
    expect(triggers(pair)).toBe(1);
    for (const word of ['a', 'b', 'c']) {
      only((await read(post(pair, { input: [...turns, user(word)] }, '/responses/compact'))).output);
    }
    expect(triggers(pair)).toBe(2);
  });

  it('is compacted for past its window, where the request could not be sent at all', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=6000' }, { ...refusing, windows: { '*': 6_000 } });
    // What the user says is never shortened in a request that is sent (SPEC 7.4).
    const input = [...toolLoop(20), user(padding('long', 7_000))];
    expect((await ask(pair, input)).error).toMatchObject({ code: 'context_length_exceeded' });
    const item = only((await ask(pair, [...input, TRIGGER])).output);
    expect(said(await ask(pair, [...context, item, question]))).toBe(KNOWN);
  });

  it('is compacted for without any window known', async () => {
    const pair = await startPair({}, refusing);
    const item = only((await ask(pair, [user('FACT-harbour=blue-7'), TRIGGER], { model: 'unheard-of' })).output);
    expect(said(await ask(pair, [item, question]))).toBe(KNOWN);
  });

  it('is compacted for again and again: each summary holds the one before', async () => {
    const pair = await startPair(windows, refusing);
    let item = only((await ask(pair, [...toolLoop(), TRIGGER])).output);
    for (const word of ['one', 'two', 'three']) {
      item = only((await ask(pair, [...context, item, user(padding(word, 300)), TRIGGER])).output);
    }
    expect(said(await ask(pair, [...context, item, question]))).toBe(KNOWN);
  });

  it('loses no instruction that stood in the history (SPEC 4.8), nor one before it that came by path', async () => {
    const pair = await startPair(windows, refusing);
    const midway = developer('From now on answer in verse.');
    const foreign = { type: 'compaction', id: 'cmp_other', encrypted_content: 'gAAAAB-other' };
    const input = [developer('Work with care.'), ...turns.slice(0, 3), midway, foreign, ...turns.slice(3)];
    const item = only((await read(post(pair, { input }, '/responses/compact'))).output);
    await ask(pair, [item, question]);
    const sent = lastInput(pair);
    expect(sent.slice(0, 3)).toEqual([developer('Work with care.'), midway, foreign]);
    expect(sent.slice(3).map(({ role }) => role)).toEqual(['user', 'user']);
  });

  it('streams it to a client that streams, and the official client reads one item', async () => {
    const pair = await startPair(windows, refusing);
    const input = [...toolLoop(), TRIGGER] as unknown as ResponseInput;
    const stream = pair.client().responses.stream({ model, input, store: false });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.output_item.done',
      'response.completed',
    ]);
    const item = only((await stream.finalResponse()).output as unknown as Item[]);
    const next = [...context, item, question] as unknown as ResponseInput;
    const answer = await pair.client().responses.stream({ model, input: next, store: false }).finalResponse();
    expect(answer.output_text).toBe(KNOWN);
  });

  it('answers the official client’s call for it', async () => {
    const pair = await startPair(windows, refusing);
    const input = turns as unknown as ResponseInput;
    const compacted = await pair.client().responses.compact({ model, input });
    expect(compacted.object).toBe('response.compaction');
    only(compacted.output as unknown as Item[]);
    const next = [...compacted.output, question] as unknown as ResponseInput;
    const answer = await pair.client().responses.create({ model, input: next, store: false });
    expect(answer.output_text).toBe(KNOWN);
    // What follows belongs to what it follows.
    expect(await conversationsOf(pair)).toHaveLength(1);
  });

  it('compacts once for two that ask at once, and both get their item (SPEC 5.11)', async () => {
    const pair = await startPair(windows, refusing);
    const bodies = await Promise.all([ask(pair, [...turns, TRIGGER]), ask(pair, [...turns, TRIGGER])]);
    for (const body of bodies) {
      expect(said(await ask(pair, [only(body.output), question]))).toBe(KNOWN);
    }
    expect((await onlyConversation(pair)).summaries).toBe(1);
  });

  it('keeps a waiting client alive, which sees one response, begun once (SPEC 6.6)', async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const summariser = () => released.then(() => 'faithful' as const);
    const pair = await startPair({ ...windows, SPILLWAY_KEEP_ALIVE_SECONDS: '1' }, { ...refusing, summariser });
    const input = [...toolLoop(), TRIGGER] as unknown as ResponseInput;
    const stream = pair.client().responses.stream({ model, input, store: false });
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
      release();
    }
    expect(types.filter((type) => type === 'response.created')).toHaveLength(1);
    only((await stream.finalResponse()).output as unknown as Item[]);
  });

  it('holds a part of the history: that part is in the summary too (SPEC 1.7)', async () => {
    const pair = await startPair(windows, refusing);
    const first = (await (await post(pair, { input: turns.slice(0, 3), store: true })).json()) as { id: string };
    const more = { previous_response_id: first.id, store: true };
    const item = only((await ask(pair, [user('Compact.'), TRIGGER], more)).output);
    expect(said(await ask(pair, [item, question]))).toBe(KNOWN);
  });

  it('is told clearly where no summary can be made, and the history is unchanged (SPEC 5.9)', async () => {
    const pair = await startPair(windows, { ...refusing, summariser: () => 'empty' });
    const answer = await post(pair, { input: [...turns, TRIGGER] });
    expect(answer.status).toBe(502);
    expect(((await answer.json()) as Body).error).toMatchObject({
      code: 'compaction_failed',
      message: expect.stringContaining('(empty)'),
    });
    expect(await onlyConversation(pair)).toMatchObject({ summaries: 0, nodes: turns.length });
  });
});

describe('a request to compact', () => {
  it.each([
    ['/responses', [...turns, TRIGGER], "Invalid value: 'compaction_trigger'."],
    ['/responses/compact', turns, 'Invalid URL (POST /v1/responses/compact)'],
  ] as const)('to %s is the provider’s to refuse where nothing is rewritten', async (path, input, message) => {
    for (const mode of ['observe', 'no-store']) {
      const pair = await startPair({ SPILLWAY_MODE: mode }, refusing);
      expect((await read(post(pair, { input }, path))).error).toMatchObject({ message });
      expect(pair.simulator.summaryRequests()).toEqual([]);
    }
  });

  it('without a store gets the provider’s refusal, or ours where it is set to; an item that was given goes on', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const pair = await startPair({ ...windows, SPILLWAY_DATA_DIR: dataDir }, refusing);
    const item = only((await ask(pair, [...turns, TRIGGER])).output);
    const refuse = { SPILLWAY_DATA_DIR: dataDir, SPILLWAY_STORE_FAILURE: 'refuse' };
    const strict = await startPair({ ...windows, ...refuse }, refusing);
    const other = new Database(join(dataDir, 'spillway.db'));
    onTestFinished(() => void other.close());
    other.exec('ALTER TABLE node RENAME TO elsewhere');

    const asked = await post(pair, { input: [...turns, TRIGGER] });
    expect(asked.status).toBe(400);
    expect(asked.headers.get('x-spillway-store')).toBe('unavailable');
    expect((await read(post(pair, { input: turns }, '/responses/compact'))).error).toMatchObject({
      message: 'Invalid URL (POST /v1/responses/compact)',
    });
    expect(said(await ask(pair, [item, question]))).toBe(KNOWN);

    expect((await ask(strict, [...turns, TRIGGER])).error).toMatchObject({ code: 'store_unavailable' });
  });
});

describe('an answer that is no refusal of compaction', () => {
  it.each([
    [401, { message: 'Incorrect API key', code: 'invalid_api_key' }],
    [429, { message: 'Rate limit', code: 'rate_limit_exceeded' }],
    [404, { message: 'The model does not exist', code: 'model_not_found' }],
    [500, { message: 'Oops', code: null }],
    [400, { message: 'Unsupported parameter', code: 'unsupported_parameter', param: 'reasoning' }],
  ])('of status %i passes as it came, by either way', async (status, error) => {
    const provider = await startProvider((_, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error }));
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    for (const [path, input] of [
      ['/responses', [...turns, TRIGGER]],
      ['/responses/compact', turns],
    ] as const) {
      const answer = await post(pair, { input }, path);
      expect(answer.status).toBe(status);
      expect(await answer.json()).toEqual({ error });
    }
    expect(provider.received).toHaveLength(2);
  });

  it.each([404, 405, 501])('is not one of status %i by path', async (status) => {
    const provider = await startProvider((received, response) => {
      const { instructions = '' } = JSON.parse(received.body.toString()) as { instructions?: string };
      response.writeHead(isSummaryPrompt(instructions) ? 401 : status, { 'content-type': 'text/plain' });
      response.end('no');
    });
    const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url });
    const { error } = await read(post(pair, { input: turns }, '/responses/compact'));
    expect(error).toMatchObject({
      code: 'compaction_failed',
      message: expect.stringContaining('summariser_status_401'),
    });
  });
});

describe('an item that comes back', () => {
  const opened = async (settings: Record<string, string> = {}) => {
    const pair = await startPair({ ...windows, ...settings }, refusing);
    return { pair, item: only((await ask(pair, [...turns, TRIGGER])).output) };
  };
  const refused = (index: number) => ({
    code: 'invalid_request',
    param: `input[${index}].encrypted_content`,
    message: expect.stringContaining('not made by this server for this credential'),
  });

  it('forged in its text, its proof or its version is refused by name, and reaches no model', async () => {
    const { pair, item } = await opened();
    const content = item.encrypted_content;
    const forgeries = [
      content.replace('blue-7', 'red-9'),
      content.replace(/\.1\.[^.]/, (start) => `.1.${start.endsWith('A') ? 'B' : 'A'}`),
      content.replace('.compaction.1.', '.compaction.2.'),
      content.slice(0, -1),
      'spillway.compaction.1.',
      `spillway.compaction.1..${content.slice(content.indexOf('{'))}`,
    ];
    const before = pair.simulator.requests.length;
    for (const encrypted_content of forgeries) {
      expect(encrypted_content).not.toBe(content);
      const answer = await post(pair, { input: [...context, { ...item, encrypted_content }, question] });
      expect(answer.status).toBe(400);
      expect(((await answer.json()) as Body).error).toMatchObject(refused(2));
    }
    expect(pair.simulator.requests).toHaveLength(before);
  });

  it('of another tenant is refused (SPEC 1.1)', async () => {
    const { pair, item } = await opened({ SPILLWAY_TENANTS: 'credential' });
    const answer = await post(pair, { input: [item, question] }, '/responses', 'sk-somebody-else');
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as Body).error).toMatchObject(refused(0));
    expect(said(await ask(pair, [item, question]))).toBe(KNOWN);
  });

  it('of another server’s secret is refused', async () => {
    const { item } = await opened();
    const pair = await startPair(windows, refusing);
    expect((await ask(pair, [item, question])).error).toMatchObject(refused(0));
  });

  it('of this server is known after a restart', async () => {
    const { pair, item } = await opened();
    await pair.restart();
    expect(said(await ask(pair, [item, question]))).toBe(KNOWN);
  });

  it('of another provider goes through byte for byte', async () => {
    const pair = await startPair(windows, refusing);
    const item = { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAAB' };
    const input = [...context, item, question];
    const answer = await post(pair, { input });
    // This upstream knows no such item, and says so itself.
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as Body).error).toMatchObject({ message: "Invalid value: 'compaction'." });
    expect(lastText(pair)).toBe(JSON.stringify({ model, store: false, input }));
  });

  it('may be the last thing in the list: the loop that was compacted goes on', async () => {
    const { pair, item } = await opened();
    expect(said(await ask(pair, [...context, question, item]))).not.toBeUndefined();
    expect(lastInput(pair).map(({ role }) => role)).toEqual(['developer', 'user', 'user', 'user']);
  });

  it('in a compressed request is opened too, and that leaves uncompressed', async () => {
    const { pair, item } = await opened();
    const answer = await fetch(`${pair.spillway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: gzipSync(JSON.stringify({ model, input: [item, question], store: false })),
    });
    expect(said((await answer.json()) as Body)).toBe(KNOWN);
    expect(pair.simulator.requests.at(-1)?.headers).not.toHaveProperty('content-encoding');
  });

  it('as a text of the user’s is that text and no summary (SPEC 3.3)', async () => {
    const { pair, item } = await opened();
    await ask(pair, [user(item.encrypted_content), question]);
    expect(lastInput(pair)[0]).toEqual(user(item.encrypted_content));
  });

  it('leaves all the rest of the request as it came (SPEC 4.3)', async () => {
    const { pair, item } = await opened();
    const rest = { metadata: { b: '1', a: '2' }, temperature: 0.5, tools: [], prompt_cache_key: 'k' };
    await ask(pair, [item, question], rest);
    const { input, ...sent } = JSON.parse(lastText(pair)) as Item;
    expect(sent).toEqual({ model, store: false, ...rest });
    expect(input).toHaveLength(2);
  });

  it('is the same node each time (SPEC 1.4), and a long history behind it is compacted like any other', async () => {
    const { pair, item } = await opened();
    const history = [item, user('Go on.')];
    await ask(pair, history);
    const before = (await conversationsOf(pair)).map(({ nodes }) => nodes);
    await ask(pair, history);
    expect((await conversationsOf(pair)).map(({ nodes }) => nodes)).toEqual(before);
    const long = ['six', 'seven', 'eight', 'nine', 'ten'].flatMap((word) => [
      { role: 'assistant', content: 'Yes.' },
      user(padding(word, 1_200)),
    ]);
    expect(said(await ask(pair, [...history, ...long, { role: 'assistant', content: 'Yes.' }, question]))).toBe(KNOWN);
    expect(lastInput(pair).length).toBeLessThan(history.length + long.length);
  });
});
