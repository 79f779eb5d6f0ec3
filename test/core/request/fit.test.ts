import { describe, expect, it } from 'vitest';
import { faultsOf } from '../../../src/core/check.js';
import { createPurse } from '../../../src/core/compaction/purse.js';
import { estimateView } from '../../../src/core/estimate.js';
import { render, viewMessages } from '../../../src/core/render.js';
import { fit } from '../../../src/core/request/fit.js';
import { NO_REDUCTION } from '../../../src/core/request/reduction.js';
import { chatCompletions } from '../../../src/dialects/chat-completions.js';
import { calls, fitInput, result, say, spineOf, summariser, user, words } from './loop.js';

function loop(sizes: readonly number[]) {
  const groups = sizes.flatMap((size, index) => [calls(`c${index}`), result(`c${index}`, words(size, `r${index}`))]);
  return spineOf([user('Please find the fault.'), ...groups]);
}

describe('a tool loop inside one user message', () => {
  it('is left alone while it fits its target (SPEC 7.1)', async () => {
    const deps = summariser();
    const fitted = await fit(fitInput(loop([50, 50]), {}), deps);
    expect(fitted).toMatchObject({ reduction: NO_REDUCTION, steps: [] });
    expect(deps.requests).toHaveLength(0);
  });

  it('has its oldest results shortened first, and no more than the target asks (SPEC 7.3)', async () => {
    const spine = loop([400, 400, 400, 200]);
    const fitted = await fit(fitInput(spine, { limitTokens: 6_000, targetTokens: 1_000 }), summariser());
    expect(fitted.steps).toEqual(['tool-results']);
    expect(fitted.reduction.results.map(({ callId }) => callId)).toEqual(['c0', 'c1']);
    expect(fitted.tokens).toBeLessThanOrEqual(1_000);
    expect(fitted.tokens).toBe(estimateView(render(spine, null, fitted.reduction), fitInput(spine, {}).ruler));
  });

  it('has the largest result of a group shortened first (SPEC 7.3)', async () => {
    const spine = spineOf([
      user('Go.'),
      calls('small', 'large'),
      result('small', words(200)),
      result('large', words(900)),
    ]);
    const fitted = await fit(fitInput(spine, { targetTokens: 600 }), summariser());
    expect(fitted.reduction.results.map(({ callId }) => callId)).toEqual(['large']);
  });

  it('keeps ids, names, arguments and user messages, and every call with its result (SPEC 7.3, 4.7)', async () => {
    const spine = loop([600, 600, 600]);
    const fitted = await fit(fitInput(spine, {}), summariser());
    const messages = viewMessages(spine, render(spine, null, fitted.reduction), chatCompletions);
    expect(faultsOf(messages)).toEqual([]);
    expect(messages[0]).toBe(spine[0]?.message);
    for (const [index, message] of messages.entries()) {
      expect(message.calls).toEqual(spine[index]?.message.calls);
      expect(message.results.map(({ callId }) => callId)).toEqual(
        spine[index]?.message.results.map(({ callId }) => callId),
      );
    }
  });

  it('never shortens beside an open call, media, or a result too small to gain (SPEC 7.3)', async () => {
    const image = { type: 'image_url', image_url: { url: 'https://example.invalid/a.png' } };
    const spine = spineOf([
      user('Go.'),
      calls('seen'),
      result('seen', [{ type: 'text', text: words(400) }, image]),
      calls('tiny'),
      result('tiny', words(100)),
      calls('open', 'done'),
      result('done', words(400)),
    ]);
    const deps = summariser();
    const fitted = await fit(fitInput(spine, { limitTokens: 100, targetTokens: 50 }), deps);
    expect(fitted.reduction.results).toEqual([]);
  });

  it('is asked nothing about where what is protected alone lies above the limit (SPEC 7.7)', async () => {
    const askedAtLength = (question: number) =>
      spineOf([user(words(question)), ...[0, 1, 2].flatMap((n) => [calls(`c${n}`), result(`c${n}`, words(400))])]);
    const deps = summariser();
    const hopeless = await fit(fitInput(askedAtLength(1_000), {}), deps);
    expect(hopeless).toMatchObject({ reduction: NO_REDUCTION, steps: [] });
    expect(deps.requests).toEqual([]);
    expect((await fit(fitInput(askedAtLength(800), {}), deps)).tokens).toBeLessThanOrEqual(1_000);
  });

  it('is not told anew in runs too small to gain: answers between questions stay as they are (SPEC 7.4)', async () => {
    const chat = Array.from({ length: 10 }, () => [user(words(80)), { role: 'assistant', content: words(20) }]).flat();
    const spine = spineOf([...chat, calls('c'), result('c', words(400)), user('And?')]);
    const deps = summariser();
    const fitted = await fit(fitInput(spine, { limitTokens: 1_400, targetTokens: 500 }), deps);
    expect(deps.requests).toHaveLength(1);
    expect(fitted.reduction.checkpoints).toEqual([]);
  });

  it('pays for no result twice, whether it shrank or not (SPEC 7.6)', async () => {
    const spine = loop([600, 600, 10]);
    const deps = summariser(({ input }) => say(input.includes('r0') ? words(700) : 'short'));
    const first = await fit(fitInput(spine, { limitTokens: 5_000, targetTokens: 100 }), deps);
    expect(first.reduction.results.map(({ callId }) => callId)).toEqual(['c1']);
    const paid = deps.requests.length;
    const again = await fit(
      fitInput(spine, { limitTokens: 5_000, targetTokens: 100, reduction: first.reduction }),
      deps,
    );
    expect(again.reduction).toEqual(first.reduction);
    expect(again.steps).toEqual([]);
    expect(deps.requests).toHaveLength(paid);
  });

  it('has what no model has read yet shortened last, and no further than it must (SPEC 7.1, 7.3)', async () => {
    const spine = loop([400, 400, 400]);
    const fitted = await fit(fitInput(spine, { limitTokens: 1_100, targetTokens: 300 }), summariser());
    expect(fitted.reduction.results.map(({ callId }) => callId)).toEqual(['c0', 'c1']);
    const giant = loop([10, 2_000]);
    const forced = await fit(fitInput(giant, { limitTokens: 1_100, targetTokens: 300 }), summariser());
    expect(forced.reduction.results.map(({ callId }) => callId)).toEqual(['c1']);
  });

  it('asks no more of a summariser that is down, and tries again with the next request (SPEC 7.6)', async () => {
    const spine = loop(Array.from({ length: 12 }, () => 200));
    let down = true;
    const deps = summariser(() => (down ? { kind: 'failed', reason: 'summariser_unreachable' } : say('short')));
    const input = fitInput(spine, { limitTokens: 2_000, targetTokens: 300 });
    expect((await fit(input, deps)).reduction).toEqual(NO_REDUCTION);
    expect(deps.requests.length).toBeLessThan(12);
    down = false;
    const fitted = await fit(input, deps);
    expect(fitted.steps).toContain('tool-results');
    expect(fitted.tokens).toBeLessThan(input.limitTokens / 2);
  });

  it('is masked to lines of its own without a call where the strategy says so (SPEC 7.3)', async () => {
    const spine = spineOf([
      user('Go.'),
      calls('a'),
      result('a', `start ${words(500)} exit code 3`),
      calls('b'),
      result('b', 'ok'),
    ]);
    const deps = summariser();
    const input = fitInput(spine, { strategy: 'mask', targetTokens: 100 });
    const fitted = await fit(input, deps);
    expect(deps.requests).toHaveLength(0);
    expect(fitted.reduction.results[0]?.text).toMatch(
      /^\[look result of \d+ characters, exit 3, left out: "start word .* exit code 3"; whole in node [\w-]{32}\]$/,
    );
    expect((await fit(input, summariser())).reduction).toEqual(fitted.reduction);
  });

  it('becomes a checkpoint where shortened results do not do, the latest segment word for word (SPEC 7.4)', async () => {
    const spine = loop(Array.from({ length: 30 }, () => 100));
    const fitted = await fit(fitInput(spine, { limitTokens: 600, targetTokens: 400 }), summariser());
    expect(fitted.steps).toEqual(['checkpoint']);
    const [checkpoint] = fitted.reduction.checkpoints;
    expect(checkpoint).toMatchObject({ first: spine[1]?.id, last: spine.at(-3)?.id, count: spine.length - 3 });
    const messages = viewMessages(spine, render(spine, null, fitted.reduction), chatCompletions);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'user', 'llm', 'tool']);
    expect(messages.slice(2)).toEqual(spine.slice(-2).map(({ message }) => message));
    expect(faultsOf(messages)).toEqual([]);
  });

  it('becomes one where many small results would use up the purse, part of which is kept for it (SPEC 5.6, 7.4)', async () => {
    const spine = loop(Array.from({ length: 40 }, () => 150));
    const deps = summariser();
    const limited = { ...deps, purse: createPurse({ calls: 12, durationMs: 60_000 }, () => 0) };
    const fitted = await fit(fitInput(spine, { limitTokens: 6_000, targetTokens: 1_200 }), limited);
    const asked = deps.requests.map(({ instructions }) => instructions.includes('You shorten'));
    expect(asked).toEqual([...Array.from({ length: 9 }, () => true), false]);
    expect(fitted.steps).toEqual(['tool-results', 'checkpoint']);
    expect(fitted.tokens).toBeLessThanOrEqual(1_200);
  });

  it('is a line for each result that an empty purse did not reach, where the request could not go on otherwise', async () => {
    const spine = loop(Array.from({ length: 40 }, () => 400));
    const limited = { ...summariser(), purse: createPurse({ calls: 2, durationMs: 60_000 }, () => 0) };
    const fitted = await fit(fitInput(spine, { limitTokens: 6_000, targetTokens: 1_200 }), limited);
    expect(fitted.tokens).toBeLessThanOrEqual(6_000);
    expect(limited.purse.callsLeft).toBe(0);
    const messages = viewMessages(spine, render(spine, null, fitted.reduction), chatCompletions);
    expect(faultsOf(messages)).toEqual([]);
    const enough = { ...summariser(), purse: createPurse({ calls: 2, durationMs: 60_000 }, () => 0) };
    const roomy = await fit(fitInput(spine, { limitTokens: 18_000, targetTokens: 1_200 }), enough);
    expect(roomy.reduction.results.length).toBeLessThan(3);
  });

  it('becomes one where ten more such calls would not fit beside its shortened results (SPEC 7.1)', async () => {
    const spine = loop(Array.from({ length: 12 }, () => 300));
    const fitTo = (limitTokens: number) =>
      fit(
        fitInput(spine, { limitTokens, targetTokens: 1_000 }),
        summariser(() => say(words(80))),
      );
    const narrow = await fitTo(4_000);
    expect(narrow.steps).toEqual(['tool-results', 'checkpoint']);
    expect(4_000 - narrow.tokens).toBeGreaterThan(10 * 326);
    const wide = await fitTo(8_000);
    expect(wide.steps).toEqual(['tool-results']);
    expect(8_000 - wide.tokens).toBeGreaterThan(10 * 326);
  });

  it('tells one unit of several assistant messages with all their results at once (SPEC, Words)', async () => {
    const groups = Array.from({ length: 10 }, (_, index) => [
      { role: 'assistant', content: 'Let me look.' },
      calls(`a${index}`),
      calls(`b${index}`),
      result(`b${index}`, words(200)),
      result(`a${index}`, words(200)),
    ]).flat();
    const spine = spineOf([user('Go.'), ...groups]);
    const shortened = await fit(fitInput(spine, { limitTokens: 50_000, targetTokens: 2_000 }), summariser());
    expect(new Set(shortened.reduction.results.map(({ callId }) => callId)).size).toBeGreaterThan(10);
    const told = await fit(fitInput(spine, { limitTokens: 3_000 }), summariser());
    expect(told.reduction.checkpoints).toMatchObject([{ first: spine[1]?.id, last: spine.at(-6)?.id }]);
    const messages = viewMessages(spine, render(spine, null, told.reduction), chatCompletions);
    expect(messages.slice(2)).toEqual(spine.slice(-5).map(({ message }) => message));
    expect(faultsOf(messages)).toEqual([]);
  });

  it('has runs split by what is not eligible, instead of none (SPEC 7.4)', async () => {
    const image = { type: 'image_url', image_url: { url: 'https://example.invalid/a.png' } };
    const group = (name: string) =>
      Array.from({ length: 10 }, (_, index) => [
        calls(`${name}${index}`),
        result(`${name}${index}`, words(100)),
      ]).flat();
    const spine = spineOf([
      user('First.'),
      ...group('a'),
      user('Second.'),
      ...group('b'),
      calls('seen'),
      result('seen', [image]),
      ...group('c'),
    ]);
    const fitted = await fit(fitInput(spine, { limitTokens: 1_000, targetTokens: 50 }), summariser());
    expect(fitted.reduction.checkpoints).toHaveLength(3);
    const messages = viewMessages(spine, render(spine, null, fitted.reduction), chatCompletions);
    const typed = messages.filter(({ text }) => text === 'First.' || text === 'Second.');
    expect(typed.map(({ text }) => text)).toEqual(['First.', 'Second.']);
    expect(messages.some(({ media }) => media.length === 1)).toBe(true);
    expect(faultsOf(messages)).toEqual([]);
  });

  it('extends its checkpoint with what came since, without telling the older work again (SPEC 7.4)', async () => {
    const longer = loop(Array.from({ length: 50 }, () => 100));
    const shorter = longer.slice(0, 41);
    const input = { limitTokens: 600, targetTokens: 400 };
    const first = await fit(fitInput(shorter, input), summariser());
    const deps = summariser();
    const second = await fit(fitInput(longer, { ...input, reduction: first.reduction }), deps);
    expect(second.reduction.checkpoints).toHaveLength(1);
    expect(second.reduction.checkpoints[0]?.first).toBe(first.reduction.checkpoints[0]?.first);
    expect(second.reduction.checkpoints[0]?.count).toBeGreaterThan(first.reduction.checkpoints[0]?.count ?? 0);
    expect(deps.requests.map(({ input: material }) => material).join('')).not.toContain('r3 r3');
  });

  it.each([
    ['fails', { kind: 'failed', reason: 'summariser_status_500' }],
    ['is cut off', say('half a', false)],
    ['is empty', say(' ')],
  ] as const)('stays as it is when the summary %s (SPEC 5.9, 7.3, 7.4)', async (_, answer) => {
    const spine = loop(Array.from({ length: 10 }, () => 300));
    const fitted = await fit(
      fitInput(spine, {}),
      summariser(() => answer),
    );
    expect(fitted.reduction).toEqual(NO_REDUCTION);
    expect(fitted.steps).toEqual([]);
  });
});
