import { setImmediate as nextRound } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SUMMARY_HEADINGS } from '../../src/core/compaction/headings.js';
import { createPurse } from '../../src/core/compaction/purse.js';
import { SpillwayError } from '../../src/core/errors.js';
import { isSummary } from '../../src/core/node.js';
import type { Trigger } from '../../src/core/node.js';
import type { Ledger, SummaryResponse } from '../../src/core/ports.js';
import { NO_REDUCTION } from '../../src/core/request/reduction.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { createCompactor } from '../../src/proxy/compactor.js';
import type { CompactionJob, CompactionReport } from '../../src/proxy/compactor.js';
import type { Turn } from '../../src/proxy/turn.js';
import { padding } from '../support/chat.js';
import { HandClock } from '../support/hand-clock.js';
import { createWorld } from '../support/in-memory.js';

const summaryText: SummaryResponse = {
  kind: 'text',
  text: SUMMARY_HEADINGS.map((heading) => `${heading}\nNone.`).join('\n'),
  stopped: true,
  stopReason: 'stop',
  calledTool: false,
  reasoningOnly: false,
  usage: null,
};

/** A history of so many turns of some 130 tokens; the words of the last ones can be others. */
function turns(count: number, ...last: readonly string[]) {
  const words = Array.from({ length: count }, (_, index) => last[index - count + last.length] ?? `turn ${index}`);
  return words
    .flatMap((word) => [
      { role: 'user', content: padding(word, 120) },
      { role: 'assistant', content: `That was ${word}.` },
    ])
    .slice(0, -1);
}

/** A summariser that is asked, and answers when the test says so. */
class Summariser {
  readonly asked: string[] = [];
  aborted = 0;
  #answer: (response: SummaryResponse) => void = () => undefined;
  readonly #response = new Promise<SummaryResponse>((resolve) => (this.#answer = resolve));

  readonly ask: CompactionJob['summarizer'] = ({ input }, signal) => {
    this.asked.push(input);
    const left = new Promise<SummaryResponse>((resolve) => {
      signal.addEventListener('abort', () => {
        this.aborted++;
        resolve({ kind: 'failed', reason: 'purse_empty' });
      });
    });
    return Promise.race([this.#response, left]);
  };

  answer(response: SummaryResponse = summaryText): void {
    this.#answer(response);
  }
}

const nobodyLeaves = new AbortController().signal;

/** Processes over one ledger, and a clock that all of them share. */
function start() {
  const clock = new HandClock();
  const send = () => Promise.reject(new Error('no summary is asked for over the wire here'));
  const world = createWorld({ windowTokens: 6_000, keepTokens: 300, send, clock: clock.now });
  let unique = 0;
  const process = (ledger: Ledger = world.ledger) =>
    createCompactor({ ledger, clock: clock.now, sleep: clock.sleep, uniqueId: () => `unique_${unique++}` });
  const open = (messages: readonly object[]) => world.open({ model: 'any', messages });
  const jobFor = async (
    turn: Turn,
    summariser: Summariser,
    trigger: Trigger = 'auto',
    seconds = 60,
  ): Promise<CompactionJob> => ({
    conversation: turn.conversation,
    policy: turn.policy,
    trigger,
    waits: trigger !== 'auto',
    input: {
      spine: turn.spine,
      active: turn.opened.active,
      reduction: NO_REDUCTION,
      ruler: await turn.measure.ruler(),
      limits: { windowTokens: 6_000, reserveTokens: 1_500, calibration: 1 },
      aim: 'window',
      keepTokensSetting: 300,
      minimumGain: 0.1,
      userWish: null,
      summariserWindowTokens: 6_000,
      forms: chatCompletions,
    },
    counter: await turn.measure.counter(),
    summarizer: summariser.ask,
    purse: createPurse({ calls: 32, durationMs: seconds * 1_000 }, clock.now),
    model: 'any',
  });
  const summaries = async (turn: Turn): Promise<number> =>
    (await world.ledger.nodes(turn.conversation, 0, 1_000)).filter(isSummary).length;
  return { clock, world, process, open, jobFor, summaries };
}

const soon = <T>(look: () => T) => expect.poll(look, { timeout: 20_000 });
const outcomeOf = ({ outcome, reason }: CompactionReport): string => `${outcome} ${reason}`;

describe('compactions in one process', () => {
  it('of two forks run side by side: neither waits for the other (SPEC 5.11)', async () => {
    const { process, open, jobFor, summaries } = start();
    const [one, other] = await Promise.all([open(turns(8)), open(turns(8, 'a', 'b', 'c', 'd', 'e', 'f'))]);
    const compactor = process();
    const [first, second] = [new Summariser(), new Summariser()];
    const running = [compactor.run(await jobFor(one, first), nobodyLeaves)];
    running.push(compactor.run(await jobFor(other, second), nobodyLeaves));
    await soon(() => [first.asked.length, second.asked.length]).toEqual([1, 1]);
    second.answer();
    await soon(() => summaries(one)).toBe(1);
    first.answer();
    expect((await Promise.all(running)).map(outcomeOf)).toEqual(['compacted compacted', 'compacted compacted']);
  });

  it('of what two requests that part in their last turn have in common are one (SPEC 5.11)', async () => {
    const { process, open, jobFor } = start();
    const [one, other] = await Promise.all([open(turns(8)), open(turns(8, 'another question'))]);
    const compactor = process();
    const [first, second] = [new Summariser(), new Summariser()];
    const running = [compactor.run(await jobFor(one, first), nobodyLeaves)];
    running.push(compactor.run(await jobFor(other, second), nobodyLeaves));
    await soon(() => first.asked.length).toBe(1);
    first.answer();
    const [report, joined] = await Promise.all(running);
    expect(joined?.summary?.id).toBe(report?.summary?.id);
    expect(second.asked).toEqual([]);
  });

  it('are waited for as long as the purse of the one that waits has time: then it is busy (SPEC 5.6, 5.11)', async () => {
    const { clock, process, open, jobFor, summaries } = start();
    const turn = await open(turns(8));
    const compactor = process();
    const [slow, second] = [new Summariser(), new Summariser()];
    const running = compactor.run(await jobFor(turn, slow), nobodyLeaves);
    await soon(() => slow.asked.length).toBe(1);
    const waiting = compactor.run(await jobFor(turn, second, 'reactive', 10), nobodyLeaves);
    await clock.pass(9_999);
    expect(await Promise.race([waiting, nextRound('waits')])).toBe('waits');
    await clock.pass(1);
    expect(outcomeOf(await waiting)).toBe('failed busy');
    expect(second.asked).toEqual([]);
    slow.answer();
    expect(outcomeOf(await running)).toBe('compacted compacted');
    expect(await summaries(turn)).toBe(1);
  });

  it('are waited for no longer by a client that left, and nothing is begun for it afterwards (SPEC 5.11)', async () => {
    const { process, open, jobFor } = start();
    const turn = await open(turns(8));
    const compactor = process();
    const [failing, second] = [new Summariser(), new Summariser()];
    const shorter = await open(turns(6));
    const running = compactor.run(await jobFor(turn, failing), nobodyLeaves);
    await soon(() => failing.asked.length).toBe(1);
    const leaving = new AbortController();
    // What fails for the longer history would be tried for the shorter one.
    const waiting = compactor.run(await jobFor(shorter, second), leaving.signal);
    leaving.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    failing.answer({ kind: 'failed', reason: 'summariser_status_500' });
    await running;
    await compactor.drain();
    expect(second.asked).toEqual([]);
  });

  it('that failed for a longer history say nothing of a shorter one (SPEC 5.11)', async () => {
    const { process, open, jobFor } = start();
    const [turn, shorter] = [await open(turns(8)), await open(turns(6))];
    const compactor = process();
    const [failing, second] = [new Summariser(), new Summariser()];
    const running = [compactor.run(await jobFor(turn, failing), nobodyLeaves)];
    running.push(compactor.run(await jobFor(shorter, second), nobodyLeaves));
    await soon(() => failing.asked.length).toBe(1);
    failing.answer({ kind: 'failed', reason: 'summariser_status_500' });
    second.answer();
    expect((await Promise.all(running)).map(outcomeOf)).toEqual([
      'failed summariser_status_500',
      'compacted compacted',
    ]);
  });
});

describe('compactions of several processes on one store', () => {
  it('stand in the way of one that does not wait: it is busy at once, and its request goes on raw (SPEC 5.11)', async () => {
    const { process, open, jobFor } = start();
    const turn = await open(turns(8));
    const [here, there] = [new Summariser(), new Summariser()];
    const running = process().run(await jobFor(turn, there), nobodyLeaves);
    await soon(() => there.asked.length).toBe(1);
    expect(outcomeOf(await process().run(await jobFor(turn, here), nobodyLeaves))).toBe('failed busy');
    expect(here.asked).toEqual([]);
    there.answer();
    expect(outcomeOf(await running)).toBe('compacted compacted');
    // The lease ends with the work: the next one finds what was made.
    expect((await process().run(await jobFor(turn, here), nobodyLeaves)).summary).toEqual((await running).summary);
  });

  it('make one busy that does not wait, and not the one that joined it and would (SPEC 5.11)', async () => {
    const { clock, process, open, jobFor } = start();
    const turn = await open(turns(8));
    const [here, there] = [new Summariser(), new Summariser()];
    const running = process().run(await jobFor(turn, there), nobodyLeaves);
    await soon(() => there.asked.length).toBe(1);
    const compactor = process();
    const jobs = [await jobFor(turn, here), await jobFor(turn, here, 'reactive')] as const;
    const [first, second] = jobs.map((job) => compactor.run(job, nobodyLeaves));
    expect(outcomeOf((await first) as CompactionReport)).toBe('failed busy');
    there.answer();
    await running;
    await clock.pass(5_000);
    expect((await second)?.summary).toEqual((await running).summary);
    expect(here.asked).toEqual([]);
  });

  it.each(['reactive', 'manual'] as const)('are waited for and joined by a %s one (SPEC 5.11)', async (trigger) => {
    const { clock, process, open, jobFor, summaries } = start();
    const turn = await open(turns(8));
    const [here, there] = [new Summariser(), new Summariser()];
    const running = process().run(await jobFor(turn, there), nobodyLeaves);
    await soon(() => there.asked.length).toBe(1);
    const waiting = process().run(await jobFor(turn, here, trigger), nobodyLeaves);
    const pauses: number[] = [];
    for (let looks = 0; looks < 7; looks++) {
      await clock.pass(0);
      const pauseMs = clock.waits[0] ?? 0;
      pauses.push(pauseMs);
      await clock.pass(pauseMs);
    }
    // Among them is one in which the other process renews its lease.
    expect(pauses).toEqual([100, 200, 400, 800, 1_600, 1_900, 100]);
    there.answer();
    await running;
    await clock.pass(2_000);
    expect((await waiting).summary).toEqual((await running).summary);
    expect(here.asked).toEqual([]);
    expect(await summaries(turn)).toBe(1);
  });

  it('that are not over when its purse is make a reactive one busy (SPEC 5.6)', async () => {
    const { clock, process, open, jobFor } = start();
    const turn = await open(turns(8));
    const [here, there] = [new Summariser(), new Summariser()];
    const running = process().run(await jobFor(turn, there), nobodyLeaves);
    await soon(() => there.asked.length).toBe(1);
    const waiting = process().run(await jobFor(turn, here, 'reactive', 20), nobodyLeaves);
    await clock.pass(20_000);
    expect(outcomeOf(await waiting)).toBe('failed busy');
    // It was renewed meanwhile, so that what the other one makes can be committed.
    there.answer();
    expect(outcomeOf(await running)).toBe('compacted compacted');
  });

  it('that died keep the spine until their lease has run out, and no longer (SPEC 5.11)', async () => {
    const { clock, world, process, open, jobFor } = start();
    const turn = await open(turns(8));
    await world.ledger.acquireLease(turn.conversation, [turn.spine[0]?.id ?? ''], 15_000);
    const here = new Summariser();
    here.answer();
    const waiting = process().run(await jobFor(turn, here, 'reactive'), nobodyLeaves);
    await clock.pass(14_000);
    expect(here.asked).toEqual([]);
    await clock.pass(3_000);
    expect(outcomeOf(await waiting)).toBe('compacted compacted');
  });

  it('of which one lost its lease: it stops at once and writes nothing (SPEC 5.8)', async () => {
    const { clock, world, process, open, jobFor, summaries } = start();
    const turn = await open(turns(8));
    const here = new Summariser();
    const stalled: Ledger = { ...portOf(world.ledger), renewLease: () => Promise.resolve(false) };
    const running = process(stalled).run(await jobFor(turn, here), nobodyLeaves);
    await soon(() => here.asked.length).toBe(1);
    await clock.pass(5_000);
    expect(outcomeOf(await running)).toBe('stale the lease was lost');
    expect(here.aborted).toBe(1);
    expect(await summaries(turn)).toBe(0);
  });

  it('commit under their lease: one whose end it slept through is stale where another took over (SPEC 5.8)', async () => {
    const { clock, world, process, open, jobFor, summaries } = start();
    const turn = await open(turns(8));
    const [asleep, awake] = [new Summariser(), new Summariser()];
    // A process that is stopped renews nothing.
    const stopped: Ledger = { ...portOf(world.ledger), renewLease: () => Promise.resolve(true) };
    const sleeping = process(stopped).run(await jobFor(turn, asleep), nobodyLeaves);
    await soon(() => asleep.asked.length).toBe(1);
    await clock.pass(16_000);
    const taking = process().run(await jobFor(turn, awake), nobodyLeaves);
    await soon(() => awake.asked.length).toBe(1);
    asleep.answer();
    expect(outcomeOf(await sleeping)).toBe('stale the lease was lost');
    awake.answer();
    expect(outcomeOf(await taking)).toBe('compacted compacted');
    expect(await summaries(turn)).toBe(1);
  });

  it('fail where the store cannot say who may (SPEC 5.9)', async () => {
    const { world, process, open, jobFor } = start();
    const turn = await open(turns(8));
    const here = new Summariser();
    const unavailable = () => Promise.reject(new SpillwayError('store_unavailable', 'down'));
    const broken = process({ ...portOf(world.ledger), acquireLease: unavailable });
    expect(outcomeOf(await broken.run(await jobFor(turn, here), nobodyLeaves))).toBe('failed store_unavailable');
    expect(here.asked).toEqual([]);
  });

  it('of a conversation that was erased meanwhile are stale (SPEC 2.6, 5.8)', async () => {
    const { world, process, open, jobFor } = start();
    const turn = await open(turns(8));
    const here = new Summariser();
    const running = process().run(await jobFor(turn, here), nobodyLeaves);
    await soon(() => here.asked.length).toBe(1);
    await world.ledger.eraseConversation(turn.conversation, null);
    here.answer();
    expect((await running).outcome).toBe('stale');
  });
});

/** A ledger's methods as members of an object of their own, so that some of them can be others. */
function portOf(ledger: Ledger): Ledger {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(ledger)) as (keyof Ledger)[];
  const methods = names.flatMap((name) => {
    const method: unknown = ledger[name];
    return typeof method === 'function' ? [[name, method.bind(ledger) as unknown] as const] : [];
  });
  return Object.fromEntries(methods) as unknown as Ledger;
}
