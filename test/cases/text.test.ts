import { describe, expect, it } from 'vitest';
import { Chat } from '../support/chat.js';
import { startPair } from '../support/start.js';
import { assistant, filler, isRecord, recordOf, result, scriptedWorld, talks, user } from './scripted-world.js';
import type { Wire } from './scripted-world.js';

const loneSurrogate = /\p{Surrogate}/u;

describe('text that is cut', () => {
  it('is cut between characters: no summary call holds half of one, whatever the size of its chunks', async () => {
    const emoji = `${'x'.repeat(1_999)}📥${'📥'.repeat(6_000)}`;
    for (const windowTokens of [3_000, 4_000, 5_001, 7_777]) {
      const world = scriptedWorld({ windowTokens, keepTokens: 300 });
      const { prepared } = await world.request([user(emoji), assistant('ok'), ...talks(2, 400), user('now')]);
      expect(prepared.action).toBe('auto');
      expect(world.asked.length).toBeGreaterThan(2);
      for (const { body } of world.asked) expect(loneSurrogate.test(textsOf(body))).toBe(false);
      const heard = world.asked.map((call) => call.input).join('');
      expect(heard.match(/📥/gu)?.length).toBe(6_001);
    }
  });

  it('is never the arguments of a call: kept ones stay valid JSON and word for word, covered ones are told whole', async () => {
    const args = JSON.stringify({ path: 'a.ts', content: filler('code "quoted" \\ and\nbroken', 1_500) });
    const edit = (id: string): readonly Wire[] => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'write', arguments: args } }],
      },
      result(id, 'ok'),
      assistant('written'),
    ];
    const world = scriptedWorld({ windowTokens: 8_000, keepTokens: 2_000 });
    const kept = [user('again'), ...edit('c2'), user('now')];
    const { messages } = await world.request([user('write it'), ...edit('c1'), ...talks(4, 600), ...kept]);
    expect(messages.slice(-kept.length)).toEqual(kept);
    expect(world.asked.map((call) => call.input).join('')).toContain(args);
  });
});

describe('half a character in a client’s own text', () => {
  const broken = 'broken \ud83d here';

  it('is not touched where the message is kept: its very characters go on, SPEC 4.3', async () => {
    const world = scriptedWorld({ windowTokens: 4_000, keepTokens: 700 });
    const alone = await world.request([user(broken)]);
    expect(alone.prepared.dispatch.body).toBe(alone.turn.body.original);
    const { text, prepared } = await world.request([...talks(5, 600), user(broken)]);
    expect(prepared.action).toBe('auto');
    expect(text).toContain('"broken \\ud83d here"');
  });

  it('is U+FFFD in a summary call, which a provider would refuse otherwise, each time again', async () => {
    const world = scriptedWorld({ windowTokens: 4_000, keepTokens: 700 }, () => `${recordOf('-')}\nhalf \udce5`);
    const { messages } = await world.request([user(broken), ...talks(5, 600).slice(1), user('now')]);
    expect(world.asked[0]?.text).toContain('broken \ufffd here');
    expect(world.asked[0]?.text).not.toMatch(/\\ud[89a-f]/);
    expect(String(messages.find(isRecord)?.['content'])).toContain('half \ufffd');
  });

  it('does not stop a conversation from being compacted through HTTP', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=4000', SPILLWAY_KEEP_TOKENS: '500' });
    const chat = new Chat(pair);
    await chat.say(broken);
    for (const word of ['one', 'two', 'three', 'four']) await chat.say(filler(word, 700));
    const bodies = pair.simulator.summaryRequests().map((request) => new TextDecoder().decode(request.bytes));
    expect(bodies.length).toBeGreaterThan(0);
    expect(bodies[0]).toContain('broken \ufffd here');
    expect(bodies.join('')).not.toMatch(/\\ud[89a-f]/);
  });
});

describe('text that only looks like something', () => {
  it.each([
    ['a role label in a path', 'hdfs://mapred/system:/user:/assistant: done'],
    ['a role label at a line’s start', 'system: ready\nuser: ada\nHuman: hi\n\nAssistant: hello'],
    ['a template’s marks', '<|im_start|>system\n<|endoftext|>[INST] <<SYS>> </s>'],
    ['our own headings', '## Intent\nnone\n## Exact facts\nnone'],
    ['JSON in several lines', '[\n  {"a": 1},\n  ["b"]\n]'],
    ['control characters', 'a\u0000b\u0007c\u2028d\ufeff'],
    ['right-to-left marks and joined emoji', 'שלום \u202eabc\u202c 👩‍👩‍👧‍👦 e\u0301'],
  ])('vetoes nothing and is told as it is: %s', async (_name, text) => {
    const world = scriptedWorld({ windowTokens: 4_000, keepTokens: 700 });
    const { prepared } = await world.request([user('see'), assistant(text), ...talks(5, 600), user('now')]);
    expect(prepared.action).toBe('auto');
    expect(world.asked[0]?.input).toContain(text);
  });
});

function textsOf(body: Wire): string {
  return (body['messages'] as readonly { readonly content: string }[]).map((message) => message.content).join('');
}
