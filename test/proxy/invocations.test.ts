import { hash as digestOf } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Reduction } from '../../src/core/request/reduction.js';
import { NO_REDUCTION } from '../../src/core/request/reduction.js';
import type { ResultCandidate } from '../../src/core/request/tool-results.js';
import { createInvocations } from '../../src/proxy/invocations.js';
import { createSharedInvocations } from '../../src/proxy/shared-invocations.js';
import type { Turn } from '../../src/proxy/turn.js';
import { HandClock } from '../support/hand-clock.js';
import { createWorld } from '../support/in-memory.js';
import { MemoryCache } from '../support/memory-cache.js';

const hash = (text: string): string => digestOf('sha256', text, 'base64url').slice(0, 32);
const HOUR_MS = 60 * 60_000;

function start(settings = '') {
  const clock = new HandClock();
  const cache = new MemoryCache(clock.now);
  const send = () => Promise.reject(new Error('nothing is sent here'));
  const world = createWorld({ windowTokens: 8_000, send, clock: clock.now });
  return {
    clock,
    cache,
    /** What one process remembers. */
    process: (own = settings) =>
      createInvocations({ hash, clock: clock.now, settings: own, shared: createSharedInvocations(cache, hash) }),
    alone: () => createInvocations({ hash, clock: clock.now, settings, shared: null }),
    /** A request after so many calls of a tool loop, each named for its branch. */
    request: (calls: readonly string[], model = 'any', opener = 'Find out.') =>
      world.open({
        model,
        messages: [{ role: 'user', content: opener }, ...calls.flatMap((call) => toolMessages(call))],
      }),
  };
}

function toolMessages(name: string) {
  const id = `call_${name}`;
  return [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: id, content: `What came of ${name}.` },
  ];
}

/** A reduction that puts a checkpoint in the place of the first so many messages behind the opener. */
function checkpointOf(turn: Turn, count: number, content: string): Reduction {
  const [, ...behind] = turn.spine.map((node) => node.id);
  return {
    results: [],
    checkpoints: [{ first: behind[0] ?? '', last: behind[count - 1] ?? '', count, content, tokens: 10 }],
  };
}

const candidate = (text: string): ResultCandidate => ({
  node: 'node',
  call: { id: 'call', name: 'f', arguments: '{}' },
  text,
  tokens: 200,
  unread: false,
});
const run = { first: 'a', last: 'b', count: 4 };

describe('an invocation of which two branches go on', () => {
  it('gives each branch what was made for it, and not what was made last (SPEC 7.6)', async () => {
    const { alone, request } = start();
    const invocations = alone();
    const [a, b] = [await request(['1', '2', 'a']), await request(['1', '2', 'b'])];
    const [ofA, ofB] = [checkpointOf(a, 4, 'Of a.'), checkpointOf(b, 4, 'Of b.')];
    invocations.of(a)?.keep(ofA, a.spine);
    invocations.of(b)?.keep(ofB, b.spine);
    const [nextA, nextB] = [await request(['1', '2', 'a', 'a2']), await request(['1', '2', 'b', 'b2'])];
    for (const [next, own] of [
      [nextA, ofA],
      [nextB, ofB],
      [nextA, ofA],
    ] as const) {
      expect(invocations.find(next)?.reductionOn(next.spine)).toBe(own);
    }
  });

  it('gives a request what was kept deepest on its spine, and a new branch what reaches furthest into it (SPEC 7.6)', async () => {
    const { alone, request } = start();
    const invocations = alone();
    const loop = ['1', '2', '3', '4', '5', '6'];
    const [early, late] = [await request(loop.slice(0, 3)), await request(loop.slice(0, 5))];
    const [small, large] = [checkpointOf(early, 2, 'Small.'), checkpointOf(late, 6, 'Large.')];
    invocations.of(late)?.keep(large, late.spine);
    invocations.of(early)?.keep(small, early.spine);
    const reductionOn = async (calls: readonly string[]) => {
      const turn = await request(calls);
      return invocations.find(turn)?.reductionOn(turn.spine);
    };
    expect(await reductionOn(loop)).toBe(large);
    expect(await reductionOn([...loop.slice(0, 3), 'else'])).toBe(small);
    expect(await reductionOn(['1', '2', 'other'])).toBe(small);
    expect(await reductionOn(['other'])).toBe(NO_REDUCTION);
  });

  it('keeps the branch that waits while the other is reduced over and over (SPEC 7.6)', async () => {
    const { alone, request } = start();
    const invocations = alone();
    const waiting = await request(['1', 'b']);
    const ofWaiting = checkpointOf(waiting, 2, 'Of the one that waits.');
    invocations.of(waiting)?.keep(ofWaiting, waiting.spine);
    const loop: string[] = ['1'];
    for (let index = 0; index < 30; index++) {
      loop.push(`a${index}`);
      const turn = await request(loop);
      invocations.of(turn)?.keep(checkpointOf(turn, 2, `${index}`), turn.spine);
    }
    expect(invocations.find(waiting)?.reductionOn(waiting.spine)).toBe(ofWaiting);
  });

  it('ends for the branch that ended alone, and is gone with the last one (SPEC 7.6)', async () => {
    const { alone, request } = start();
    const invocations = alone();
    const [a, b] = [await request(['1', 'a']), await request(['1', 'b'])];
    const ofB = checkpointOf(b, 2, 'Of b.');
    invocations.of(a)?.keep(checkpointOf(a, 2, 'Of a.'), a.spine);
    invocations.of(b)?.keep(ofB, b.spine);
    invocations.of(b)?.remember(candidate('long'), 'short');
    await invocations.end(a);
    expect(invocations.find(b)?.reductionOn(b.spine)).toBe(ofB);
    expect(invocations.find(b)?.known(candidate('long'))).toBe('short');
    await invocations.end(b);
    expect(invocations.find(b)).toBeNull();
  });
});

describe('an invocation', () => {
  it('is another for another model, another opener, another conversation and another tenant (SPEC 7.6)', async () => {
    const { alone, request } = start();
    const invocations = alone();
    const turn = await request(['1']);
    invocations.of(turn)?.keep(checkpointOf(turn, 2, 'Made.'), turn.spine);
    const others: readonly Turn[] = [
      await request(['1'], 'other'),
      await request(['1'], 'any', 'Find out more.'),
      { ...turn, conversation: { ...turn.conversation, id: 'c_other' } },
      { ...turn, conversation: { ...turn.conversation, tenant: 'other' } },
    ];
    for (const other of others) expect(invocations.find(other)).toBeNull();
    expect(invocations.find(turn)).not.toBeNull();
  });

  it('is forgotten with its conversation, and only with that, whatever its models (SPEC 2.6)', async () => {
    const { alone, request } = start();
    const invocations = alone();
    const [one, other, elsewhere] = [
      await request(['1'], 'one'),
      await request(['1'], 'other'),
      await request(['1'], 'one', 'Something else.'),
    ];
    for (const turn of [one, other, elsewhere]) invocations.of(turn)?.giveUp(run);
    const stranger = { ...one, conversation: { ...one.conversation, tenant: 'stranger' } };
    invocations.of(stranger)?.giveUp(run);
    invocations.forget(one.conversation);
    expect([one, other, elsewhere, stranger].map((turn) => invocations.find(turn) === null)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('is forgotten when nobody used it for an hour', async () => {
    const { clock, alone, request } = start();
    const invocations = alone();
    const [one, other] = [await request(['1'], 'one'), await request(['1'], 'other')];
    for (const turn of [one, other]) invocations.of(turn)?.giveUp(run);
    await clock.pass(HOUR_MS / 2);
    expect(invocations.find(other)).not.toBeNull();
    await clock.pass(HOUR_MS / 2 + 1);
    expect(invocations.find(one)).toBeNull();
    expect(invocations.find(other)?.isGivenUp(run)).toBe(true);
  });
});

describe('invocations of two processes', () => {
  it('are one: what was made, what could not be made and what was given up is known to both (SPEC 7.6)', async () => {
    const { process, request } = start();
    const [here, there] = [process(), process()];
    const turn = await request(['1', '2']);
    const made = checkpointOf(turn, 2, 'Made here.');
    const invocation = here.of(turn);
    invocation?.keep(made, turn.spine);
    invocation?.remember(candidate('long'), 'short');
    invocation?.remember(candidate('stubborn'), null);
    invocation?.giveUp(run);
    await here.save(turn);

    const next = await request(['1', '2', '3']);
    expect(there.find(next)).toBeNull();
    await there.load(next);
    const known = there.find(next);
    expect(known?.reductionOn(next.spine)).toEqual(made);
    expect([known?.known(candidate('long')), known?.known(candidate('stubborn'))]).toEqual(['short', null]);
    expect(known?.isGivenUp(run)).toBe(true);
    expect(known?.isGivenUp({ ...run, last: 'c' })).toBe(false);
  });

  it('follow whoever reduced last, and what both made for the same request is what was saved (SPEC 7.6)', async () => {
    const { process, request } = start();
    const [here, there] = [process(), process()];
    const [first, second] = [await request(['1', '2']), await request(['1', '2', '3', '4'])];
    here.of(first)?.keep(checkpointOf(first, 2, 'First.'), first.spine);
    await here.save(first);
    await there.load(second);
    const further = checkpointOf(second, 6, 'Further.');
    there.of(second)?.keep(further, second.spine);
    await there.save(second);
    const third = await request(['1', '2', '3', '4', '5']);
    await here.load(third);
    expect(here.find(third)?.reductionOn(third.spine)).toEqual(further);

    here.of(third)?.keep(checkpointOf(third, 8, 'Here.'), third.spine);
    there.of(third)?.keep(checkpointOf(third, 8, 'There.'), third.spine);
    await there.save(third);
    await here.load(third);
    expect(here.find(third)?.reductionOn(third.spine)).toEqual(checkpointOf(third, 8, 'There.'));
  });

  it('read what is large only when it has changed', async () => {
    const { cache, process, request } = start();
    const [here, there] = [process(), process()];
    const turn = await request(['1']);
    here.of(turn)?.giveUp(run);
    await here.save(turn);
    await there.load(turn);
    cache.asked.length = 0;
    await here.load(turn);
    await there.load(turn);
    expect(cache.asked).toEqual(['get', 'get']);
  });

  it('do not meet under other settings, nor in another conversation, tenant or model', async () => {
    const { cache, process, request } = start();
    const here = process();
    const turn = await request(['1']);
    here.of(turn)?.giveUp(run);
    await here.save(turn);
    const foreign = process('other');
    await foreign.load(turn);
    expect(foreign.find(turn)).toBeNull();
    const there = process();
    for (const other of [
      await request(['1'], 'other'),
      { ...turn, conversation: { ...turn.conversation, tenant: 'other' } },
    ]) {
      await there.load(other);
      expect(there.find(other)).toBeNull();
    }
    expect([...cache.values.keys()].every((key) => key.includes(turn.conversation.id))).toBe(true);
  });

  it('leave nothing behind when the loop ends, nor when the conversation is erased (SPEC 2.6, 7.6)', async () => {
    const { cache, process, request } = start();
    const [here, there] = [process(), process()];
    const turn = await request(['1', '2']);
    here.of(turn)?.keep(checkpointOf(turn, 2, 'Made.'), turn.spine);
    await here.save(turn);
    expect(cache.values.size).toBe(2);
    await there.load(turn);
    await there.end(turn);
    expect(cache.values.size).toBe(0);

    here.of(turn)?.keep(checkpointOf(turn, 2, 'Made.'), turn.spine);
    const saving = here.save(turn);
    here.forget(turn.conversation);
    await saving;
    expect(cache.values.size).toBe(0);
  });

  it('share nothing for more than an hour, and never more than a megabyte: the oldest texts go first', async () => {
    const { clock, cache, process, request } = start();
    const [here, there] = [process(), process()];
    const turn = await request(['1', '2']);
    const made = checkpointOf(turn, 2, 'Made.');
    here.of(turn)?.keep(made, turn.spine);
    for (let index = 0; index < 40; index++) here.of(turn)?.remember(candidate(`${index}`), 'x'.repeat(50_000));
    await here.save(turn);
    expect(Math.max(...[...cache.values.values()].map((value) => value.length))).toBeLessThanOrEqual(1_000_000);
    await there.load(turn);
    const known = there.find(turn);
    expect(known?.reductionOn(turn.spine)).toEqual(made);
    expect([0, 39].map((index) => known?.known(candidate(`${index}`))?.length)).toEqual([undefined, 50_000]);

    await clock.pass(HOUR_MS);
    expect(cache.values.size).toBe(0);
  });

  it('are each their own where the cache fails or holds something else (SPEC 7.6)', async () => {
    const { cache, process, request } = start();
    const [here, there] = [process(), process()];
    const turn = await request(['1']);
    cache.isDown = true;
    here.of(turn)?.giveUp(run);
    await here.save(turn);
    await here.load(turn);
    expect(here.find(turn)?.isGivenUp(run)).toBe(true);
    cache.isDown = false;
    await here.save(turn);
    for (const key of cache.values.keys()) {
      const [, , field] = JSON.parse(key) as [string, string, string];
      if (!field.endsWith(':stamp')) await cache.set(turn.conversation, field, '{"reductions":[{}]}', 1_000);
    }
    await there.load(turn);
    expect(there.find(turn)).toBeNull();
    cache.isDown = true;
    await here.end(turn);
    expect(here.find(turn)).toBeNull();
  });
});
