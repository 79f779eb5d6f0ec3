import { describe, expect, it } from 'vitest';
import { latchGrowthTokens } from '../../src/core/budget.js';
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

describe('a turn is compacted first', () => {
  it('at 80 % of the window and not below, and the next turn is not again, SPEC 5, 5.3', async () => {
    const world = scriptedWorld({ windowTokens: 8_000 });
    const below = await world.request([...talks(4, 1_000), user('now')]);
    expect(below.prepared).toMatchObject({ action: 'none', report: null });
    const over = [...talks(7, 1_000), user('now')];
    const first = await world.request(over);
    expect(first.prepared.action).toBe('auto');
    const next = await world.request([...over, assistant('well'), user('and then?')]);
    expect(next.prepared).toMatchObject({ action: 'none', report: null });
    expect(world.asked.length).toBe(1);
  });

  it('only where the request ends in a typed user message: a tool continuation is not, the next turn is, SPEC 5', async () => {
    const world = scriptedWorld({ windowTokens: 4_000, keepTokens: 500 });
    const loop = [...talks(2, 800), user('look'), calling('c1'), result('c1', filler('big', 800))];
    const { prepared } = await world.request(loop);
    expect(prepared.action).toBe('none');
    expect(prepared.before?.tokens).toBeGreaterThan(0.8 * 4_000 - 1_000);
    expect((await world.request([...loop, assistant('seen'), user('now')])).prepared.action).toBe('auto');
  });

  it('in the middle of a tool loop too, once it is past its limit, and the loop stays word for word, SPEC 7.3', async () => {
    const world = scriptedWorld({ windowTokens: 4_000, keepTokens: 500 });
    const loop = [user('look'), calling('c1'), result('c1', filler('big', 900))];
    const { prepared, messages } = await world.request([...talks(3, 800), ...loop]);
    expect(prepared.before?.tokens).toBeGreaterThan(4_000 - 1_000 - 256);
    expect(prepared.action).toBe('auto');
    expect(messages.slice(1)).toEqual(loop);
    expect(isRecord(messages[0])).toBe(true);
  });

  it('never while the window is unknown, whatever the size, SPEC 5.1', async () => {
    const world = scriptedWorld({ windowTokens: null });
    const { prepared, turn } = await world.request([...talks(40, 4_000), user('now')]);
    expect(prepared).toMatchObject({ action: 'none', report: null });
    expect(turn.measure.tokenizer()).toBeNull();
    expect(world.asked).toEqual([]);
  });

  it('never for a short history, and nothing is counted then, SPEC 7.9', async () => {
    const world = scriptedWorld({ windowTokens: 8_000 });
    const { prepared, turn } = await world.request([user('Hello.')]);
    expect(prepared).toMatchObject({ action: 'none', report: null, after: { kind: 'bound' } });
    expect(turn.measure.tokenizer()).toBeNull();
  });

  it('with a summary bounded by an eighth of the window, whatever the history’s size, SPEC 5.6', async () => {
    const world = scriptedWorld({ windowTokens: 8_000 });
    await world.request([...talks(40, 2_000), user('now')]);
    expect(world.asked.length).toBeGreaterThan(5);
    for (const { body } of world.asked) expect(Number(body['max_tokens'])).toBeLessThanOrEqual(1_000);
  });
});

describe('what cannot help is not tried again and again, SPEC 5.11', () => {
  /** The histories lie between its trigger of 4,400 tokens and its limit of 5,600: what stays whole is sent whole. */
  const window = 8_000;

  it.each<readonly [string, readonly Wire[], Wire, string]>([
    [
      'fixed overhead',
      [...talks(2, 200), user('now')],
      { tools: [{ type: 'function', function: { name: 'all', description: filler('manual', 4_050) } }] },
      'fixed_overhead',
    ],
    ['one turn that is all there is', [user(filler('all', 4_450))], {}, 'one_turn'],
  ])('%s: a typed outcome without a model call, once', async (_name, history, fields, reason) => {
    const world = scriptedWorld({ windowTokens: window });
    const first = await world.request(history, fields);
    expect(first.prepared).toMatchObject({ action: 'none', report: { reason, calls: 0 } });
    expect(first.text).toContain('"messages"');
    const again = await world.request([...history, assistant('well'), user('and then?')], fields);
    expect(again.prepared.report).toBeNull();
    expect(world.asked).toEqual([]);
    const grown = [...history, ...talk('more', latchGrowthTokens(window)), user('and then?')];
    expect((await world.request(grown, fields)).prepared.report).not.toBeNull();
  });

  it.each<readonly [string, string | number, string, number]>([
    ['a summary larger than what it replaces', `${recordOf('-')}\n${filler('more', 1_200)}`, 'rejected', 2],
    ['a provider that refuses', 401, 'failed', 1],
  ])('%s: the history stays, once, until it has grown', async (_name, answer, outcome, calls) => {
    const world = scriptedWorld({ windowTokens: window }, () => answer);
    const history = [...talk('a', 900), user(filler('b', 4_000))];
    const first = await world.request(history);
    expect(first.prepared).toMatchObject({ action: 'none', report: { outcome } });
    expect(first.prepared.dispatch.body).toBe(first.turn.body.original);
    expect(world.asked.length).toBe(calls);
    await world.request([...history, assistant('well'), user('and then?')]);
    expect(world.asked.length).toBe(calls);
  });

  it('a summariser that never works costs no more calls than the history grows by latches', async () => {
    const world = scriptedWorld({ windowTokens: window }, () => 500);
    const history: Wire[] = [...talks(4, 1_000), ...talk('e', 400)];
    const sizes: number[] = [];
    for (let turns = 0; turns < 35; turns++) {
      history.push(user(filler(`turn${turns}`, 10)));
      sizes.push((await world.request(history)).prepared.before?.tokens ?? 0);
      history.push(assistant(filler('ok', 10)));
    }
    const growth = (sizes.at(-1) ?? 0) - (sizes[0] ?? 0);
    expect(growth).toBeGreaterThan(latchGrowthTokens(window));
    expect(world.asked.length).toBe(1 + Math.floor(growth / latchGrowthTokens(window)));
  });

  it('another model is another case', async () => {
    const world = scriptedWorld({ windowTokens: window }, () => 500);
    const history = [...talks(5, 1_000), user('now')];
    await world.request(history);
    await world.request(history);
    expect(world.asked.length).toBe(1);
    await world.request(history, { model: 'other' });
    expect(world.asked.length).toBe(2);
  });

  it('a branch beside it is another case', async () => {
    const world = scriptedWorld({ windowTokens: window }, () => 500);
    await world.request([...talks(5, 1_000), user('now')]);
    await world.request([...talks(5, 1_000), user('rather this')]);
    expect(world.asked.length).toBe(2);
  });

  it('an overflow that came too late is exempt: a compaction that failed before it does not stop the next turn’s, SPEC 6.3', async () => {
    const world = scriptedWorld({ windowTokens: window }, (call) => (call === 0 ? 500 : recordOf('-')));
    const history = [...talks(5, 1_000), user('now')];
    const first = await world.request(history);
    expect(first.prepared.report?.outcome).toBe('failed');
    const cut = assistant('so far');
    const then = await world.open({ model: 'any', messages: [...history, cut] });
    await then.writer.setMark({ kind: 'overflowed', head: then.spine.at(-1)?.id ?? '', tokens: 7_000, scope: '' });
    const next = await world.request([...history, cut, user('go on')]);
    expect(next.prepared.action).toBe('reactive');
    expect(world.asked.length).toBe(2);
  });

  it('an overflow that came too late is not tried for ever either', async () => {
    const world = scriptedWorld({ windowTokens: window }, () => 500);
    const history = [...talks(4, 1_000), user('now'), assistant('so far')];
    const then = await world.open({ model: 'any', messages: history });
    await then.writer.setMark({ kind: 'overflowed', head: then.spine.at(-1)?.id ?? '', tokens: 5_000, scope: '' });
    await world.request([...history, user('go on')]);
    expect(world.asked.length).toBe(1);
    await world.request([...history, user('go on'), calling('c1'), result('c1', 'x')]);
    await world.request([...history, user('go on'), assistant('well'), user('and then?')]);
    expect(world.asked.length).toBe(1);
  });
});

describe('windows belong to models', () => {
  it('a switch to a smaller one compacts to that one’s window in as many calls as it takes, SPEC 5.1, 5.6', async () => {
    const windows = { large: 40_000, small: 4_000 };
    const pair = await startPair({ SPILLWAY_WINDOWS: 'large=40000,small=4000' }, { windows });
    const large = new Chat(pair, {}, 'large');
    for (const word of ['one', 'two', 'three', 'four', 'five', 'six']) await large.say(padding(word, 1_500));
    expect(pair.simulator.summaryRequests().length).toBe(0);
    const small = new Chat(pair, {}, 'small');
    small.messages = large.messages;
    const seen = await small.say('and now?');
    expect(seen.status).toBe(200);
    expect(seen.spillway['action']).toBe('auto');
    expect(Number(seen.spillway['tokens-before'])).toBeGreaterThan(9_000);
    expect(Number(seen.spillway['tokens-after'])).toBeLessThan(3_200 - 1_000);
    expect(pair.simulator.summaryRequests().length).toBeGreaterThan(2);
    expect(pair.simulator.summaryRequests().every((request) => request.status === 200)).toBe(true);
  });

  it('the limit shown is of the window used: window less reserve and margin, SPEC 7.1', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: 'small-*=8000' });
    const seen = await new Chat(pair, {}, 'small-one').say('Hello.');
    expect(seen.spillway['limit']).toBe(String(8_000 - 2_000 - 400));
    expect((await new Chat(pair, {}, 'who-knows').say('Hello.')).spillway['limit']).toBeUndefined();
  });
});

describe('a refusal by the provider', () => {
  it('is recovered though an automatic compaction has just failed: reactive is exempt from latches, SPEC 5.11, 6.4', async () => {
    let providerWindow = 10_000;
    const pair = await startPair(
      { SPILLWAY_WINDOWS: '*=4000', SPILLWAY_KEEP_TOKENS: '500' },
      { windows: () => providerWindow, summariser: ['server-error'] },
    );
    const chat = new Chat(pair);
    for (const word of ['one', 'two', 'three', 'four']) await chat.say(padding(word, 550));
    expect(pair.simulator.summaryRequests().map((request) => request.status)).toEqual([500]);
    providerWindow = 2_000;
    const seen = await chat.say('and now?');
    expect(seen.status).toBe(200);
    expect(seen.spillway['action']).toBe('reactive');
    expect(pair.simulator.chatRequests().filter((request) => request.status === 400).length).toBe(1);
  });

  it('that comes again is passed on unchanged after one retry with other bytes, SPEC 6.4', async () => {
    const pair = await startPair({ SPILLWAY_KEEP_TOKENS: '300' }, { script: () => ({ kind: 'overflow' }) });
    const history = [...talks(6, 600), user('now')];
    const response = await pair.post({ model: 'any-model', messages: history });
    const [first, second, ...more] = pair.simulator.chatRequests();
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'context_length_exceeded' } });
    expect(more).toEqual([]);
    expect(second?.bytes.byteLength).toBeLessThan(first?.bytes.byteLength ?? 0);
  });

  it('that nothing can be compacted for is passed on as it is, and nothing is sent again, SPEC 6.4', async () => {
    const pair = await startPair({}, { script: () => ({ kind: 'overflow' }) });
    const response = await pair.post({ model: 'any-model', messages: [user(filler('all', 2_000))] });
    expect(response.status).toBe(400);
    expect(pair.simulator.chatRequests().length).toBe(1);
    expect(pair.simulator.summaryRequests().length).toBe(0);
  });
});

it('a second /compact with nothing new changes nothing and says so, SPEC 5.10', async () => {
  const pair = await startPair({ SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '500' });
  const chat = new Chat(pair);
  for (const word of ['one', 'two', 'three']) await chat.say(padding(word, 500));
  expect((await chat.say('/compact')).text).toMatch(/^Compacted \d+ messages/);
  const calls = pair.simulator.summaryRequests().length;
  const again = await chat.say('/compact');
  expect(again.status).toBe(200);
  expect(again.text).toMatch(/^Nothing to compact/);
  expect(pair.simulator.summaryRequests().length).toBe(calls);
  const seen = await chat.say('and now?');
  const sent = lastRead(pair.simulator);
  expect(sent.length).toBeGreaterThan(1);
  expect(JSON.stringify(sent[0])).toContain('[Previous conversation summary]');
  expect(seen.status).toBe(200);
});
