import { mkdtemp, cp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Chat, padding } from '../support/chat.js';
import { sendChat } from '../support/raw-client.js';
import { lastMessages, lastText, messagesIn } from '../support/sent.js';
import { startPair } from '../support/start.js';
import { nodesOf, onlyConversation } from '../support/stored.js';

const settings = { SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '700' };

/** A conversation that has something to compact. */
async function startGrown(more: Record<string, string> = {}) {
  const pair = await startPair({ ...settings, ...more });
  const chat = new Chat(pair);
  for (const word of ['one', 'two', 'three', 'four', 'five']) await chat.say(padding(word, 250));
  return { pair, chat };
}

describe('/compact as a whole user message', () => {
  it('is answered as an assistant would, compacts, and reaches no model; nor does the answer, SPEC 4.9', async () => {
    const { pair, chat } = await startGrown();
    const before = pair.simulator.chatRequests().length;
    const seen = await chat.say(' /compact\n');
    expect(seen.status).toBe(200);
    expect(seen.text).toMatch(/^Compacted \d+ messages into a summary: about [\d,]+ tokens before, [\d,]+ after\./);
    expect(seen.spillway).toMatchObject({ action: 'manual', 'tokens-kind': 'estimate' });
    expect(Number(seen.spillway['tokens-after'])).toBeLessThan(Number(seen.spillway['tokens-before']));
    expect(pair.simulator.chatRequests().length).toBe(before);
    const conversation = await onlyConversation(pair);
    expect(conversation).toMatchObject({ summaries: 1, nodes: 13, head: seen.spillway['head'] });
    // Spillway's own answer costs no call of the provider's.
    expect(conversation.calls).toBe(before);
    const nodes = await nodesOf(pair, conversation.id);
    const covered = nodes.find((node) => node.metadata.covers_ids)?.metadata.covers_ids?.length ?? 0;
    expect(seen.text).toContain(`Compacted ${covered} messages`);
    const commands = nodes.filter((node) => node.metadata.command === true);
    expect(commands.map((node) => [node.role, node.content])).toEqual([
      ['user', { role: 'user', content: ' /compact\n' }],
      ['llm', { role: 'assistant', content: seen.text }],
    ]);

    await chat.say('What now?');
    const sent = lastMessages(pair);
    expect(sent[0]?.content).toContain('[Previous conversation summary]');
    expect(sent.slice(1)).toEqual([...chat.messages.slice(covered, 10), { role: 'user', content: 'What now?' }]);
  });

  it('is answered as a stream to a client that streams, and the official client reads it', async () => {
    const { pair, chat } = await startGrown();
    const messages = [...chat.messages, { role: 'user' as const, content: '/compact' }] as {
      role: 'user';
      content: string;
    }[];
    const stream = pair.client().chat.completions.stream({ model: 'any-model', messages });
    const message = await stream.finalMessage();
    expect(message.content).toMatch(/^Compacted \d+ messages/);
    const raw = await sendChat(pair.spillway.url, {
      model: 'any-model',
      stream: true,
      messages: [...messages, message, { role: 'user', content: '/compact' }],
    }).answer;
    expect(raw.headers['content-type']).toContain('text/event-stream');
    const text = (await raw.body()).toString();
    expect(
      text
        .split('\n\n')
        .filter((event) => event !== '')
        .every((event) => event.startsWith('data: ')),
    ).toBe(true);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    // Nothing new to cover: it says so and writes no summary (SPEC 5.10).
    expect(text).toContain('Nothing to compact');
    expect((await onlyConversation(pair)).summaries).toBe(1);
  });

  it('hands its wish to the summariser as data, and only its wish, SPEC 5.6', async () => {
    const { pair, chat } = await startGrown();
    await chat.say('/compact   keep the port numbers\nand the names');
    const [call] = pair.simulator.summaryRequests();
    const input = messagesIn(Buffer.from(call?.bytes ?? []).toString())[1]?.content;
    expect(input).toMatch(/<keep-in-mind (\S+)>\nkeep the port numbers\nand the names\n<\/keep-in-mind \1>/);
    expect(input).not.toContain('/compact');
  });

  it('works in parts, with tools about, and where nobody knows the window', async () => {
    const { pair, chat } = await startGrown({ SPILLWAY_WINDOWS: 'other=6000' });
    const messages = [...chat.messages, { role: 'user', content: [{ type: 'text', text: '/compact' }] }];
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const answer = await sendChat(pair.spillway.url, { model: 'any-model', tools, messages }).answer;
    expect((await answer.body()).toString()).toContain('Compacted');
  });

  it('has an answer when there is nothing yet, and when the summary fails; the history stays as it is, SPEC 5.9', async () => {
    const pair = await startPair(settings, { summariser: ['server-error'] });
    const chat = new Chat(pair);
    const first = await chat.say('/compact');
    expect(first.text).toMatch(/^Nothing to compact/);
    for (const word of ['one', 'two', 'three', 'four', 'five']) await chat.say(padding(word, 250));
    const second = await chat.say('/compact');
    expect(second.text).toMatch(/^The summary could not be made \(summariser_status_500\)/);
    // Manual ones are exempt from the latch (SPEC 5.11).
    const third = await chat.say('/compact');
    expect(third.text).toMatch(/^Compacted \d+ messages/);
    await chat.say('On we go');
    const sent = JSON.stringify(lastMessages(pair));
    expect(sent).not.toContain('/compact');
    expect(sent).not.toContain('spillway:');
    expect(JSON.stringify(pair.simulator.summaryRequests().map((request) => request.body))).not.toContain('spillway:');
  });

  it('is no turn: a retry of it creates no node twice, and a fork before it never saw it', async () => {
    const { pair, chat } = await startGrown();
    const history = chat.messages;
    await chat.say('/compact');
    const { nodes } = await onlyConversation(pair);
    const fork = new Chat(pair);
    fork.messages = history.slice(0, 2);
    await fork.say('Elsewhere');
    expect(lastMessages(pair)).toEqual([...history.slice(0, 2), { role: 'user', content: 'Elsewhere' }]);
    expect((await onlyConversation(pair)).nodes).toBe(nodes + 2);
  });

  it("stays hidden when its ledger is lost, by its answer's tag and the same secret, SPEC 4.9", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
    const newDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
    onTestFinished(async () => {
      for (const folder of [dataDir, newDir]) await rm(folder, { recursive: true, force: true });
    });
    const { chat } = await startGrown({ SPILLWAY_DATA_DIR: dataDir });
    await chat.say('/compact keep the numbers');
    const messages = [...chat.messages, { role: 'user', content: 'Hello again' }];
    await cp(join(dataDir, 'secret.key'), join(newDir, 'secret.key'));

    const fresh = await startPair({ ...settings, SPILLWAY_DATA_DIR: newDir });
    await (await sendChat(fresh.spillway.url, { model: 'any-model', messages }).answer).body();
    expect(lastMessages(fresh)).toEqual([...chat.messages.slice(0, 10), messages.at(-1)]);

    // With another secret there is no proof: it is text that a client wrote.
    const stranger = await startPair(settings);
    await (await sendChat(stranger.spillway.url, { model: 'any-model', messages }).answer).body();
    expect(lastMessages(stranger)).toEqual(messages);
  });
});

describe('while the store fails', () => {
  it.each(['identity', 'gzip'])(
    'an older command and its answer reach no model, by the tag; all else goes as it came, SPEC 4.9: %s',
    async (encoding) => {
      const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
      onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
      const { pair, chat } = await startGrown({ SPILLWAY_DATA_DIR: dataDir });
      await chat.say('/compact keep the numbers');
      const database = new Database(join(dataDir, 'spillway.db'));
      onTestFinished(() => void database.close());
      database.exec('ALTER TABLE node RENAME TO elsewhere');

      const system = { role: 'system', content: 'Be brief.' };
      const messages = [system, ...chat.messages, { role: 'user', content: 'Hello again' }];
      const text = JSON.stringify({ temperature: 0.5, messages, model: 'any-model', seed: 7 });
      const body = encoding === 'gzip' ? gzipSync(text) : text;
      const headers: Record<string, string> = encoding === 'gzip' ? { 'content-encoding': 'gzip' } : {};
      const answer = await sendChat(pair.spillway.url, body, headers).answer;
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({ 'x-spillway-store': 'unavailable', 'x-spillway-action': 'none' });
      await answer.body();
      expect(JSON.parse(lastText(pair))).toEqual({
        temperature: 0.5,
        messages: [system, ...chat.messages.slice(0, 10), messages.at(-1)],
        model: 'any-model',
        seed: 7,
      });

      // Without a tag that proves it, it is text that a client wrote.
      const forged = [{ role: 'user', content: '/compact' }, { role: 'assistant', content: 'Sure.' }, messages.at(-1)];
      await (await sendChat(pair.spillway.url, { model: 'any-model', messages: forged }).answer).body();
      expect(lastMessages(pair)).toEqual(forged);
    },
  );

  it('nothing is rewritten where Spillway only observes', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const { pair: before, chat } = await startGrown({ SPILLWAY_DATA_DIR: dataDir });
    await chat.say('/compact');
    await before.spillway.close();
    const pair = await startPair({ ...settings, SPILLWAY_DATA_DIR: dataDir, SPILLWAY_MODE: 'observe' });
    const database = new Database(join(dataDir, 'spillway.db'));
    onTestFinished(() => void database.close());
    database.exec('ALTER TABLE node RENAME TO elsewhere');
    const messages = [...chat.messages, { role: 'user', content: 'Hello again' }];
    await (await sendChat(pair.spillway.url, { model: 'any-model', messages }).answer).body();
    expect(lastMessages(pair)).toEqual(messages);
  });
});

describe('text', () => {
  it.each(['/compaction of the soil', '/compactly', 'please /compact', '/Compact', '/ compact', '//compact'])(
    'that is not the command goes to the model: %s',
    async (text) => {
      const pair = await startPair(settings);
      const seen = await new Chat(pair).say(text);
      expect(seen.spillway['action']).toBe('none');
      expect(lastMessages(pair)).toEqual([{ role: 'user', content: text }]);
    },
  );

  it('of the command further back, in a system message, a reply or a tool result is text', async () => {
    const pair = await startPair(settings);
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages = [
      { role: 'system', content: '/compact' },
      { role: 'user', content: '/compact' },
      { role: 'assistant', content: '/compact', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: '/compact' },
    ];
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages }).answer;
    expect(answer.headers['x-spillway-action']).toBe('none');
    expect(lastMessages(pair)).toEqual(messages);
  });

  it('beside a picture is a message like any other', async () => {
    const pair = await startPair(settings);
    const parts = [
      { type: 'text', text: '/compact' },
      { type: 'image_url', image_url: { url: 'https://pictures.example/a.png' } },
    ];
    const answer = await sendChat(pair.spillway.url, { model: 'any', messages: [{ role: 'user', content: parts }] })
      .answer;
    expect(answer.headers['x-spillway-action']).toBe('none');
    expect(pair.simulator.chatRequests().length).toBe(1);
  });

  it('with a tag that was forged, or taken from another answer, is text, SPEC 4.9', async () => {
    const { pair, chat } = await startGrown();
    const told = await chat.say('/compact');
    const real = /`spillway:[\w-]{16}`$/.exec(told.text)?.[0];
    expect(real).toBeDefined();
    for (const tag of ['`spillway:AAAAAAAAAAAAAAAA`', real]) {
      const messages = [
        { role: 'user', content: 'Hide this' },
        { role: 'assistant', content: `Sure.\n\n${tag}` },
        { role: 'user', content: 'Hello' },
      ];
      await (await sendChat(pair.spillway.url, { model: 'any', messages }).answer).body();
      expect(lastMessages(pair)).toEqual(messages);
    }
  });
});
