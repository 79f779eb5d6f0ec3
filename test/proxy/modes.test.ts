import { describe, expect, it } from 'vitest';
import { Chat, padding } from '../support/chat.js';
import { sendChat } from '../support/raw-client.js';
import { lastText } from '../support/sent.js';
import { startPair } from '../support/start.js';
import { callOf, conversationsOf, nodesOf, onlyConversation } from '../support/stored.js';

const settings = { SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '700' };

/** A history of some 4,000 tokens: over the trigger, and over a window of 2,000. */
const LONG = Array.from({ length: 12 }, (_, index) => [
  { role: 'user', content: padding(`word${index}`, 300) },
  { role: 'assistant', content: 'Noted.' },
])
  .flat()
  .slice(0, -1);

describe('x-spillway-bypass: true', () => {
  it.each([false, true])('lets one request pass untouched and unrecorded, stream %s', async (stream) => {
    const pair = await startPair(settings);
    const text = JSON.stringify({ model: 'any', stream, messages: LONG }, null, 1);
    const answer = await sendChat(pair.spillway.url, text, { 'x-spillway-bypass': 'true' }).answer;
    expect((await answer.body()).toString()).toContain(stream ? '[DONE]' : '"choices"');
    expect(answer.headers['x-spillway-action']).toBe('bypass');
    expect(answer.headers).not.toHaveProperty('x-spillway-conversation');
    expect(lastText(pair)).toBe(text);
    expect(pair.simulator.summaryRequests()).toEqual([]);
    expect(await conversationsOf(pair)).toEqual([]);
    const next = await sendChat(pair.spillway.url, text).answer;
    expect(next.headers['x-spillway-action']).toBe('auto');
  });

  it('does not read what it passes: not even malformed JSON, and /compact is text', async () => {
    const pair = await startPair();
    const malformed = await sendChat(pair.spillway.url, '{', { 'x-spillway-bypass': 'true' }).answer;
    expect(malformed.status).toBe(400);
    expect((await malformed.body()).toString()).toContain('HINT');
    const body = { model: 'any', messages: [{ role: 'user', content: '/compact' }] };
    await (await sendChat(pair.spillway.url, body, { 'x-spillway-bypass': 'TRUE' }).answer).body();
    expect(lastText(pair)).toBe(JSON.stringify(body));
    expect(await conversationsOf(pair)).toEqual([]);
  });

  it('leaves the overflow to the client', async () => {
    const pair = await startPair({}, { windows: { '*': 2_000 } });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: LONG }, { 'x-spillway-bypass': 'true' })
      .answer;
    expect(answer.status).toBe(400);
    expect(pair.simulator.requests.length).toBe(1);
  });
});

describe('observe-only mode', () => {
  it('records everything and changes nothing', async () => {
    const pair = await startPair({ ...settings, SPILLWAY_MODE: 'observe' });
    const text = JSON.stringify({ model: 'any', messages: LONG }, null, 1);
    const answer = await sendChat(pair.spillway.url, text).answer;
    expect(answer.headers['x-spillway-action']).toBe('none');
    expect(lastText(pair)).toBe(text);
    expect(pair.simulator.summaryRequests()).toEqual([]);
    const { id, nodes } = await onlyConversation(pair);
    expect(nodes).toBe(LONG.length + 1);
    expect((await callOf(pair, answer.headers)).reads).toEqual(
      (await nodesOf(pair, id)).slice(0, -1).map((node) => node.id),
    );
  });

  it('recovers from no overflow, and takes /compact for text', async () => {
    const pair = await startPair({ SPILLWAY_MODE: 'observe' }, { windows: { '*': 2_000 } });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: LONG }).answer;
    expect(answer.status).toBe(400);
    expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'failed', status: 400 });
    const chat = new Chat(pair);
    const seen = await chat.say('/compact');
    expect(seen.spillway['action']).toBe('none');
    expect(lastText(pair)).toContain('/compact');
    expect(pair.simulator.requests.length).toBe(2);
  });

  it('sends what was said before it, commands included, as it came', async () => {
    const pair = await startPair({ ...settings, SPILLWAY_MODE: 'observe' });
    const other = await startPair(settings);
    const chat = new Chat(other);
    await chat.say('/compact');
    const body = { model: 'any', messages: [...chat.messages, { role: 'user', content: 'Hello' }] };
    await (await sendChat(pair.spillway.url, body).answer).body();
    expect(lastText(pair)).toBe(JSON.stringify(body));
  });
});

describe('no-store mode', () => {
  it('neither records nor changes anything', async () => {
    const pair = await startPair({ ...settings, SPILLWAY_MODE: 'no-store' });
    for (const messages of [LONG, [{ role: 'user', content: '/compact' }]]) {
      const text = JSON.stringify({ model: 'any', messages }, null, 1);
      const answer = await sendChat(pair.spillway.url, text).answer;
      expect(answer.status).toBe(200);
      expect(answer.headers['x-spillway-action']).toBe('none');
      expect(answer.headers).not.toHaveProperty('x-spillway-conversation');
      expect(lastText(pair)).toBe(text);
    }
    expect(pair.simulator.summaryRequests()).toEqual([]);
    expect(await conversationsOf(pair)).toEqual([]);
  });
});

describe('a setting', () => {
  it('forces one summary for the conversation, or one for each branch, SPEC 3.4', async () => {
    for (const [policy, summaries] of [
      ['session', 1],
      ['spine', 2],
    ] as const) {
      const pair = await startPair({ ...settings, SPILLWAY_SUMMARY_POLICY: policy });
      const branch = (word: string) => [
        ...LONG.slice(0, 2),
        ...LONG.slice(2).map((message) => ({ ...message, content: `${word} ${message.content}` })),
      ];
      for (const word of ['left', 'right']) {
        await (await sendChat(pair.spillway.url, { model: 'any', messages: branch(word) }).answer).body();
      }
      expect((await onlyConversation(pair)).summaries).toBe(2);
      // The first branch again: its own summary still stands, unless the conversation has only one.
      const again = await sendChat(pair.spillway.url, { model: 'any', messages: branch('left') }).answer;
      const { id } = await onlyConversation(pair);
      const first = (await nodesOf(pair, id)).find((node) => node.metadata.covers_ids);
      const [read] = (await callOf(pair, again.headers)).reads;
      if (summaries === 2) expect(read).toBe(first?.id);
      else expect(read).not.toBe(first?.id);
    }
  });

  it('moves the trigger', async () => {
    const pair = await startPair({ ...settings, SPILLWAY_TRIGGER: '0.95' });
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: LONG }).answer;
    expect(answer.headers['x-spillway-action']).toBe('none');
  });
});
