import { describe, expect, it } from 'vitest';
import { faultsOf } from '../../src/core/check.js';
import { isTypedUserMessage } from '../../src/core/message.js';
import { NO_REDUCTION } from '../../src/core/request/reduction.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { spineOfTurn } from '../../src/proxy/compact-spine.js';
import { dispatchOf } from '../../src/proxy/dispatch.js';
import { assistant, calling, filler, isRecord, result, scriptedWorld, talk, talks, user } from './scripted-world.js';
import type { Wire } from './scripted-world.js';

/** Two turns that are over, the second with a single call and a batch, each result large. */
const worked: readonly Wire[] = [
  ...talk('a', 300),
  user(filler('look', 100)),
  calling('c1'),
  result('c1', filler('one', 400)),
  calling('c2', 'c3'),
  result('c2', filler('two', 400)),
  result('c3', filler('three', 400)),
  assistant(filler('done', 100)),
];

const read = (messages: readonly Wire[]) =>
  messages.map((message) => chatCompletions.readMessage(message)).filter((message) => message !== null);

describe('calls and results', () => {
  it('stay together wherever the kept-token target would cut, SPEC 5.3, 4.7', async () => {
    const cuts = new Set<number>();
    for (let keepTokens = 1; keepTokens < 1_900; keepTokens += 100) {
      const world = scriptedWorld({ windowTokens: 3_000, keepTokens });
      const { messages, prepared } = await world.request([...worked, ...talk('b', 200), user('and now?')]);
      expect(prepared.action).toBe('auto');
      expect(faultsOf(read(messages))).toEqual([]);
      expect(messages[1]?.['role']).toBe('user');
      cuts.add(messages.length);
    }
    expect(cuts.size).toBeGreaterThan(2);
  });

  it('stay together through chained compactions: the whole list is checked each time, SPEC 4.7', async () => {
    const world = scriptedWorld({ windowTokens: 3_000, keepTokens: 300 });
    const history: Wire[] = [];
    let compactions = 0;
    for (let round = 0; round < 12; round++) {
      history.push(user(filler(`round${round}`, 150)));
      const { messages, prepared } = await world.request(history);
      if (prepared.action === 'auto') compactions++;
      expect(faultsOf(read(messages))).toEqual([]);
      expect(messages.filter(isRecord).length).toBe(compactions === 0 ? 0 : 1);
      history.push(calling(`r${round}a`, `r${round}b`));
      history.push(result(`r${round}b`, filler('seen', 200)), result(`r${round}a`, filler('seen', 200)));
      history.push(assistant(filler('ok', 50)));
    }
    expect(compactions).toBeGreaterThan(2);
  });

  it('of a custom tool or of a kind unknown here are pairs like any other, SPEC 4.7', async () => {
    const odd: readonly Wire[] = [
      user('run it'),
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'k1', type: 'custom', custom: { name: 'shell', input: 'ls' } },
          { id: 'k2', type: 'hologram', hologram: { beam: 3 } },
        ],
      },
      result('k1', filler('listing', 300)),
      result('k2', 'shown'),
      assistant('ran'),
    ];
    const world = scriptedWorld({ windowTokens: 2_500, keepTokens: 400 });
    const { messages } = await world.request([...talks(4, 500), ...odd, user('and now?')]);
    expect(isRecord(messages[0])).toBe(true);
    expect(messages.slice(1)).toEqual([...odd, user('and now?')]);
  });

  it('of an open tool loop stay whole with their user message, which is the latest typed one, SPEC 5.3', async () => {
    const world = scriptedWorld({ windowTokens: 3_000, keepTokens: 100 });
    const loop = [user('do it'), calling('c1'), result('c1', filler('huge', 900))];
    const turn = await world.open({ model: 'any', messages: [...talks(4, 500), ...loop] });
    const { limits } = turn;
    if (limits === null) throw new Error('no window');
    const report = await world.preparing.compactSpine.run(spineOfTurn(turn), {
      active: null,
      reduction: NO_REDUCTION,
      trigger: 'reactive',
      waits: true,
      aim: 'window',
      limits,
      userWish: null,
    });
    expect(report.outcome).toBe('compacted');
    const sent = JSON.parse(new TextDecoder().decode(dispatchOf(turn, report.summary).body)) as { messages: Wire[] };
    expect(sent.messages.slice(1)).toEqual(loop);
  });

  it.each<readonly [string, readonly Wire[]]>([
    ['a result without its call', [result('lost', 'x'), assistant('hm')]],
    ['a call whose result never came', [calling('lost'), user('never mind'), assistant('fine')]],
    ['a result that came twice', [calling('c1'), result('c1', 'x'), result('c1', 'x'), assistant('fine')]],
  ])('that came broken go as they came, never repaired, and are never covered: %s, SPEC 4.7', async (_name, broken) => {
    const world = scriptedWorld({ windowTokens: 2_500, keepTokens: 100 });
    const short = [user('begin'), ...broken];
    const first = await world.request([...short, user('go on')]);
    expect(first.prepared.dispatch.body).toBe(first.turn.body.original);

    const later = await world.request([...talks(3, 500), ...short, ...talks(3, 300), user('go on')]);
    expect(later.prepared.action).toBe('auto');
    expect(later.messages).toEqual(expect.arrayContaining([...broken]));
    expect(later.messages.slice(1)).toEqual([...short, ...talks(3, 300), user('go on')]);
  });
});

describe('the rendered list', () => {
  const named = user(filler('named', 100), { name: 'Ada' });
  const history = [
    { role: 'system', content: 'Leading.' },
    ...talks(2, 500),
    { role: 'developer', content: 'From now on: be brief.' },
    ...talk('x', 400),
    { role: 'system', content: 'It is Tuesday.' },
    ...talk('y', 400),
    named,
    assistant('noted'),
    user('and now?'),
  ];

  it('has instructions, pinned instructions in their own roles, one summary as a user message, the kept tail, SPEC 4.1, 4.4, 4.8', async () => {
    const world = scriptedWorld({ windowTokens: 2_500, keepTokens: 300 });
    const { messages } = await world.request(history);
    expect(messages.map((message) => message['role'])).toEqual([
      'system',
      'developer',
      'system',
      'user',
      'user',
      'assistant',
      'user',
    ]);
    expect(messages.slice(0, 3)).toEqual([history[0], history[5], history[8]]);
    expect(isRecord(messages[3])).toBe(true);
    expect(messages.slice(4)).toEqual([named, assistant('noted'), user('and now?')]);
  });

  it('gains no message of ours but the summary: no “continue” is made up, SPEC 4.3', async () => {
    const world = scriptedWorld({ windowTokens: 2_500, keepTokens: 300 });
    const { messages } = await world.request(history);
    const came = new Set(history.map((message) => JSON.stringify(message)));
    expect(messages.filter((message) => !came.has(JSON.stringify(message))).length).toBe(1);
    expect(messages.at(-1)).toEqual(history.at(-1));
  });

  it('ends as the client’s does, with a prefilled assistant message too, and keeps a typed user message, SPEC 4.4', async () => {
    const world = scriptedWorld({ windowTokens: 2_500, keepTokens: 100 });
    await world.request(history);
    const prefilled = [...history, assistant('The answer is')];
    const { messages } = await world.request(prefilled);
    expect(messages.filter(isRecord).length).toBe(1);
    expect(messages.at(-1)).toEqual(assistant('The answer is'));
    const typed = read(messages.filter((message) => !isRecord(message))).filter(isTypedUserMessage);
    expect(typed.length).toBeGreaterThan(0);
  });
});
