import { describe, expect, it } from 'vitest';
import { Chat, padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import { assistant, filler, isRecord, lastRead, scriptedWorld, talks, user } from './scripted-world.js';
import type { Wire } from './scripted-world.js';

const options = { windowTokens: 4_000, keepTokens: 700 };
const system: Wire = { role: 'system', content: 'Be brief.' };
const tools = [{ type: 'function', function: { name: 'look', strict: true, parameters: { b: 1, a: 2 } } }];

/** The characters two bodies have in common from their start. */
function commonPrefix(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

describe('a provider’s prompt cache keeps its prefix', () => {
  it('between compactions each request begins with the very characters of the one before, SPEC 4.5', async () => {
    const world = scriptedWorld(options);
    const history: Wire[] = [system];
    let before: string | null = null;
    let kept = 0;
    for (let round = 0; round < 30; round++) {
      history.push(user(filler(`said${round}`, 250)));
      const { text, prepared } = await world.request(history, { tools });
      const list = text.slice(0, text.lastIndexOf(']', text.indexOf('"tools"')));
      if (prepared.action === 'none' && before !== null) {
        expect(commonPrefix(before, list)).toBe(before.length);
        kept++;
      }
      before = list;
      history.push(assistant(filler(`heard${round}`, 200)));
    }
    expect(world.asked.length).toBeGreaterThan(2);
    expect(kept).toBeGreaterThan(20);
  });

  it('a stored summary gives the same bytes again after a restart, in the stream and out of it, SPEC 4.5', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=4000', SPILLWAY_KEEP_TOKENS: '600' });
    const chat = new Chat(pair);
    for (let round = 0; round < 6; round++) await chat.say(padding(`round${round}`, 450));
    const first = (): string => JSON.stringify(lastRead(pair.simulator)[0]);
    await chat.say('short');
    const record = first();
    expect(record).toContain('[Previous conversation summary]');
    await pair.restart();
    await chat.say('short again');
    expect(first()).toBe(record);
    const streamed = await pair.post({ model: 'any-model', stream: true, messages: [...chat.messages, user('and?')] });
    await streamed.text();
    expect(first()).toBe(record);
  });

  it('what is stable comes first: instructions, pinned instructions, the record, then the tail, SPEC 4.1, 4.8', async () => {
    const world = scriptedWorld(options);
    const pinned: Wire = { role: 'developer', content: 'Use tabs.' };
    const { messages } = await world.request([
      system,
      user('Hi'),
      pinned,
      assistant('ok'),
      ...talks(5, 600),
      user('?'),
    ]);
    expect(messages.slice(0, 2)).toEqual([system, pinned]);
    expect(isRecord(messages[2])).toBe(true);
    expect(messages.slice(3).some((message) => message['role'] === 'system' || isRecord(message))).toBe(false);
  });

  it('tools and every other field keep their very characters, their order and place, SPEC 4.3', async () => {
    const world = scriptedWorld(options);
    const fields = { temperature: 1.0, tools, seed: 7, metadata: { z: 1, a: '\u2028' } };
    const history = [system, ...talks(5, 600), user('now')];
    const { text, prepared } = await world.request(history, fields);
    expect(prepared.action).toBe('auto');
    const after = (body: string): string => body.slice(body.indexOf('"temperature"'));
    expect(after(text)).toBe(after(JSON.stringify({ model: 'any', messages: history, ...fields })));
  });

  it('cache marks in kept messages stay where the client put them, and no other is set', async () => {
    const marked = (text: string): Wire => user([{ type: 'text', text, cache_control: { type: 'ephemeral' } }]);
    const world = scriptedWorld(options);
    const kept = marked('mark me');
    const { messages, text } = await world.request([marked(filler('old', 900)), ...talks(5, 600).slice(1), kept]);
    expect(messages.at(-1)).toEqual(kept);
    expect(text.split('cache_control').length).toBe(2);
  });
});

it('a summary call writes no cache entry and asks for nothing to be kept, whatever the client marked, SPEC 5.6', async () => {
  const world = scriptedWorld(options);
  const marked = user([{ type: 'text', text: filler('old', 900), cache_control: { type: 'ephemeral' } }]);
  await world.request([marked, ...talks(5, 600).slice(1), user('now')], { prompt_cache_key: 'k', store: true });
  expect(world.asked.length).toBeGreaterThan(0);
  for (const { text, body } of world.asked) {
    expect(text).not.toMatch(/cache_control|prompt_cache_key/);
    expect(body).not.toHaveProperty('store', true);
  }
});
