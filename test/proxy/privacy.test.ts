import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { callTools, noAnswer, say } from '../../src/simulator/reply-plan.js';
import type { ReplyPlan } from '../../src/simulator/reply-plan.js';
import { padding } from '../support/chat.js';
import { startProvider } from '../support/provider.js';
import { sendChat, sendRaw } from '../support/raw-client.js';
import type { RawExchange } from '../support/raw-client.js';
import { startPair } from '../support/start.js';

/** Words that stand for what nobody but client and provider may see, one for each place. */
const SECRETS = {
  system: 'zqsystem',
  user: 'zquser',
  userName: 'zqname',
  arguments: 'zqarguments',
  result: 'zqresult',
  reply: 'zqreply',
  reasoning: 'zqreasoning',
  summary: 'zqsummary',
  wish: 'zqwish',
  tool: 'zqtool',
  key: 'sk-zqkey-0123456789abcdef',
  otherKey: 'zqotherkey',
  summaryKey: 'sk-zqsummarykey-0123456789',
  adminToken: 'zqadmintoken-0123456789',
  conversation: 'zqconversation',
  path: 'zqpath',
  malformed: 'zqmalformed',
  refusal: 'zqrefusal',
} as const;

/** Every secret that occurs in a text. */
function leaks(text: string): readonly string[] {
  return Object.values(SECRETS).filter((secret) => text.includes(secret));
}

const headers = {
  authorization: `Bearer ${SECRETS.key}`,
  'x-api-key': SECRETS.otherKey,
  'x-spillway-conversation': SECRETS.conversation,
};

async function withoutLeaks(exchange: RawExchange, spillwaySays: boolean): Promise<number> {
  const answer = await exchange.answer;
  const body = (await answer.body().catch(() => Buffer.from(''))).toString();
  expect(leaks(JSON.stringify(answer.rawHeaders))).toEqual([]);
  if (spillwaySays) expect(leaks(body)).toEqual([]);
  return answer.status;
}

const system = { role: 'system', content: `${SECRETS.system} rules` };
const tools = [
  { type: 'function', function: { name: SECRETS.tool, description: SECRETS.tool, parameters: { type: 'object' } } },
];
const turns = Array.from({ length: 12 }, (_, index) => [
  { role: 'user', name: SECRETS.userName, content: padding(`${SECRETS.user}${index}`, 300) },
  {
    role: 'assistant',
    content: null,
    reasoning_content: SECRETS.reasoning,
    tool_calls: [
      {
        id: `c${index}`,
        type: 'function',
        function: { name: SECRETS.tool, arguments: `{"a":"${SECRETS.arguments}"}` },
      },
    ],
  },
  { role: 'tool', tool_call_id: `c${index}`, content: SECRETS.result },
  { role: 'assistant', content: SECRETS.reply },
]).flat();
const last = { role: 'user', content: SECRETS.user };

describe('logs, errors and headers', () => {
  it('hold no text of a message, no argument, no credential and no token, whatever happens', async () => {
    const plans: ReplyPlan[] = [];
    const pair = await startPair(
      {
        SPILLWAY_WINDOWS: 'small=6000',
        SPILLWAY_KEEP_TOKENS: '700',
        SPILLWAY_SUMMARY_KEY: SECRETS.summaryKey,
        SPILLWAY_ADMIN_TOKEN: SECRETS.adminToken,
        SPILLWAY_LOG_LEVEL: 'trace',
        SPILLWAY_BODY_LIMIT: '1MiB',
      },
      {
        windows: { overflowing: 3_000 },
        script: () =>
          plans.shift() ?? { kind: 'reply', choices: [{ text: SECRETS.reply, reasoning: SECRETS.reasoning }] },
        summariser: [
          'faithful',
          'echo',
          'echo',
          'server-error',
          'malformed-json',
          { kind: 'plan', plan: say(SECRETS.summary) },
        ],
      },
    );
    const chat = (messages: readonly unknown[], more: object = {}, ours: Record<string, string> = {}) =>
      sendChat(pair.spillway.url, { model: 'small', tools, messages, ...more }, { ...headers, ...ours });
    const statuses: number[] = [];
    const note = async (exchange: RawExchange, spillwaySays = false) =>
      void statuses.push(await withoutLeaks(exchange, spillwaySays));

    // Ordinary, streamed, compacted by itself and on command, with a summariser that goes wrong, recovered.
    await note(chat([system, last]));
    await note(chat([system, last], { stream: true }));
    await note(chat([system, ...turns, last]));
    for (const model of ['small', 'other'])
      await note(
        chat([...turns.slice(4), { role: 'user', content: `/compact ${SECRETS.wish}` }], {
          model,
          stream: model === 'other',
        }),
        true,
      );
    await note(chat([...turns.slice(8), last]));
    await note(chat([...turns.slice(12), last], { model: 'overflowing', stream: true }));
    await note(chat([{ role: 'user', content: padding(SECRETS.user, 4_000) }], { model: 'overflowing' }));
    // Calls, refusals that quote the client, an answer that breaks off, none at all.
    plans.push(callTools({ name: SECRETS.tool, arguments: `{"a":"${SECRETS.arguments}"}` }));
    await note(chat([last]));
    plans.push({
      kind: 'refusal',
      status: 400,
      body: { error: { message: `${SECRETS.refusal}: ${SECRETS.user}`, code: SECRETS.refusal } },
    });
    await note(chat([last]));
    plans.push(say(SECRETS.reply, { cut: { after: 2, how: 'close' } }));
    await note(chat([last], { stream: true }));
    plans.push(noAnswer('close'));
    await note(chat([last]), true);
    // What Spillway refuses, or cannot read.
    await note(sendChat(pair.spillway.url, `{"messages":[{"content":"${SECRETS.malformed}"`, headers), true);
    await note(sendChat(pair.spillway.url, SECRETS.malformed, headers), true);
    await note(sendChat(pair.spillway.url, SECRETS.malformed, { ...headers, 'content-encoding': 'gzip' }), true);
    await note(chat([{ role: 'user', content: SECRETS.malformed.repeat(200_000) }]), true);
    await note(chat([last], {}, { 'x-spillway-append': SECRETS.key }), true);
    await note(chat([last], {}, { 'x-spillway-append': 'true', 'x-spillway-predecessor': 'A'.repeat(32) }), true);
    await note(chat([{ role: SECRETS.malformed, content: SECRETS.user }]));
    await note(chat([last], {}, { 'x-spillway-bypass': 'true' }));
    await note(
      sendRaw(pair.spillway.url, `/v1/files/${SECRETS.path}?q=${SECRETS.path}`, {
        method: 'GET',
        headers: { authorization: headers.authorization },
      }),
    );
    await note(
      sendRaw(pair.spillway.url, '/spillway/v1/conversations/none', {
        method: 'GET',
        headers: { 'x-spillway-admin-token': SECRETS.adminToken },
      }),
      true,
    );
    await note(
      sendRaw(pair.spillway.url, '/spillway/v1/conversations', {
        method: 'GET',
        headers: { host: 'evil.example', authorization: `Bearer ${SECRETS.key}` },
      }),
      true,
    );
    // A client that leaves.
    plans.push(say(SECRETS.reply.repeat(20), { cut: { after: 2, how: 'stall' } }));
    const leaving = await chat([last], { stream: true }).answer;
    await leaving.until(SECRETS.reply);
    leaving.leave();
    await expect.poll(() => pair.logs.some((line) => line['outcome'] === 'cancelled')).toBe(true);

    expect(new Set(statuses)).toEqual(new Set([200, 400, 403, 404, 413, 502]));
    expect(pair.logs.length).toBeGreaterThan(20);
    expect(leaks(pair.logText())).toEqual([]);
    expect(pair.logs.filter((line) => line['msg'] === 'defect')).toEqual([]);
  });

  it("hold none when the store fails, or the upstream's address is at fault", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const provider = await startProvider((_, response) => {
      const other = new Database(join(dataDir, 'spillway.db'));
      other.exec('DROP TABLE call');
      other.close();
      response.end('{}');
    });
    const pair = await startPair({
      SPILLWAY_DATA_DIR: dataDir,
      SPILLWAY_UPSTREAM_URL: provider.url,
      SPILLWAY_STORE_FAILURE: 'refuse',
      SPILLWAY_LOG_LEVEL: 'trace',
    });
    expect(await withoutLeaks(sendChat(pair.spillway.url, { model: 'any', messages: [last] }, headers), true)).toBe(
      200,
    );
    const next = { model: 'any', messages: [last, { role: 'assistant', content: SECRETS.reply }, last] };
    expect(await withoutLeaks(sendChat(pair.spillway.url, next, headers), true)).toBe(503);
    await expect.poll(() => pair.logs.length).toBe(3);
    expect(pair.logs[0]).toMatchObject({ msg: 'store gap' });
    expect(leaks(pair.logText())).toEqual([]);
  });
});

describe('a log line', () => {
  it('says of a request what an operator asks for, in one line', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '700' });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [system, ...turns, last], tools })
      .answer;
    await answer.body();
    await expect.poll(() => pair.logs.length).toBe(1);
    expect(pair.logs[0]).toMatchObject({
      msg: 'request',
      level: 'info',
      method: 'POST',
      route: 'chat-completions',
      model: 'any',
      stream: false,
      status: 200,
      outcome: 'complete',
      action: 'auto',
      compaction: 'compacted',
      nodes: turns.length + 1,
      conversation: answer.headers['x-spillway-conversation'],
      head: answer.headers['x-spillway-head'],
      call: answer.headers['x-spillway-call'],
      tokensBefore: Number(answer.headers['x-spillway-tokens-before']),
      tokensAfter: Number(answer.headers['x-spillway-tokens-after']),
      inputTokens: pair.simulator.chatRequests()[0]?.promptTokens,
      durationMs: expect.any(Number),
      overheadMs: expect.any(Number),
    });
  });

  it('says of a request that no route takes its method, status and code alone', async () => {
    const pair = await startPair();
    await fetch(`${pair.spillway.url}/secret-path?secret=query`);
    await expect.poll(() => pair.logs.length).toBe(1);
    expect(pair.logs[0]).toEqual({
      level: 'info',
      time: expect.any(Number),
      method: 'GET',
      status: 404,
      code: 'not_found',
      msg: 'refused',
    });
  });
});
