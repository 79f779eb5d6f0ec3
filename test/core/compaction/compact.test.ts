import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { budgetShare, reserveTokens } from '../../../src/core/budget.js';
import type { Limits } from '../../../src/core/budget.js';
import { compact } from '../../../src/core/compaction/compact.js';
import type { CompactionInput } from '../../../src/core/compaction/compact.js';
import { SUMMARY_HEADINGS } from '../../../src/core/compaction/headings.js';
import { createPurse } from '../../../src/core/compaction/purse.js';
import { estimateView } from '../../../src/core/estimate.js';
import type { Ruler } from '../../../src/core/estimate.js';
import type { Message } from '../../../src/core/message.js';
import type { SummaryRequest, SummaryResponse } from '../../../src/core/ports.js';
import { render } from '../../../src/core/render.js';
import { NO_REDUCTION } from '../../../src/core/request/reduction.js';
import {
  calling,
  image,
  letterRuler,
  message,
  result,
  spineOf,
  forms,
  summaryOf,
  system,
  turn,
  user,
} from '../builders.js';

const headings = SUMMARY_HEADINGS.join('\n');

function says(text: string): SummaryResponse {
  return {
    kind: 'text',
    text,
    stopped: true,
    stopReason: 'stop',
    calledTool: false,
    reasoningOnly: false,
    usage: null,
  };
}

const limits: Limits = { windowTokens: 8_000, reserveTokens: 1_000, calibration: 1 };

interface Run {
  readonly messages: readonly Message[];
  readonly input?: Partial<CompactionInput>;
  readonly fixedTokens?: number;
  /** How many of the messages an active summary covers; none by default. */
  readonly covered?: number;
  answer?(request: SummaryRequest): SummaryResponse;
}

async function run({ messages, input = {}, fixedTokens = 0, covered = 0, answer = () => says(headings) }: Run) {
  const asked: SummaryRequest[] = [];
  const spine = spineOf(messages);
  const ruler = letterRuler(spine, fixedTokens);
  const outcome = await compact(
    {
      spine,
      active: covered === 0 ? null : summaryOf(spine, covered, 'summary_1', 'What was said before.'),
      ruler,
      limits,
      aim: { trigger: 0.8 },
      keepTokensSetting: null,
      minimumGain: 0.1,
      reduction: NO_REDUCTION,
      userWish: null,
      summariserWindowTokens: 100_000,
      forms,
      ...input,
    },
    {
      ask(request) {
        asked.push(request);
        return Promise.resolve(answer(request));
      },
      purse: createPurse({ calls: 32, durationMs: 60_000 }, () => 0),
      uniqueId: () => 'f3nc3',
      count: (text) => text.length,
    },
  );
  return { outcome, asked, spine, ruler };
}

const long = (word: string, tokens: number): string => word.repeat(Math.ceil(tokens / word.length));
const longTurns = (count: number, tokens: number): readonly Message[] =>
  Array.from({ length: count }, (_, index) => turn(long(String.fromCodePoint(97 + index), tokens / 2))).flat();

describe('a candidate', () => {
  it('covers the spine from its first node, in order, and keeps the rest, SPEC 3.2, 5.3', async () => {
    const messages = [...longTurns(6, 1_000), user('present')];
    const { outcome, spine, asked } = await run({ messages });
    const ids = spine.map((node) => node.id);
    expect(outcome).toMatchObject({ kind: 'candidate', coversIds: ids.slice(0, 8) });
    expect(asked).toHaveLength(1);
    for (const each of messages.slice(0, 8)) expect(asked[0]?.input).toContain(each.text);
    for (const each of messages.slice(8)) expect(asked[0]?.input).not.toContain(each.text);
  });

  it('extends the active summary’s segment and reads its text, not what it covers, SPEC 3.2, 5.5', async () => {
    const messages = [...longTurns(6, 1_000), user('present')];
    const { outcome, spine, asked } = await run({ messages, covered: 2 });
    expect(outcome).toMatchObject({ kind: 'candidate', coversIds: spine.slice(0, 8).map((node) => node.id) });
    expect(asked[0]?.input).toContain('What was said before.');
    expect(asked[0]?.input).not.toContain(messages[0]?.text);
    expect(asked[0]?.input).toContain(messages[2]?.text);
  });

  it('reads covered instructions in no summary call: they stay themselves, SPEC 4.8', async () => {
    const messages = [...longTurns(2, 1_500), system('PERSONA'), ...longTurns(4, 1_000), user('present')];
    const { outcome, asked, spine, ruler } = await run({ messages });
    expect(asked[0]?.input).not.toContain('PERSONA');
    expect(outcome.kind).toBe('candidate');
    if (outcome.kind !== 'candidate') return;
    const covering = summaryOf(spine, outcome.coversIds.length, 'x', outcome.content);
    const view = render(spine, covering);
    expect(view.pinned.map((index) => spine[index]?.message.text)).toEqual(['PERSONA']);
    expect(outcome.tokensAfter).toBe(estimateView(view, ruler));
  });

  it('reads no bytes of media, only a notice that names it, SPEC 5.5', async () => {
    const attached = message({ role: 'user', text: 'See.', media: [image('QUJD'.repeat(1_000), 'plan.png')] });
    const { asked } = await run({ messages: [attached, ...longTurns(6, 1_000), user('present')] });
    expect(asked[0]?.input).toContain('(image attached: plan.png)');
    expect(asked[0]?.input).not.toContain('QUJDQUJD');
  });

  it('covers as many whole turns as the purse allowed, SPEC 5.6', async () => {
    const messages = [...longTurns(6, 1_000), user('present')];
    let calls = 0;
    const { outcome, spine } = await run({
      messages,
      input: { summariserWindowTokens: 6_500 },
      answer: () => (++calls > 1 ? { kind: 'failed', reason: 'summariser_status_500' } : says(headings)),
    });
    expect(outcome.kind).toBe('candidate');
    if (outcome.kind !== 'candidate') return;
    const covered = outcome.coversIds.length;
    expect([2, 4, 6]).toContain(covered);
    expect(outcome.coversIds).toEqual(spine.slice(0, covered).map((node) => node.id));
    expect(calls).toBe(2);
  });
});

describe('there is none, and no model is asked', () => {
  it.each<readonly [string, Run, string, string]>([
    ['below the target', { messages: [...turn('a'), user('b')] }, 'no_op', 'below_target'],
    ['where one turn is all there is', { messages: [user(long('a', 9_000))] }, 'no_op', 'one_turn'],
    [
      'behind an open call',
      { messages: [user('a'), calling('x'), ...longTurns(6, 1_000)] },
      'no_op',
      'incomplete_unit',
    ],
    [
      'where nothing that is covered says anything',
      { messages: [message({ role: 'llm' }), message({ role: 'llm' }), user(long('a', 6_000))] },
      'no_op',
      'nothing_to_summarise',
    ],
    [
      'where tools and instructions take the window, SPEC 5.4',
      { messages: longTurns(6, 1_000), fixedTokens: 5_400 },
      'fixed_overhead',
      'fixed_overhead',
    ],
    [
      'where instructions on the spine take the window, SPEC 4.8, 5.4',
      {
        messages: Array.from({ length: 6 }, (_, index) => [system(long(`rule ${index} `, 1_000)), ...turn('a')]).flat(),
        input: { keepTokensSetting: 1 },
      },
      'fixed_overhead',
      'fixed_overhead',
    ],
  ])('%s', async (_name, how, kind, reason) => {
    const { outcome, asked } = await run(how);
    expect(outcome).toMatchObject({ kind, reason });
    expect(asked).toEqual([]);
  });
});

describe('it is refused', () => {
  const messages = [...longTurns(4, 400), user(long('z', 6_000))];

  it('where it is not smaller by the least gain, SPEC 5.7', async () => {
    const text = `${headings}\n${long('y', 1_000)}`;
    const { outcome } = await run({
      messages,
      input: { aim: 'window', limits: { ...limits, windowTokens: 12_000 } },
      answer: () => says(text),
    });
    expect(outcome.kind).toBe('candidate');
    const short = await run({
      messages: [...longTurns(1, 1_200), user(long('z', 6_000))],
      input: { aim: 'window', limits: { ...limits, windowTokens: 12_000 } },
      answer: () => says(text),
    });
    expect(short.outcome).toMatchObject({ kind: 'rejected', reason: 'not_smaller' });
  });

  it('with the summariser’s own reason, and the history is as it was, SPEC 5.7, 5.9', async () => {
    const empty = await run({ messages, answer: () => says('') });
    expect(empty.outcome).toMatchObject({ kind: 'rejected', reason: 'empty' });
    const failed = await run({ messages, answer: () => ({ kind: 'failed', reason: 'summariser_status_401' }) });
    expect(failed.outcome).toMatchObject({ kind: 'failed', reason: 'summariser_status_401' });
  });
});

it('an open tool loop is kept whole with its user message, whatever it costs, SPEC 5.3', async () => {
  const loop = [user('do it'), calling('x'), result('x', long('r', 5_000)), calling('y')];
  const { outcome, spine } = await run({ messages: [...longTurns(3, 800), ...loop] });
  expect(outcome).toMatchObject({ kind: 'candidate', coversIds: spine.slice(0, 6).map((node) => node.id) });
});

it('the result is below the trigger at every window from 4k to 2M, so no turn compacts again at once, SPEC 5.3', async () => {
  const world = fc.record({
    windowTokens: fc.oneof(fc.integer({ min: 4_000, max: 40_000 }), fc.integer({ min: 40_000, max: 2_000_000 })),
    outputCap: fc.option(fc.integer({ min: 1, max: 60_000 })),
    fixedShare: fc.double({ min: 0, max: 0.7, noNaN: true }),
    systemShare: fc.double({ min: 0, max: 0.5, noNaN: true }),
    calibration: fc.double({ min: 0.5, max: 2, noNaN: true }),
    trigger: fc.double({ min: 0.5, max: 0.95, noNaN: true }),
    turns: fc.integer({ min: 30, max: 60 }),
  });
  let compacted = 0;
  await fc.assert(
    fc.asyncProperty(world, async (each) => {
      const { windowTokens, calibration, trigger } = each;
      const known = { windowTokens, reserveTokens: reserveTokens(windowTokens, each.outputCap, null), calibration };
      const local = windowTokens / calibration;
      const past = Array.from({ length: each.turns }, (_, index) => [
        ...(index % 10 === 3 ? [system(`rule ${index}`)] : []),
        ...turn('said'),
      ]).flat();
      const messages = [...past, user('present')];
      const sizes = { system: (local * each.systemShare) / 6, other: local / each.turns / 2 };
      const ruler: Ruler = {
        ...letterRuler(spineOf([]), Math.floor(local * each.fixedShare)),
        tokensAt(index) {
          if (index === messages.length - 1) return 1;
          return Math.ceil(messages[index]?.role === 'system' ? sizes.system : sizes.other);
        },
      };
      const { outcome } = await run({
        messages,
        input: { ruler, limits: known, aim: { trigger }, summariserWindowTokens: 10_000_000 },
        // The worst summary that is accepted: as long as it may be.
        answer: (request) => says(`${headings}\n`.padEnd(request.maxOutputTokens, 'x')),
      });
      if (outcome.kind !== 'candidate') return;
      compacted++;
      expect(budgetShare(outcome.tokensAfter, known)).toBeLessThan(trigger);
    }),
    { numRuns: 500 },
  );
  expect(compacted).toBeGreaterThan(100);
});
