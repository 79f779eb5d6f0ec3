import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import { ROOT, SUMMARY_MARKER, SUMMARY_NAME, type NewNode, type SummaryMetadata } from '../../src/core/node.js';
import type { Call, ConversationKey, Ledger } from '../../src/core/ports.js';
import type { CompactRequest } from '../../src/http/conversations.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import type { CompactionReport } from '../../src/proxy/compactor.js';
import { startApp, type RunningApp } from './start-app.js';

const key: ConversationKey = { tenant: 'local', id: `c_${'a'.repeat(30)}` };
const nodeId = (name: string): string => name.padEnd(32, '_');
const chain = ['first', 'second', 'third'].map(nodeId);
const [first = '', second = '', third = ''] = chain;
const reply = nodeId('reply');
const summary = 'summary_0123456789abcdef';
const root = '/spillway/v1/conversations';
const base = `${root}/${key.id}`;

const node = (id: string, predecessor: string, role: NewNode['role'], content: string): NewNode => ({
  id,
  predecessor,
  caller: null,
  role,
  name: null,
  content,
  metadata: {},
  tokens: null,
  tokenizer: null,
});

const call: Call = {
  id: 'call_0123456789abcdef',
  conversation: key.id,
  model: 'model-a',
  upstream: 'https://main.example/v1',
  action: 'auto',
  manifest: { version: 1, head: third, summary, pinned: [], omitted: [], instructions: [], reduction: null },
  replies: [reply],
  outcome: 'complete',
  status: 200,
  stopReason: 'stop',
  overflow: null,
  estimatedTokens: 12,
  usage: { inputTokens: 11, outputTokens: 2, cachedTokens: null, reasoningTokens: 0 },
  bodyDigest: 'digest',
  startedAt: 5,
  overheadMs: 1.5,
  durationMs: 20,
};

const report: CompactionReport = {
  outcome: 'compacted',
  reason: 'compacted',
  coveredCount: 2,
  tokensBefore: 900,
  tokensAfter: 100,
  calls: 1,
  durationMs: 30,
  summary: { id: summary, first, last: second, count: 2, content: 'text', tokens: null, tokenizer: null },
};

let app: RunningApp;
let asked: (CompactRequest & { readonly key: ConversationKey })[];
let answer: () => Promise<CompactionReport>;

beforeEach(async () => {
  asked = [];
  answer = () => Promise.resolve(report);
  app = await startApp({
    compact: ({ tenant, id }, request) => {
      asked.push({ key: { tenant, id }, ...request });
      return answer();
    },
  });
  await openTurn(key);
});
afterEach(() => app.stop());

async function openTurn(conversation: ConversationKey, ledger: Ledger = app.ledger): Promise<void> {
  const contents = [
    '{"role":"user","content":"one"}',
    '{"role":"assistant","content":"two"}',
    '{"role":"user","content":"three"}',
  ];
  await ledger.openTurn({
    conversation: {
      ...conversation,
      dialect: 'chat-completions',
      canonicalVersion: 1,
      name: null,
      session: 'a session',
    },
    policy: 'spine',
    chain,
    node: (index) =>
      node(chain[index] ?? '', chain[index - 1] ?? ROOT, index === 1 ? 'llm' : 'user', contents[index] ?? ''),
    instructions: [{ digest: 'digest-of-system', content: '{"role":"system","content":"Be brief."}' }],
    advanceHead: true,
    expectedHead: null,
    model: 'model-a',
    tokenizer: null,
  });
}

async function commitSummary(): Promise<void> {
  const metadata: SummaryMetadata = {
    compaction: true,
    covers_ids: [first, second],
    covered_count: 2,
    tokens_before: 900,
    tokens_after: 100,
    model: 'model-a',
    trigger: 'auto',
    duration_ms: 3,
  };
  const content = `${SUMMARY_MARKER}\nIt went well.`;
  const committed = await app.ledger.commitSummary({
    conversation: key,
    policy: 'spine',
    node: { ...node(summary, ROOT, 'llm', content), name: SUMMARY_NAME, metadata },
    chain,
    expectedActive: null,
    headMustDescend: false,
    lease: null,
  });
  expect(committed).toEqual({ outcome: 'committed' });
}

async function closeTurn(): Promise<void> {
  await app.ledger.closeTurn({
    conversation: key,
    call,
    reduction: null,
    replies: [node(reply, third, 'llm', '{"role":"assistant","content":"four"}')],
    advanceHead: true,
    counts: new Map(),
    tokenizer: null,
    marks: [],
  });
}

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  app.json(path, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
const refusal = (code: string, param: string | null, message: unknown = expect.any(String)) => ({
  error: { type: 'invalid_request_error', code, param, message },
});

/** As it goes into a query; null on the last page. */
function nextBefore(body: unknown): string | null {
  if (body === null || typeof body !== 'object' || !('next_before' in body)) throw new Error('no page');
  return typeof body.next_before === 'string' ? encodeURIComponent(body.next_before) : null;
}

describe('GET /conversations', () => {
  it('lists every tenant’s to the operator, latest used first, page by page', async () => {
    const other = { tenant: 'another', id: `c_${'b'.repeat(30)}` };
    await openTurn(other);
    const one = await app.json(`${root}?limit=1`);
    expect(one).toMatchObject({ status: 200, body: { data: [{ ...other, nodes: 3, calls: 0, summaries: 0 }] } });
    expect(await app.json(`${root}?limit=1&before=${nextBefore(one.body)}`)).toMatchObject({
      body: { data: [{ ...key, session: 'a session' }], next_before: null },
    });
  });

  it('skips none of those that were used at the same time', async () => {
    await app.stop();
    const ledger = new MemoryLedger(() => 1_000);
    app = await startApp({ ledger, directory: ledger });
    const ids = ['b', 'd', 'a', 'c'].map((letter) => `c_${letter.repeat(30)}`);
    for (const id of ids) await openTurn({ tenant: 'local', id }, ledger);
    const seen: unknown[] = [];
    for (let query = '?limit=1'; query !== '';) {
      const { body } = await app.json(root + query);
      seen.push(body);
      const next = nextBefore(body);
      query = next === null ? '' : `?limit=1&before=${next}`;
    }
    expect(seen).toMatchObject(
      ids
        .toSorted()
        .toReversed()
        .map((id) => ({ data: [{ id, used_at: 1_000 }] })),
    );
  });

  it.each([
    ['limit=0', 'limit', 'limit must be a whole number from 1 to 200'],
    ['limit=201', 'limit', 'limit must be a whole number from 1 to 200'],
    ['limit=ten', 'limit', 'limit must be a whole number from 1 to 200'],
    ['limit=1e1', 'limit', 'limit must be a whole number from 1 to 200'],
    ['limit=', 'limit', 'limit must be a whole number from 1 to 200'],
    ['befor=1', 'befor', 'befor is no field of this request'],
  ])('names field and reason of ?%s', async (query, field, message) => {
    expect(await app.json(`${root}?${query}`)).toEqual({
      status: 400,
      body: refusal('invalid_request', field, message),
    });
  });
});

describe('GET /conversations?before', () => {
  it.each(['', '-1', '1000', '1000_', 'x_c_1', '1e3_c_1', `${'9'.repeat(16)}_c_1`])(
    'names the field when %o is no place in the list',
    async (before) => {
      expect(await app.json(`${root}?before=${before}`)).toEqual({
        status: 400,
        body: refusal('invalid_request', 'before', 'before must be a next_before of an earlier page'),
      });
    },
  );
});

describe('GET /conversations/{id}', () => {
  it('is the conversation in snake_case', async () => {
    expect(await app.json(base)).toEqual({
      status: 200,
      body: {
        ...key,
        dialect: 'chat-completions',
        canonical_version: 1,
        name: null,
        session: 'a session',
        head: third,
        active_summary: null,
        created_at: expect.any(Number),
        used_at: expect.any(Number),
      },
    });
  });

  it.each(['', '/nodes', '/calls/x'])('is 404 for an unknown one%s', async (rest) => {
    expect(await app.json(`${root}/c_unknown${rest}`)).toEqual({
      status: 404,
      body: refusal('conversation_not_found', 'id'),
    });
  });
});

describe('GET /conversations/{id}/nodes', () => {
  it('has every node with the names of SPEC 2.1, its content parsed and a summary’s as text', async () => {
    await commitSummary();
    const { body } = await app.json(`${base}/nodes`);
    expect(body).toMatchObject({
      data: [
        { id: first, predecessor: ROOT, role: 'user', content: { role: 'user', content: 'one' } },
        { id: second, predecessor: first, role: 'llm' },
        { id: third, predecessor: second, role: 'user' },
        {
          id: summary,
          predecessor: ROOT,
          role: 'llm',
          name: SUMMARY_NAME,
          content: `${SUMMARY_MARKER}\nIt went well.`,
          metadata: { compaction: true, covers_ids: [first, second] },
        },
      ],
      next_after: null,
    });
    const [row] =
      body !== null && typeof body === 'object' && 'data' in body && Array.isArray(body.data) ? body.data : [];
    expect(Object.keys(row ?? {}).toSorted()).toEqual(
      [
        'id',
        'conversation',
        'predecessor',
        'caller',
        'seq',
        'role',
        'name',
        'content',
        'metadata',
        'tokens',
        'tokenizer',
        'created_at',
        'deleted_at',
      ].toSorted(),
    );
  });

  it('is paged by seq until nothing is left', async () => {
    const seen: unknown[] = [];
    let after: number | null = 0;
    while (after !== null) {
      const { body } = await app.json(`${base}/nodes?limit=2&after=${after}`);
      if (
        body === null ||
        typeof body !== 'object' ||
        !('data' in body) ||
        !Array.isArray(body.data) ||
        !('next_after' in body)
      ) {
        throw new Error('no page');
      }
      seen.push(...body.data.map((row: { id: string }) => row.id));
      after = typeof body.next_after === 'number' ? body.next_after : null;
    }
    expect(seen).toEqual(chain);
  });
});

describe('GET /conversations/{id}/calls/{call}', () => {
  it('has the ids of every node whose content entered the prompt, SPEC 2.5', async () => {
    await commitSummary();
    await closeTurn();
    expect(await app.json(`${base}/calls/${call.id}`)).toEqual({
      status: 200,
      body: {
        id: call.id,
        conversation: key.id,
        head: third,
        model: 'model-a',
        upstream: 'https://main.example/v1',
        action: 'auto',
        reads: [summary, third],
        manifest: call.manifest,
        replies: [reply],
        outcome: 'complete',
        status: 200,
        stop_reason: 'stop',
        overflow: null,
        estimated_tokens: 12,
        usage: { input_tokens: 11, output_tokens: 2, cached_tokens: null, reasoning_tokens: 0 },
        body_digest: 'digest',
        started_at: 5,
        overhead_ms: 1.5,
        duration_ms: 20,
      },
    });
  });

  it('is 404 for an unknown call', async () => {
    expect(await app.json(`${base}/calls/nothing`)).toEqual({ status: 404, body: refusal('not_found', 'call') });
  });
});

describe('GET /conversations/{id}/instructions/{digest}', () => {
  it('is the leading message that a manifest names by its digest, SPEC 1.5', async () => {
    expect(await app.json(`${base}/instructions/digest-of-system`)).toEqual({
      status: 200,
      body: { digest: 'digest-of-system', content: { role: 'system', content: 'Be brief.' } },
    });
  });

  it('is 404 for an unknown digest or conversation', async () => {
    expect(await app.json(`${base}/instructions/other`)).toEqual({ status: 404, body: refusal('not_found', 'digest') });
    expect(await app.json(`${root}/c_unknown/instructions/digest-of-system`)).toEqual({
      status: 404,
      body: refusal('conversation_not_found', 'id'),
    });
  });
});

describe('POST /conversations/{id}/head', () => {
  it('moves HEAD and answers the conversation, SPEC 8.1', async () => {
    expect(await post(`${base}/head`, { to: first, expected_head: third })).toMatchObject({
      status: 200,
      body: { head: first },
    });
    expect(await post(`${base}/head`, { to: third, expected_head: null })).toMatchObject({
      status: 200,
      body: { head: third },
    });
    expect(await post(`${base}/head`, { to: second })).toMatchObject({ status: 200, body: { head: second } });
  });

  it('moves nothing if HEAD is not the expected one, or to a node that is unknown or a summary', async () => {
    await commitSummary();
    expect(await post(`${base}/head`, { to: first, expected_head: second })).toMatchObject({
      status: 409,
      body: { error: { code: 'head_moved' } },
    });
    for (const to of [nodeId('unknown'), summary]) {
      expect(await post(`${base}/head`, { to })).toMatchObject({
        status: 404,
        body: { error: { code: 'node_not_found' } },
      });
    }
    expect(await app.json(base)).toMatchObject({ body: { head: third } });
  });

  it.each([
    ['{}', 'to', 'to is missing'],
    ['{"to": ""}', 'to', 'to must not be empty'],
    ['{"to": 5}', 'to', 'to must be a string'],
    [`{"to": "${first}", "expected_head": 5}`, 'expected_head', 'expected_head must be a string'],
    [`{"to": "${first}", "force": true}`, 'force', 'force is no field of this request'],
    ['[]', null, 'The body must be a JSON object'],
    ['null', null, 'The body must be a JSON object'],
  ])('names the field at fault in %s', async (body, field, message) => {
    expect(await post(`${base}/head`, body)).toEqual({
      status: 400,
      body: refusal('invalid_request', field, message),
    });
    expect(await app.json(base)).toMatchObject({ body: { head: third } });
  });

  it('names a body that is no JSON, no UTF-8 or too large', async () => {
    expect(await post(`${base}/head`, '{"to": ')).toEqual({ status: 400, body: refusal('invalid_json', 'body') });
    const latin = await app.json(`${base}/head`, { method: 'POST', body: Buffer.from([0x22, 0xe9, 0x22]) });
    expect(latin).toEqual({ status: 400, body: refusal('invalid_json', 'body') });
    const large = JSON.stringify({ to: 'x'.repeat(70_000) });
    expect(await post(`${base}/head`, large)).toEqual({ status: 413, body: refusal('body_too_large', 'body') });
  });
});

describe('POST /conversations/{id}/compact', () => {
  it('asks with what the person wants and the credential that came, and answers the report, SPEC 5.10', async () => {
    const { status, body } = await post(
      `${base}/compact`,
      { instructions: ' keep the port number ', head: second },
      { authorization: 'Bearer sk-of-the-person', 'x-other': 'other' },
    );
    expect(status).toBe(200);
    expect(body).toEqual({
      outcome: 'compacted',
      reason: 'compacted',
      covered_count: 2,
      tokens_before: 900,
      tokens_after: 100,
      calls: 1,
      duration_ms: 30,
      summary,
    });
    expect(asked).toEqual([
      {
        key,
        instructions: 'keep the port number',
        head: second,
        credential: { authorization: 'Bearer sk-of-the-person' },
      },
    ]);
  });

  it('needs no body', async () => {
    answer = () => Promise.resolve({ ...report, outcome: 'no_op', reason: 'nothing_to_cover', summary: null });
    const { status, text } = await app.send(`${base}/compact`, { method: 'POST' });
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ outcome: 'no_op', reason: 'nothing_to_cover', summary: null });
    expect(asked).toEqual([{ key, instructions: null, head: null, credential: {} }]);
  });

  it('is 409 without any credential, SPEC 5.6', async () => {
    answer = () => Promise.reject(new SpillwayError('no_credential', 'No key for the summary.'));
    expect(await post(`${base}/compact`, {})).toEqual({ status: 409, body: refusal('no_credential', null) });
  });

  it.each([
    [{ instructions: 5 }, 'instructions'],
    [{ instructions: 'x'.repeat(10_001) }, 'instructions'],
    [{ head: '' }, 'head'],
    [{ instruction: 'x' }, 'instruction'],
  ])('asks nothing when %o is wrong', async (body, field) => {
    expect(await post(`${base}/compact`, body)).toEqual({ status: 400, body: refusal('invalid_request', field) });
    expect(asked).toEqual([]);
  });

  it('is 404 for an unknown conversation, and nothing is asked', async () => {
    expect(await post(`${root}/c_unknown/compact`, {})).toEqual({
      status: 404,
      body: refusal('conversation_not_found', 'id'),
    });
    expect(asked).toEqual([]);
  });
});
