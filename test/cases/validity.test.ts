import { describe, expect, it } from 'vitest';
import { say } from '../../src/simulator/reply-plan.js';
import type { SummaryBehaviour } from '../../src/simulator/summariser.js';
import { Chat, padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { filler, isRecord, lastRead, recordOf, scriptedWorld, talks, user } from './scripted-world.js';
import type { Wire } from './scripted-world.js';

/** A pair whose next summary calls go as `behave` was told, faithfully after that. */
async function startWith(settings: Readonly<Record<string, string>> = {}) {
  const queue: SummaryBehaviour[] = [];
  const pair = await startPair(
    { SPILLWAY_WINDOWS: '*=20000', SPILLWAY_KEEP_TOKENS: '300', SPILLWAY_STORE: 'memory', ...settings },
    { summariser: () => queue.shift() ?? 'faithful' },
  );
  const behave = (...behaviours: readonly SummaryBehaviour[]): void => {
    queue.splice(0, queue.length, ...behaviours);
  };
  return { pair, behave };
}

/** A conversation that could be compacted, and its id. */
async function converse(pair: StartedPair, name: string): Promise<{ readonly chat: Chat; readonly id: string }> {
  const chat = new Chat(pair);
  let id = '';
  for (const word of ['one', 'two', 'three']) {
    id = (await chat.say(padding(`${name} ${word}`, 300))).spillway['conversation'] ?? '';
  }
  return { chat, id };
}

const plan = (text: string, stop: 'length' | 'content_filter'): SummaryBehaviour => ({
  kind: 'plan',
  plan: { kind: 'reply', choices: [{ text, stop }] },
});

const overCap: SummaryBehaviour = {
  kind: 'plan',
  plan: { ...say(`${recordOf('-')}\n${filler('x', 3_000)}`), ignoresCap: true },
};

/** How a summary call goes wrong, and the outcome, the reason and the calls that the report then names. */
const wrong: readonly (readonly [string, SummaryBehaviour, string, string, number])[] = [
  ['nothing', 'empty', 'rejected', 'empty', 2],
  ['white space', 'whitespace', 'rejected', 'empty', 2],
  ['a text cut by length', 'cut', 'rejected', 'stopped_early', 2],
  ['every heading, cut by length', plan(recordOf('None.'), 'length'), 'rejected', 'stopped_early', 2],
  ['every heading, stopped by a filter', plan(recordOf('None.'), 'content_filter'), 'rejected', 'stopped_early', 2],
  ['a tool call', 'tool-call', 'rejected', 'tool_call', 2],
  ['text that begins as a tool call', 'tool-call-text', 'rejected', 'tool_call', 2],
  ['reasoning alone', 'reasoning-only', 'rejected', 'reasoning_only', 2],
  ['its input again', 'echo', 'rejected', 'missing_headings', 2],
  ['the chat going on', 'continues-chat', 'rejected', 'missing_headings', 2],
  [
    'a refusal',
    { kind: 'plan', plan: say('There is no conversation to summarise.') },
    'rejected',
    'missing_headings',
    2,
  ],
  ['a record without one of its headings', 'missing-heading', 'rejected', 'missing_headings', 2],
  ['more than it replaces', 'larger', 'rejected', 'not_smaller', 1],
  ['more than its cap', overCap, 'rejected', 'over_cap', 2],
  ['no answer', 'no-answer', 'failed', 'summariser_unreachable', 1],
  ['half an answer', 'dies', 'failed', 'summariser_unreachable', 1],
  ['401', 'unauthorized', 'failed', 'summariser_status_401', 1],
  ['429', 'rate-limited', 'failed', 'summariser_status_429', 1],
  ['500', 'server-error', 'failed', 'summariser_status_500', 1],
  ['broken JSON', 'malformed-json', 'failed', 'summariser_malformed', 1],
];

describe('a summary that is none', () => {
  it('replaces nothing, whatever it is instead: the report names it, and the model reads the history whole, SPEC 5.7, 5.9, 5.10', async () => {
    const { pair, behave } = await startWith();
    const { chat, id } = await converse(pair, 'long');
    const before = await pair.api(`/conversations/${id}/nodes?limit=1000`);
    for (const [name, behaviour, outcome, reason, calls] of wrong) {
      behave(behaviour, behaviour);
      const report = await pair.api(`/conversations/${id}/compact`, {});
      expect(report, name).toMatchObject({ outcome, reason, calls });
      expect(await pair.api(`/conversations/${id}/nodes?limit=1000`), name).toEqual(before);
    }
    expect((await chat.say('and now?')).status).toBe(200);
    expect(lastRead(pair.simulator)).toEqual(chat.messages.slice(0, -1));
  });

  it('is also no answer before the purse’s time is over', async () => {
    const { pair, behave } = await startWith({ SPILLWAY_PURSE_SECONDS: '1' });
    const { id } = await converse(pair, 'long');
    behave('hangs');
    const report = await pair.api(`/conversations/${id}/compact`, {});
    expect(report).toMatchObject({ outcome: 'failed', reason: 'purse_empty', calls: 1 });
  });

  it('is asked for once more, and what is good then is taken, SPEC 5.7', async () => {
    const { pair, behave } = await startWith();
    for (const [name, behaviour, , , calls] of wrong) {
      if (calls === 1) continue;
      const { id } = await converse(pair, name);
      behave(behaviour);
      const report = await pair.api(`/conversations/${id}/compact`, {});
      expect(report, name).toMatchObject({ outcome: 'compacted', calls: 2 });
    }
  });
});

describe('a summary that is worth too little', () => {
  it('is refused, though it is smaller, and the history goes as it came, SPEC 5.7', async () => {
    const world = scriptedWorld(
      { windowTokens: 8_000, keepTokens: 600 },
      () => `${recordOf('-')}\n${filler('x', 700)}`,
    );
    const { prepared, turn } = await world.request([...talks(1, 850), user(filler('now', 4_000))]);
    expect(prepared).toMatchObject({ action: 'none', report: { outcome: 'rejected', reason: 'not_smaller' } });
    expect(prepared.dispatch.body).toBe(turn.body.original);
  });
});

it('an automatic compaction that fails costs the client nothing: its request goes through whole, SPEC 5.9', async () => {
  const pair = await startPair(
    { SPILLWAY_WINDOWS: '*=4000' },
    { summariser: ['unauthorized'], windows: { '*': 8_000 } },
  );
  const messages = [...talks(4, 600), user('now')];
  const response = await pair.post({ model: 'any-model', messages });
  expect(response.status).toBe(200);
  expect(response.headers.get('x-spillway-action')).toBe('none');
  expect(lastRead(pair.simulator)).toEqual(messages);
});

it('one that fails beyond the limit is told to the client, and nothing is sent that cannot fit, SPEC 7.7', async () => {
  const pair = await startPair(
    { SPILLWAY_WINDOWS: '*=4000' },
    { summariser: () => 'unauthorized', windows: { '*': 8_000 } },
  );
  const messages = [...talks(5, 600), user('now')];
  const response = await pair.post({ model: 'any-model', messages });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: 'context_length_exceeded', param: 'messages' } });
  expect(pair.simulator.chatRequests()).toEqual([]);
});

it('what the summariser may read holds every class of things it is asked for, whole: wishes, calls with arguments, errors, ids', async () => {
  const world = scriptedWorld({ windowTokens: 20_000, keepTokens: 300 });
  const edit = JSON.stringify({ path: 'src/a.ts', old: 'x'.repeat(3_000), new: 'y'.repeat(3_000) });
  const error = `Error: ENOENT at /srv/app/${'deep/'.repeat(60)}file.ts:12:7`;
  const history: readonly Wire[] = [
    user('First request: port the parser. Always use tabs.'),
    {
      role: 'assistant',
      content: 'I decided for approach B, because A was slow.',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'edit', arguments: edit } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'ok' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c2', type: 'function', function: { name: 'run', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c2', content: `${filler('log', 2_000)}\n${error}\n${filler('more', 2_000)}` },
    { role: 'assistant', content: 'It failed.' },
    ...talks(6, 2_000),
    user('And now?'),
  ];
  const { prepared } = await world.request(history);
  expect(prepared.action).toBe('auto');
  const heard = world.asked.map((call) => call.input).join('\n');
  for (const each of [
    'First request: port the parser. Always use tabs.',
    'approach B, because A was slow',
    edit,
    error,
    'c2',
  ]) {
    expect(heard).toContain(each);
  }
});

it('a conversation with nothing to summarise makes no call, SPEC 5.3', async () => {
  const { pair } = await startWith({ SPILLWAY_KEEP_TOKENS: '5000' });
  const { id } = await converse(pair, 'short');
  const report = await pair.api(`/conversations/${id}/compact`, {});
  expect(report).toMatchObject({ outcome: 'no_op', reason: 'below_target', calls: 0 });
  expect(pair.simulator.summaryRequests()).toEqual([]);
  expect(lastRead(pair.simulator).some(isRecord)).toBe(false);
});
