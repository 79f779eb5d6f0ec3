import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { isSummaryPrompt } from '../../src/core/compaction/headings.js';
import type { RecordedRequest } from '../../src/simulator/request-log.js';
import type { SummaryBehaviour } from '../../src/simulator/summariser.js';
import { Chat, padding } from '../support/chat.js';
import type { Seen } from '../support/chat.js';
import { sendChat } from '../support/raw-client.js';
import { lastMessages, lastText } from '../support/sent.js';
import { startPair } from '../support/start.js';
import { conversationsOf, nodesOf, onlyConversation } from '../support/stored.js';

const WINDOW = 6_000;
const settings = { SPILLWAY_WINDOWS: `*=${WINDOW}`, SPILLWAY_KEEP_TOKENS: '700' };
/** A quarter of the window is kept for the reply (SPEC 7.2), and at 80 % it is compacted: 0.8 × 6,000 − 1,500. */
const TRIGGER_TOKENS = 3_300;

const WORDS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve'];

/** A history of about 2,700 tokens; with one more message of 650 it reaches the trigger. */
const FULL = WORDS.slice(0, 10).flatMap((word) => [
  { role: 'user', content: padding(word, 250) },
  { role: 'assistant', content: `That was ${word}, and it was noted down for later.` },
]);
const more = { role: 'user', content: padding('more', 650) };

/** A summary call that was received and perhaps not answered yet. */
function asksForSummary({ body }: RecordedRequest): boolean {
  const [first] = (body as { messages?: { content: string }[] } | undefined)?.messages ?? [];
  return isSummaryPrompt(first?.content ?? '');
}

describe('the automatic trigger', () => {
  it('compacts at 80 % of the window, reserve included, at the first turn that reaches it and at none before, SPEC 5.1', async () => {
    const pair = await startPair(settings);
    const chat = new Chat(pair);
    let seen: Seen | null = null;
    let before = 0;
    for (const word of WORDS) {
      seen = await chat.say(padding(word, 250));
      before = Number(seen.spillway['tokens-before']);
      if (seen.spillway['action'] !== 'none') break;
      expect(seen.spillway['tokens-kind'] === 'bound' || before < TRIGGER_TOKENS).toBe(true);
      expect(seen.spillway['tokens-after']).toBe(seen.spillway['tokens-before']);
      expect(pair.simulator.summaryRequests().length).toBe(0);
    }
    expect(seen?.spillway).toMatchObject({ action: 'auto', 'tokens-kind': 'estimate' });
    // The provider counts a little differently, and the budget follows what it measured (SPEC 9.4): within 2 %.
    expect(before).toBeGreaterThan(TRIGGER_TOKENS * 0.98);
    const after = Number(seen?.spillway['tokens-after']);
    expect(after).toBeLessThan(TRIGGER_TOKENS);
    expect(Math.abs(after - (pair.simulator.chatRequests().at(-1)?.promptTokens ?? 0))).toBeLessThan(after * 0.02);
    expect(pair.simulator.summaryRequests().length).toBe(1);
    expect(pair.logs.at(-1)).toMatchObject({
      action: 'auto',
      compaction: 'compacted',
      tokensBefore: before,
      tokensAfter: after,
    });
    const { id, head } = await onlyConversation(pair);
    const summary = (await nodesOf(pair, id)).find((node) => node.metadata.covers_ids !== undefined);
    expect(summary?.metadata).toMatchObject({
      compaction: true,
      trigger: 'auto',
      tokens_before: before,
      tokens_after: after,
    });
    expect(summary?.predecessor).toBe('ROOT');
    expect(head).not.toBe(summary?.id);
  });

  it('labels its figures: a bound while the bytes show that all fits, then an estimate; the limit beside them', async () => {
    const pair = await startPair(settings);
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hello' }] });
    const small = await sendChat(pair.spillway.url, body).answer;
    expect(small.headers).toMatchObject({
      'x-spillway-tokens-kind': 'bound',
      'x-spillway-tokens-before': String(body.length),
      'x-spillway-tokens-after': String(body.length),
      'x-spillway-limit': String(WINDOW - 1_500 - 300),
    });
    const large = await sendChat(pair.spillway.url, { model: 'any', messages: FULL.slice(0, 13) }).answer;
    expect(large.headers).toMatchObject({ 'x-spillway-tokens-kind': 'estimate', 'x-spillway-action': 'none' });
    const read = pair.simulator.chatRequests().at(-1)?.promptTokens ?? 0;
    expect(Math.abs(Number(large.headers['x-spillway-tokens-after']) - read)).toBeLessThan(read * 0.02);
    expect(large.headers['x-spillway-overhead-ms']).toMatch(/^\d+\.\d$/);
  });

  it('looks at the text of a compressed body, not at its compressed length', async () => {
    const pair = await startPair(settings);
    const bytes = gzipSync(JSON.stringify({ model: 'any', messages: [...FULL, more] }));
    expect(bytes.length).toBeLessThan(TRIGGER_TOKENS);
    const answer = await sendChat(pair.spillway.url, bytes, { 'content-encoding': 'gzip' }).answer;
    expect(answer.headers['x-spillway-action']).toBe('auto');
  });

  it('waits for the end of a tool loop: only a request that ends in a typed user message starts a turn, SPEC 5', async () => {
    const pair = await startPair(settings);
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const loop = [
      ...FULL,
      { role: 'user', content: 'Look' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: padding('seen', 650) },
    ];
    const inLoop = await sendChat(pair.spillway.url, { model: 'any', messages: loop }).answer;
    expect(inLoop.headers['x-spillway-action']).toBe('none');
    expect(pair.simulator.summaryRequests().length).toBe(0);
    const done = [...loop, { role: 'assistant', content: 'Seen.' }, { role: 'user', content: 'Thanks' }];
    const after = await sendChat(pair.spillway.url, { model: 'any', messages: done }).answer;
    expect(after.headers['x-spillway-action']).toBe('auto');
  });

  it('sees a turn begin where a client puts a system message behind what the user typed, and none where behind a result, SPEC 5', async () => {
    const pair = await startPair(settings);
    const reminder = { role: 'system', content: 'Today is Tuesday.' };
    const typed = await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more, reminder] }).answer;
    expect(typed.headers['x-spillway-action']).toBe('auto');
    const read = lastMessages(pair);
    expect(read.slice(-2)).toEqual([more, reminder]);

    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const loop = [
      { role: 'user', content: 'Look' },
      ...FULL.slice(1),
      { role: 'user', content: 'Look again' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: padding('seen', 650) },
      reminder,
    ];
    const inLoop = await sendChat(pair.spillway.url, { model: 'any', messages: loop }).answer;
    expect(inLoop.headers['x-spillway-action']).toBe('none');
  });

  it('does nothing for a model whose window nobody knows, SPEC 5.1', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: 'other=6000', SPILLWAY_KEEP_TOKENS: '700' });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] }).answer;
    expect(answer.headers).toMatchObject({ 'x-spillway-action': 'none' });
    expect(answer.headers).not.toHaveProperty('x-spillway-limit');
    expect(pair.simulator.summaryRequests().length).toBe(0);
  });

  it('makes no call where instructions and tools alone fill the window, SPEC 5.4', async () => {
    const pair = await startPair(settings);
    const system = { role: 'system', content: padding('rules', 3_100) };
    const turns = FULL.slice(0, 2);
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [system, ...turns, more] }).answer;
    expect(answer.status).toBe(200);
    expect(answer.headers['x-spillway-action']).toBe('none');
    expect(pair.simulator.summaryRequests().length).toBe(0);
    expect(pair.logs.at(-1)).toMatchObject({ compaction: 'fixed_overhead' });
  });
});

describe('a summary call', () => {
  it("carries the credential of its request, no tools, no stream, no other header of the client's, SPEC 5.6", async () => {
    const pair = await startPair(settings);
    const body = {
      model: 'any',
      stream: true,
      user: 'Ada',
      tools: [{ type: 'function', function: { name: 'f' } }],
      messages: [...FULL, more],
    };
    const answer = await sendChat(pair.spillway.url, body, {
      authorization: 'Bearer sk-of-the-client',
      'openai-organization': 'org',
      'x-custom': 'mine',
      cookie: 'a=b',
    }).answer;
    await answer.body();
    const [summary] = pair.simulator.summaryRequests();
    const [chat] = pair.simulator.chatRequests();
    expect(summary?.headers['authorization']).toBe(chat?.headers['authorization']);
    expect(summary?.headers).toMatchObject({ 'openai-organization': 'org', 'accept-encoding': 'identity' });
    expect(summary?.headers).not.toHaveProperty('x-custom');
    expect(summary?.headers).not.toHaveProperty('cookie');
    expect(Object.keys(summary?.body as object).toSorted()).toEqual(['max_tokens', 'messages', 'model', 'stream']);
    expect(summary?.body).toMatchObject({ model: 'any', stream: false });
  });

  it('goes to the configured summary model with the configured key', async () => {
    const pair = await startPair({
      ...settings,
      SPILLWAY_SUMMARY_MODEL: 'cheap-one',
      SPILLWAY_SUMMARY_KEY: 'sk-for-summaries-9876',
    });
    await (await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] }).answer).body();
    const [summary] = pair.simulator.summaryRequests();
    expect(summary?.body).toMatchObject({ model: 'cheap-one' });
    expect(summary?.headers['authorization']).toContain('9876');
    expect(pair.simulator.chatRequests()[0]?.headers['authorization']).not.toContain('9876');
  });
});

const bad: readonly [behaviour: Extract<SummaryBehaviour, string>, outcome: string, reason: string, calls: number][] = [
  ['empty', 'rejected', 'empty', 2],
  ['whitespace', 'rejected', 'empty', 2],
  ['cut', 'rejected', 'stopped_early', 2],
  ['tool-call', 'rejected', 'tool_call', 2],
  ['tool-call-text', 'rejected', 'tool_call', 2],
  ['reasoning-only', 'rejected', 'reasoning_only', 2],
  ['echo', 'rejected', 'over_cap', 2],
  ['larger', 'rejected', 'over_cap', 2],
  ['continues-chat', 'rejected', 'missing_headings', 2],
  ['missing-heading', 'rejected', 'missing_headings', 2],
  ['no-answer', 'failed', 'summariser_unreachable', 1],
  ['dies', 'failed', 'summariser_unreachable', 1],
  ['unauthorized', 'failed', 'summariser_status_401', 1],
  ['rate-limited', 'failed', 'summariser_status_429', 1],
  ['server-error', 'failed', 'summariser_status_500', 1],
  ['malformed-json', 'failed', 'summariser_malformed', 1],
];

describe('a summariser that goes wrong', () => {
  it.each(bad)(
    'costs nothing but its calls: the request leaves as it came and no node is written, SPEC 5.7, 5.9: %s',
    async (behaviour, outcome, reason, calls) => {
      const pair = await startPair(settings, { summariser: () => behaviour });
      const text = JSON.stringify({ model: 'any', messages: [...FULL, more] }, null, 2);
      const answer = await sendChat(pair.spillway.url, text).answer;
      expect(answer.status).toBe(200);
      expect(JSON.parse((await answer.body()).toString())).toHaveProperty('choices');
      expect(answer.headers['x-spillway-action']).toBe('none');
      expect(lastText(pair)).toBe(text);
      expect(pair.simulator.summaryRequests().length).toBe(calls);
      expect(pair.logs.at(-1)).toMatchObject({
        action: 'none',
        compaction: outcome,
        compactionReason: reason,
        status: 200,
      });
      expect(await onlyConversation(pair)).toMatchObject({ nodes: FULL.length + 2, summaries: 0 });

      // SPEC 5.11: the same head, and one a little further, are not tried again.
      await (await sendChat(pair.spillway.url, text).answer).body();
      expect(pair.simulator.summaryRequests().length).toBe(calls);
    },
  );

  it('by never answering is given up when the time of the purse is over, SPEC 5.6', async () => {
    const pair = await startPair({ ...settings, SPILLWAY_PURSE_SECONDS: '1' }, { summariser: () => 'hangs' });
    const text = JSON.stringify({ model: 'any', messages: [...FULL, more] });
    const answer = await sendChat(pair.spillway.url, text).answer;
    expect(answer.status).toBe(200);
    expect(lastText(pair)).toBe(text);
    expect(pair.logs.at(-1)).toMatchObject({ compaction: 'failed', compactionReason: 'purse_empty' });
    expect(pair.simulator.summaryRequests()[0]?.state).toBe('aborted');
  });

  it('by refusing its input as too long gets smaller ones, SPEC 5.6', async () => {
    const pair = await startPair(settings, { summariser: ['overflow'] });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] }).answer;
    expect(answer.headers['x-spillway-action']).toBe('auto');
    const [refused, next] = pair.simulator.summaryRequests();
    expect(next?.promptTokens).toBeLessThan(refused?.promptTokens ?? 0);
  });

  it('once, and is good at the second try, compacts', async () => {
    const pair = await startPair(settings, { summariser: ['missing-heading'] });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] }).answer;
    expect(answer.headers['x-spillway-action']).toBe('auto');
    expect(pair.simulator.summaryRequests().length).toBe(2);
  });
});

describe('what did not help', () => {
  it('is tried again when the history has grown, and for another model at once, SPEC 5.11', async () => {
    const pair = await startPair(settings, { summariser: ['server-error', 'server-error', 'server-error'] });
    const send = async (messages: readonly unknown[], model = 'any') => {
      const answer = await sendChat(pair.spillway.url, { model, messages }).answer;
      return answer.headers['x-spillway-action'];
    };
    const tried = () => pair.simulator.summaryRequests().length;
    const said = { role: 'assistant', content: 'Noted.' };
    expect(await send([...FULL, more])).toBe('none');
    expect(tried()).toBe(1);
    const next = [...FULL, more, said, { role: 'user', content: padding('further', 200) }];
    expect(await send(next)).toBe('none');
    expect(tried()).toBe(1);
    expect(await send(next, 'another')).toBe('none');
    expect(tried()).toBe(2);
    // max(5 % of the window, min(4,000, an eighth of it)) is 750 tokens.
    const grown = [...next, said, { role: 'user', content: padding('much', 560) }];
    expect(await send(grown)).toBe('none');
    expect(tried()).toBe(3);
    // A fork that parts before the place where it was tried is another matter.
    expect(await send([...FULL.slice(0, 18), { role: 'user', content: padding('fork', 1_000) }])).toBe('auto');
  });

  it('stays latched over a restart', async () => {
    const pair = await startPair(settings, { summariser: ['server-error'] });
    await (await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] }).answer).body();
    await pair.restart();
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] }).answer;
    expect(answer.headers['x-spillway-action']).toBe('none');
    expect(pair.simulator.summaryRequests().length).toBe(1);
  });
});

describe('two requests at once', () => {
  it('make one compaction, and both read its summary, SPEC 5.11', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const pair = await startPair(settings, { summariser: async () => held.then(() => 'faithful' as const) });
    const first = sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] });
    await pair.simulator.waitFor(asksForSummary);
    const other = { role: 'user', content: padding('other', 650) };
    const second = sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, other] });
    // Its node is durable before it asks for a compaction of its own.
    await expect.poll(async () => (await conversationsOf(pair))[0]?.nodes).toBe(FULL.length + 2);
    release();
    const answers = await Promise.all([first.answer, second.answer]);
    expect(answers.map((answer) => answer.headers['x-spillway-action'])).toEqual(['auto', 'auto']);
    expect(pair.simulator.summaryRequests().length).toBe(1);
    expect(await onlyConversation(pair)).toMatchObject({ summaries: 1 });
    const bodies = pair.simulator.chatRequests().map((request) => request.body as { messages: { content: string }[] });
    expect(bodies.map(({ messages }) => messages.length)).toEqual([
      bodies[0]?.messages.length,
      bodies[0]?.messages.length,
    ]);
    expect(bodies[0]?.messages[0]).toEqual(bodies[1]?.messages[0]);
    expect(bodies.map(({ messages }) => String(messages.at(-1)?.content)).toSorted()).toEqual(
      [more.content, other.content].toSorted(),
    );
  });

  it('need not both wait: the compaction outlives the client that caused it, whose retry finds its summary, SPEC 5.6', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const pair = await startPair(settings, { summariser: async () => held.then(() => 'faithful' as const) });
    const left = sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] });
    left.answer.catch(() => undefined);
    await pair.simulator.waitFor(asksForSummary);
    left.leave();
    await expect.poll(() => pair.logs.at(-1)).toMatchObject({ outcome: 'cancelled' });
    expect(pair.simulator.chatRequests()).toEqual([]);
    release();
    await expect.poll(async () => (await conversationsOf(pair))[0]?.summaries).toBe(1);
    const retry = await sendChat(pair.spillway.url, { model: 'any', messages: [...FULL, more] }).answer;
    expect(retry.status).toBe(200);
    expect(pair.simulator.summaryRequests().length).toBe(1);
    expect(lastText(pair)).toContain('[Previous conversation summary]');
  });
});
