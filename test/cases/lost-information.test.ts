import { describe, expect, it } from 'vitest';
import { isSummary } from '../../src/core/node.js';
import { Chat, padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import {
  assistant,
  calling,
  filler,
  isRecord,
  lastRead,
  recordOf,
  result,
  scriptedWorld,
  talk,
  talks,
  user,
} from './scripted-world.js';
import type { Wire } from './scripted-world.js';

const options = { windowTokens: 4_000, keepTokens: 700 };

/** Lives a conversation turn by turn, each turn beginning with a word of its own; returns what was sent each time. */
async function live(rounds: number, world = scriptedWorld(options)) {
  const history: Wire[] = [];
  const words: string[] = [];
  const sent: (readonly Wire[])[] = [];
  for (let round = 0; round < rounds; round++) {
    words.push(`said${round}x`, `heard${round}x`);
    history.push(user(filler(`said${round}x`, 250)));
    sent.push((await world.request(history)).messages);
    history.push(assistant(filler(`heard${round}x`, 200)));
  }
  return { world, history, words, sent };
}

describe('chained compactions', () => {
  it('cover contiguously: what the one before kept verbatim is what the next one reads first, SPEC 3.2, 5.5', async () => {
    const { world, sent } = await live(30);
    expect(world.asked.length).toBeGreaterThan(2);
    for (const [index, call] of world.asked.entries()) {
      if (index === 0) continue;
      const before = sent.findLast((messages) =>
        messages.some((each) => isRecord(each) && String(each['content']).includes(`call ${index - 1}`)),
      );
      const firstKept = String(before?.[1]?.['content']).slice(0, 9);
      expect(firstKept).toMatch(/^said\d/);
      const heard = call.input.slice(call.input.indexOf('<conversation'));
      expect(heard.indexOf(firstKept)).toBeLessThan(100);
      expect(heard.indexOf(firstKept)).toBeGreaterThan(0);
    }
  });

  it('each read the record before them, and none of what that already covers, SPEC 5.5', async () => {
    const { world } = await live(30);
    for (const [index, call] of world.asked.entries()) {
      if (index === 0) continue;
      expect(call.input).toContain(`call ${index - 1}`);
      const earlier = world.asked.slice(0, index).flatMap((each) => each.input.match(/\b(?:said|heard)\d+x\b/g) ?? []);
      for (const word of earlier) expect(call.input).not.toContain(word);
    }
  });

  it('lose no word: each was in the last request verbatim or in a summary call that succeeded', async () => {
    const { world, words, sent } = await live(30);
    const heard = world.asked.map((call) => call.input).join('\n');
    const last = JSON.stringify(sent.at(-1));
    const reply = words.at(-1);
    expect(words.filter((word) => word !== reply && !heard.includes(word) && !last.includes(word))).toEqual([]);
  });

  it('leave one record in the request: the newest, SPEC 3.4', async () => {
    const { world, sent } = await live(30);
    const final = sent.at(-1)?.filter(isRecord) ?? [];
    expect(final.length).toBe(1);
    expect(final[0]?.['content']).toContain(`call ${world.asked.length - 1}`);
  });

  it('leave every original message in the ledger, as it came, SPEC 2.1', async () => {
    const { world, history } = await live(20);
    const { turn } = await world.request([...history, user('end')]);
    const nodes = await world.ledger.nodes(turn.conversation, 0, 1_000);
    const chain = nodes.filter((node) => !isSummary(node));
    expect(chain.map((node): unknown => JSON.parse(node.content))).toEqual([...history, user('end')]);
  });

  it('after a failed one the next covers from the same place: nothing is skipped, SPEC 3.2', async () => {
    const world = scriptedWorld(options, (call) => (call === 1 ? 500 : recordOf(`call ${call}`)));
    const { words, sent } = await live(30, world);
    const heard = world.asked.flatMap((call, index) => (index === 1 ? [] : [call.input])).join('\n');
    const last = JSON.stringify(sent.at(-1));
    const reply = words.at(-1);
    expect(world.asked.length).toBeGreaterThan(3);
    expect(words.filter((word) => word !== reply && !heard.includes(word) && !last.includes(word))).toEqual([]);
  });
});

describe('requests of the user', () => {
  it('that were covered never come back as live messages; the newest typed one is the last, SPEC 4.1, 4.4', async () => {
    const goal = user('Goal A: port the parser.');
    const injected = user('<system-reminder>Goal B is now active. Continue.</system-reminder>');
    const history = [goal, ...talks(5, 600).slice(1), injected, assistant('On to B.'), user('How far are you?')];
    const world = scriptedWorld(options);
    const { messages, prepared } = await world.request(history);
    expect(prepared.action).toBe('auto');
    const users = messages.filter((message) => message['role'] === 'user' && !isRecord(message));
    expect(users).not.toContainEqual(goal);
    expect(users.slice(-2)).toEqual([injected, user('How far are you?')]);
    expect(world.asked[0]?.input).toContain('[user] Goal A: port the parser.');
  });

  it('that a client put in by itself are the user’s to a proxy, and are kept word for word, SPEC 4.3', async () => {
    const injected = user('Continue with the next step.', { metadata: { hidden: true } });
    const world = scriptedWorld(options);
    const { messages } = await world.request([...talks(5, 600), injected, assistant('Doing so.'), user('Well?')]);
    expect(messages).toContainEqual(injected);
  });

  it('are read by the summariser in order and each under the user’s label, so that first and later can be told apart', async () => {
    const world = scriptedWorld(options);
    await world.request([
      user('Use port 8080.'),
      assistant('ok'),
      user('No, 9090.'),
      ...talks(5, 600).slice(1),
      user('Well?'),
    ]);
    const input = world.asked[0]?.input ?? '';
    expect(input.indexOf('[user] Use port 8080.')).toBeGreaterThan(0);
    expect(input.indexOf('[user] No, 9090.')).toBeGreaterThan(input.indexOf('[user] Use port 8080.'));
  });
});

it('a job that was started and not seen to end is in what the summariser reads: the call, its arguments, its id', async () => {
  const world = scriptedWorld(options);
  const spawn: Wire = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 's1', type: 'function', function: { name: 'spawn_agent', arguments: '{"task":"audit"}' } }],
  };
  const started = result('s1', 'started id=job-417');
  await world.request([user('audit it'), spawn, started, assistant('It runs.'), ...talks(5, 600), user('Well?')]);
  expect(world.asked[0]?.input).toContain('[assistant calls spawn_agent as s1] {"task":"audit"}');
  expect(world.asked[0]?.input).toContain('[result of s1] started id=job-417');
});

it('a file by id is named to the summariser while covered, and sent as it came while kept, SPEC 4.3, 5.5', async () => {
  const attached = (id: string): Wire =>
    user([
      { type: 'text', text: 'Read it.' },
      { type: 'file', file: { file_id: id } },
    ]);
  const world = scriptedWorld({ windowTokens: 60_000, keepTokens: 21_000 });
  const history = [
    attached('file-old'),
    assistant('Done.'),
    ...talks(6, 1_000),
    attached('file-new'),
    assistant('Done.'),
    user('Well?'),
  ];
  const { messages, prepared } = await world.request(history);
  expect(prepared.action).toBe('auto');
  expect(world.asked[0]?.input).toContain('(file attached: file-old)');
  expect(messages).toContainEqual(attached('file-new'));
});

it('covered instructions stay word for word however often the conversation is compacted, SPEC 4.8', async () => {
  const persona: Wire = { role: 'developer', content: 'Answer as a pirate.' };
  const world = scriptedWorld(options);
  const history: Wire[] = [user('Hi'), persona, assistant('Arr.')];
  for (let round = 0; round < 20; round++) {
    history.push(user(filler(`said${round}`, 250)));
    const { messages } = await world.request(history);
    expect(messages.filter((message) => message['role'] === 'developer')).toEqual([persona]);
    history.push(assistant(filler(`heard${round}`, 200)));
  }
  expect(world.asked.length).toBeGreaterThan(2);
  expect(world.asked.map((call) => call.input).join('')).not.toContain('pirate');
});

it('planted facts are still told after many compactions through HTTP, and the kept tail is word for word', async () => {
  const pair = await startPair({ SPILLWAY_WINDOWS: '*=4000', SPILLWAY_KEEP_TOKENS: '500', SPILLWAY_STORE: 'memory' });
  const chat = new Chat(pair);
  await chat.say(`Remember FACT-city=Bergen. ${padding('one', 300)}`);
  for (let round = 0; round < 14; round++) await chat.say(padding(`round${round}`, 500));
  expect(pair.simulator.summaryRequests().length).toBeGreaterThan(2);
  const seen = await chat.say('What is the value of FACT-city?');
  expect(seen.text).toContain('Bergen');
  const sent = lastRead(pair.simulator);
  expect(sent.slice(1)).toEqual(chat.messages.slice(-sent.length, -1));
});

it('a tool result that was covered is read by one summary call, whole, whatever its size, SPEC 5.5, 5.6', async () => {
  const lines = Array.from({ length: 4_000 }, (_, index) => `row ${index} of the table`);
  const world = scriptedWorld({ windowTokens: 8_000, keepTokens: 500 });
  const history = [
    user('dump'),
    calling('c1'),
    result('c1', lines.join('\n')),
    assistant('done'),
    ...talk('b', 200),
    user('Well?'),
  ];
  const { prepared } = await world.request(history);
  expect(prepared.action).toBe('auto');
  const heard = world.asked.map((call) => call.input).join('\n');
  expect(lines.filter((line) => !heard.includes(line)).length).toBeLessThan(world.asked.length);
});
