import { describe, expect, it } from 'vitest';
import type { Usage } from '../../src/core/message.js';
import type { Reply } from '../../src/dialects/dialect.js';
import { dispatchOf } from '../../src/proxy/dispatch.js';
import { overflowAfter } from '../../src/proxy/see-overflow.js';
import type { PlannedReply } from '../../src/simulator/reply-plan.js';
import { say } from '../../src/simulator/reply-plan.js';
import { padding } from '../support/chat.js';
import { createWorld } from '../support/in-memory.js';
import { sendChat } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { callOf, nodesOf, onlyConversation } from '../support/stored.js';

type WireMessage = Readonly<Record<string, unknown>> & { readonly role: string };

/** Ten turns of a good 2,900 tokens, 14 kB. */
const HISTORY: readonly WireMessage[] = Array.from({ length: 10 }, (_, index) => [
  { role: 'user', content: padding(`number ${index}`, 250) },
  { role: 'assistant', content: `That was ${index}.` },
]).flat();
const QUESTION: WireMessage = { role: 'user', content: 'And now?' };

const SAID = 'What is left of a reply.';
const WINDOW = { SPILLWAY_WINDOWS: '*=8000' };
/** So that the history lies just below the trigger by the estimate, and twice as much above the window. */
const NARROW = { SPILLWAY_WINDOWS: '*=5480' };

/** A reply for the first request, and ordinary ones from then on. */
function once(plan: PlannedReply) {
  let asked = 0;
  return { script: () => (++asked === 1 ? plan : null) };
}

function reply(choice: PlannedReply['choices'][number], promptTokens: number): PlannedReply {
  return { kind: 'reply', choices: [choice], promptTokens, ignoresCap: true };
}

async function ask(pair: StartedPair, messages: readonly WireMessage[], stream = false, more: object = {}) {
  // Without being asked for, a stream tells no usage.
  const usage = stream ? { stream_options: { include_usage: true } } : {};
  const answer = await sendChat(pair.spillway.url, { model: 'model-a', stream, messages, ...usage, ...more }).answer;
  const text = (await answer.body()).toString();
  return { answer, text, action: answer.headers['x-spillway-action'], overflow: answer.headers['x-spillway-overflow'] };
}

const seenTooLate = [
  ['a prompt that was cut in silence', 'cut-prompt', reply({ text: SAID }, 1_002), {}],
  ['a prompt above the window', 'above-window', reply({ text: SAID }, 5_481), NARROW],
  ['a reply cut at a full window', 'full-window', reply({ text: SAID, stop: 'length' }, 5_400), NARROW],
  [
    'a stop reason after content',
    'stop-reason',
    reply({ text: SAID, stop: 'model_context_window_exceeded' }, 2_900),
    {},
  ],
] as const;

describe('an overflow that only the end of a reply shows', () => {
  describe.each(seenTooLate)('%s', (_, reason, plan, settings) => {
    it.each([false, true])(
      'is relayed, recorded and logged, and the next turn compacts first, SPEC 6.2, 6.3: stream %s',
      async (stream) => {
        const pair = await startPair(settings, once(plan));
        const first = await ask(pair, [...HISTORY, QUESTION], stream);
        expect(first.text).toContain(stream ? 'What' : SAID);
        expect(first.action).toBe('none');
        // The headers of a stream have left by then.
        expect(first.overflow).toBe(stream ? undefined : reason);
        expect(await callOf(pair, first.answer.headers)).toMatchObject({ outcome: 'complete', overflow: reason });
        expect(pair.logs.at(-1)).toMatchObject({ overflow: reason, outcome: 'complete' });
        expect(pair.simulator.summaryRequests()).toEqual([]);

        const next = [...HISTORY, QUESTION, { role: 'assistant', content: SAID }, { role: 'user', content: 'Go on.' }];
        const second = await ask(pair, next, stream);
        expect(second.action).toBe('reactive');
        expect(second.overflow).toBeUndefined();
        expect(await callOf(pair, second.answer.headers)).toMatchObject({ overflow: null });
        expect(pair.simulator.chatRequests().length).toBe(2);
        expect((await onlyConversation(pair)).summaries).toBe(1);
      },
    );
  });
});

describe('an empty reply at a full window', () => {
  it.each([
    ['cut', 'full-window', { text: '', stop: 'length' }, 7_990, false],
    ['cut', 'full-window', { text: '', stop: 'length' }, 7_990, true],
    ['that says so', 'stop-reason', { text: '', stop: 'model_context_window_exceeded' }, 2_900, false],
    ['that says so', 'stop-reason', { text: '', stop: 'model_context_window_exceeded' }, 2_900, true],
  ] as const)(
    '%s (%s) is recovered from before the client sees it, SPEC 6.2, 6.4',
    async (_, reason, choice, promptTokens, stream) => {
      const pair = await startPair(WINDOW, once(reply(choice, promptTokens)));
      const seen = await ask(pair, [...HISTORY, QUESTION], stream);
      expect(seen).toMatchObject({ action: 'reactive', overflow: reason });
      expect(seen.text).not.toContain(choice.stop);
      expect(pair.simulator.chatRequests().length).toBe(2);
      expect(pair.logs.at(-1)).toMatchObject({ overflow: reason, action: 'reactive' });
      const { id, calls } = await onlyConversation(pair);
      expect(calls).toBe(2);
      // What was thrown away is no message of the conversation.
      const replies = (await nodesOf(pair, id)).filter(
        (node) => node.role === 'llm' && node.metadata.covers_ids == null,
      );
      expect(replies.length).toBe(11);
    },
  );

  it('with an estimate above the window is recovered from whatever its stop reason', async () => {
    // The window is only believed and no summary could be had, so that the prompt leaves although it does not fit (SPEC 7.7).
    const pair = await startPair({}, { ...once(reply({ text: '' }, 0)), summariser: ['server-error'] });
    const long = Array.from({ length: 12 }, (_, index) => [
      { role: 'user', content: padding(`number ${index}`, 750) },
      { role: 'assistant', content: `That was ${index}.` },
    ]).flat();
    const seen = await ask(pair, [...long, QUESTION], false, { model: 'gpt-4' });
    expect(seen).toMatchObject({ action: 'reactive', overflow: 'empty-reply' });
    const [first, second] = pair.simulator.chatRequests();
    expect(first?.promptTokens).toBeGreaterThan(8_192);
    expect(second?.promptTokens).toBeLessThan(8_192);
  });

  it('stands where nothing can be compacted, and is shown', async () => {
    const pair = await startPair(WINDOW, { script: () => reply({ text: '', stop: 'length' }, 7_990) });
    const seen = await ask(pair, [QUESTION]);
    expect(seen).toMatchObject({ action: 'none', overflow: 'full-window' });
    expect(seen.text).toContain('"length"');
    expect(pair.simulator.requests.length).toBe(1);
    expect(await callOf(pair, seen.answer.headers)).toMatchObject({ overflow: 'full-window', outcome: 'complete' });
  });

  it('is an ordinary reply far from the window', async () => {
    const pair = await startPair(WINDOW, { script: () => reply({ text: '' }, 2_900) });
    const seen = await ask(pair, [...HISTORY, QUESTION]);
    expect(seen).toMatchObject({ action: 'none', overflow: undefined });
    expect(pair.simulator.requests.length).toBe(1);
  });
});

describe('in observe mode', () => {
  it('an overflow is recorded and nothing is done about it', async () => {
    const pair = await startPair({ ...WINDOW, SPILLWAY_MODE: 'observe' }, once(reply({ text: SAID }, 8_001)));
    const first = await ask(pair, [...HISTORY, QUESTION]);
    expect(await callOf(pair, first.answer.headers)).toMatchObject({ overflow: 'above-window' });
    const next = [...HISTORY, QUESTION, { role: 'assistant', content: SAID }, { role: 'user', content: 'Go on.' }];
    expect(await ask(pair, next)).toMatchObject({ action: 'none', overflow: undefined });
    expect(pair.simulator.requests.length).toBe(2);
  });
});

describe('usage that is no overflow', () => {
  const IMAGE = `data:image/png;base64,${'A'.repeat(200_000)}`;
  const tools = Array.from({ length: 30 }, (_, index) => ({
    type: 'function',
    function: {
      name: `tool_${index}`,
      description: padding('This tool', 60),
      parameters: { type: 'object', properties: {} },
    },
  }));
  it.each<[string, readonly WireMessage[], object, Partial<PlannedReply>]>([
    ['a count that is near the estimate', [...HISTORY, QUESTION], {}, { promptTokens: 2_000 }],
    ['a count of zero', [...HISTORY, QUESTION], {}, { promptTokens: 0 }],
    ['a short prompt', [QUESTION], {}, { promptTokens: 1 }],
    [
      'echoed reasoning that the provider drops',
      [
        { role: 'user', content: padding('start', 2_000) },
        { role: 'assistant', content: 'Well.', reasoning_content: padding('hmm', 20_000) },
        QUESTION,
      ],
      {},
      { promptTokens: 2_100 },
    ],
    [
      'images at a price of the provider’s own',
      [
        { role: 'user', content: [{ type: 'image_url', image_url: { url: IMAGE } }] },
        { role: 'assistant', content: 'Nice.' },
        { role: 'user', content: padding('and', 2_000) },
      ],
      {},
      { promptTokens: 2_100 },
    ],
    ['tools that are rewritten', [QUESTION], { tools }, { promptTokens: 1_250 }],
  ])('changes nothing: %s', async (_, messages, more, usage) => {
    const pair = await startPair({}, { script: () => ({ ...say(SAID), ...usage }) });
    const seen = await ask(pair, messages, false, more);
    expect(seen.answer.status).toBe(200);
    expect(seen.overflow).toBeUndefined();
    expect(await callOf(pair, seen.answer.headers)).toMatchObject({ overflow: null });
  });

  const world = createWorld({ windowTokens: null, send: () => Promise.reject(new Error('not asked for')) });
  const usageOf = (inputTokens: number): Usage => ({
    inputTokens,
    outputTokens: 10,
    cachedTokens: null,
    reasoningTokens: null,
  });
  const replied = (inputTokens: number): Reply => ({
    messages: [],
    follows: false,
    references: [],
    stopReason: 'stop',
    finished: true,
    usage: usageOf(inputTokens),
    unread: null,
    error: null,
  });

  it('costs no tokenizer while the report can be true of the bytes, SPEC 7.9', async () => {
    const turn = await world.open({ model: 'm', messages: [...HISTORY, QUESTION] });
    const dispatch = dispatchOf(turn, null);
    expect(await overflowAfter(turn, dispatch, replied(2_500), null)).toBeNull();
    expect(turn.measure.tokenizer()).toBeNull();
    expect(await overflowAfter(turn, dispatch, replied(1_002), null)).toMatchObject({
      overflow: { reason: 'cut-prompt', limit: null },
    });
    expect(turn.measure.tokenizer()).not.toBeNull();
  });

  it('takes cached tokens that a server leaves out of its count to have come on top', async () => {
    const turn = await world.open({ model: 'm', messages: [...HISTORY, QUESTION] });
    const answered = replied(100);
    const cached = { ...answered, usage: { ...usageOf(100), cachedTokens: 2_800 } };
    expect(await overflowAfter(turn, dispatchOf(turn, null), cached, null)).toBeNull();
    expect(await overflowAfter(turn, dispatchOf(turn, null), answered, null)).not.toBeNull();
  });

  it('where a server cuts to half of its window, that window is drawn from it, SPEC 6.5', async () => {
    const opened = await world.open({ model: 'm', messages: [...HISTORY, QUESTION] });
    const upstream = { ...opened.request.upstream, baseUrl: 'http://127.0.0.1:11434/v1' };
    const turn = { ...opened, request: { ...opened.request, upstream } };
    const seen = await overflowAfter(turn, dispatchOf(turn, null), replied(1_026), null);
    expect(seen?.overflow).toMatchObject({ reason: 'cut-prompt', limit: 2_048, limitTrust: 'window' });
    expect(seen?.refusedTokens).toBeGreaterThan(2_048);
  });
});
