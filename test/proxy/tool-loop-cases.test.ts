import { describe, expect, it } from 'vitest';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import { Agent, messagesOf, toolMessages, unpaired } from '../support/agent.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { toolOutputs } from '../support/tool-outputs.js';
import type { ToolOutput } from '../support/tool-outputs.js';

const WINDOW = 16_384;
const settings = { SPILLWAY_WINDOWS: `*=${WINDOW}` };
const USER = { role: 'user', content: 'Find out why the build fails.' } as const;
const SHORTENED = '[Result shortened by the proxy';

/** Outputs of some 600 tokens each: a score is more than the window takes, and leaves room for ten more once shortened. */
const outputs = toolOutputs(400, 5).filter(({ text }) => text.length > 1_200 && text.length < 2_400);

/** A model that is not done: a reply without a call would end the loop. */
const goesOn = { windows: { '*': WINDOW }, script: () => callTools({ name: 'read_file', arguments: '{}' }) };

function loopOf(pair: StartedPair, calls: readonly ToolOutput[], model = 'an-agent'): Agent {
  const agent = new Agent(pair, model);
  agent.add(USER, ...toolMessages(calls));
  return agent;
}

/** The marks of the results that a model was asked to shorten, as often as it was. */
function paidFor(pair: StartedPair): readonly string[] {
  return pair.simulator
    .summaryRequests()
    .map((request) => JSON.stringify(request.body))
    .filter((body) => body.includes('You shorten what one of'))
    .flatMap((body) => [...body.matchAll(/mark-\d+-\d+-\w+/g)].map(([mark]) => mark));
}

const lastSent = (pair: StartedPair) => messagesOf(pair.simulator.chatRequests().at(-1));

describe('a tool loop past its limit', () => {
  it('asks no model where results are masked, and says what stands where (SPEC 7.3)', async () => {
    const pair = await startPair({ ...settings, SPILLWAY_RESULT_STRATEGY: 'mask' }, goesOn);
    const agent = loopOf(pair, outputs.slice(0, 20));
    const step = await agent.send();
    expect(step).toMatchObject({ status: 200, spillway: { action: 'tool-results' } });
    expect(pair.simulator.summaryRequests()).toEqual([]);
    const masked = lastSent(pair).filter(({ content }) => String(content).startsWith('['));
    expect(masked).toHaveLength(Number(step.spillway['replaced']));
    for (const { content } of masked) {
      expect(content).toMatch(
        /^\[\w+ result of \d+ characters(?:, [\w ]+)?, left out: ".+ … .+"; whole in node [\w-]{32}\]$/,
      );
      const node = /whole in node ([\w-]{32})/.exec(String(content))?.[1] ?? '';
      const { data } = await pair.api(`/conversations/${step.spillway['conversation']}/nodes?limit=1000`);
      const whole = (data as { id: string; content: { content: string } }[]).find(({ id }) => id === node);
      expect(outputs.map(({ text }) => text)).toContain(whole?.content.content);
    }
  });

  it('says how many stand shortened, and what that saved (SPEC 7.1)', async () => {
    const pair = await startPair(settings, goesOn);
    const { spillway } = await loopOf(pair, outputs.slice(0, 20)).send();
    const shortened = lastSent(pair).filter(({ content }) => String(content).startsWith(SHORTENED));
    expect(Number(spillway['replaced'])).toBe(shortened.length);
    const [before, after, saved] = ['tokens-before', 'tokens-after', 'tokens-saved'].map((name) =>
      Number(spillway[name]),
    );
    expect(saved).toBe((before ?? 0) - (after ?? 0));
    expect(after).toBeLessThanOrEqual(Number(spillway['limit']) * 0.75);
  });

  it('sends the same bytes again with the next call, and asks for nothing (SPEC 7.6)', async () => {
    const pair = await startPair(settings, goesOn);
    await loopOf(pair, outputs.slice(0, 20)).send();
    const first = lastSent(pair);
    const paid = pair.simulator.summaryRequests().length;
    const next = loopOf(pair, outputs.slice(0, 21));
    expect((await next.send()).spillway['action']).toBe('none');
    expect(lastSent(pair).slice(0, first.length)).toEqual(first);
    expect(pair.simulator.chatRequests().at(-1)?.prefix?.broken).toBe(false);
    expect(pair.simulator.summaryRequests()).toHaveLength(paid);
  });

  it('pays once for two identical continuations at a time, and sends both alike (SPEC 7.6)', async () => {
    const pair = await startPair(settings, goesOn);
    const agents = [loopOf(pair, outputs.slice(0, 20)), loopOf(pair, outputs.slice(0, 20))];
    const steps = await Promise.all(agents.map((agent) => agent.send()));
    expect(steps.map(({ status }) => status)).toEqual([200, 200]);
    const marks = paidFor(pair);
    expect(marks.length).toBeGreaterThan(0);
    expect(new Set(marks).size).toBe(marks.length);
    const [one, other] = pair.simulator.chatRequests().map(({ bytes }) => Buffer.from(bytes).toString());
    expect(one).toBe(other);
  });

  it('is not held up by a result that cannot be shortened, and does not ask for it again (SPEC 7.3, 7.6)', async () => {
    const stubborn = outputs[0]?.mark ?? '';
    const pair = await startPair(settings, {
      ...goesOn,
      summariser: (request) => (JSON.stringify(request.body).includes(stubborn) ? 'echo' : 'faithful'),
    });
    const agent = loopOf(pair, outputs.slice(0, 20));
    expect((await agent.send()).status).toBe(200);
    const asked = (): number => paidFor(pair).filter((mark) => mark === stubborn).length;
    const before = asked();
    expect(before).toBeGreaterThan(0);
    for (const calls of [30, 40]) expect((await loopOf(pair, outputs.slice(0, calls)).send()).status).toBe(200);
    expect(asked()).toBe(before);
    expect(lastSent(pair).some(({ content }) => content === outputs[0]?.text)).toBe(true);
  });

  it('forgets what it made when the loop ends: the next turn carries none of it (SPEC 7.6)', async () => {
    const pair = await startPair(settings, { windows: { '*': WINDOW }, script: () => say('It was the cache.') });
    const agent = loopOf(pair, outputs.slice(0, 20));
    await agent.send();
    expect(JSON.stringify(lastSent(pair))).toContain(SHORTENED);
    const paid = paidFor(pair);

    // The same request once more meets nothing that was kept.
    await loopOf(pair, outputs.slice(0, 20)).send();
    const again = new Set(paidFor(pair).slice(paid.length));
    expect(paid.filter((mark) => !again.has(mark))).toEqual([]);

    agent.add({ role: 'user', content: 'Thank you. And what now?' });
    const { spillway } = await agent.send();
    expect(spillway['action']).toMatch(/^auto/);
    expect(JSON.stringify(lastSent(pair))).not.toContain(SHORTENED);
  });

  it('goes on under another model, each with what was made for it (SPEC 7.6)', async () => {
    const pair = await startPair(settings, goesOn);
    expect((await loopOf(pair, outputs.slice(0, 20), 'one').send()).spillway['action']).toBe('tool-results');
    const first = lastSent(pair);
    expect((await loopOf(pair, outputs.slice(0, 21), 'other').send()).spillway['action']).toBe('tool-results');
    expect(unpaired(lastSent(pair))).toEqual([]);
    const paid = pair.simulator.summaryRequests().length;
    expect(new Set(pair.simulator.summaryRequests().map(({ body }) => (body as { model: string }).model))).toEqual(
      new Set(['one', 'other']),
    );
    expect((await loopOf(pair, outputs.slice(0, 22), 'one').send()).status).toBe(200);
    expect(lastSent(pair).slice(0, first.length)).toEqual(first);
    expect(pair.simulator.summaryRequests()).toHaveLength(paid);
  });
});

describe('a client that leaves while its results are shortened', () => {
  it('takes the summary calls with it, and nothing half done is remembered (SPEC 7.8)', async () => {
    let hangs = true;
    const pair = await startPair(settings, { ...goesOn, summariser: () => (hangs ? 'hangs' : 'faithful') });
    const leaving = new AbortController();
    const left = loopOf(pair, outputs.slice(0, 20)).send({}, { signal: leaving.signal });
    const states = (): readonly string[] => pair.simulator.summaryRequests().map(({ state }) => state);
    // So many run at once (SPEC 7.3).
    await expect.poll(states, { timeout: 20_000 }).toEqual(['answering', 'answering', 'answering', 'answering']);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await expect.poll(states, { timeout: 20_000 }).toEqual(['aborted', 'aborted', 'aborted', 'aborted']);
    await expect.poll(() => pair.logs.at(-1), { timeout: 20_000 }).toMatchObject({ outcome: 'cancelled' });
    expect(pair.simulator.chatRequests()).toEqual([]);

    hangs = false;
    const again = await loopOf(pair, outputs.slice(0, 20)).send();
    expect(again).toMatchObject({ status: 200, spillway: { action: 'tool-results' } });
    const marks = paidFor(pair);
    // The oldest are asked for once more, and this time they come.
    expect(marks.filter((mark) => mark === outputs[0]?.mark)).toHaveLength(2);
    expect(lastSent(pair)[2]?.content).toMatch(/^\[Result shortened/);
  });
});

const small = { SPILLWAY_WINDOWS: '*=8192' };

/** Tokens by part, as a refusal names them. */
function partsIn(message: string): Readonly<Record<string, number>> {
  const list = message.slice(message.indexOf('They are: '));
  const parts = [...list.matchAll(/[:,] ([a-z ]+?)(?: \([^)]*\))? (\d+)/g)];
  return Object.fromEntries(parts.map(([, name = '', tokens]) => [name, Number(tokens)]));
}

const image = { type: 'image_url', image_url: { url: 'https://example.invalid/a.png', detail: 'high' } };
const hugeText = 'All of this matters, word for word. '.repeat(1_200);
const hugeTool = {
  type: 'function',
  function: { name: 'do_all', description: hugeText, parameters: { type: 'object', properties: {} } },
};
const hugeCall = {
  role: 'assistant',
  content: null,
  tool_calls: [
    {
      id: 'call_huge',
      type: 'function',
      function: { name: 'write_file', arguments: JSON.stringify({ text: hugeText }) },
    },
  ],
};

describe('a request that cannot be made to fit', () => {
  it.each([
    ['user text', { messages: [{ role: 'user', content: hugeText }] }],
    ['fixed part', { messages: [USER], tools: [hugeTool] }],
    ['media', { messages: [{ role: 'user', content: Array.from({ length: 12 }, () => image) }] }],
    ['open group', { messages: [USER, hugeCall, { role: 'tool', tool_call_id: 'call_huge', content: 'ok' }] }],
    [
      'history that could not be shortened',
      {
        messages: [
          USER,
          { ...hugeCall, reasoning_details: [{ type: 'reasoning.encrypted', data: 'sealed' }] },
          { role: 'tool', tool_call_id: 'call_huge', content: 'ok' },
          ...toolMessages(outputs.slice(0, 1)),
        ],
      },
    ],
  ])(
    'is refused before it leaves where the window is configured, and the error names the part: %s (SPEC 7.7)',
    async (part, body) => {
      const pair = await startPair(small, goesOn);
      const response = await pair.post({ model: 'any-model', ...body });
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: Record<string, string> };
      expect(error).toMatchObject({
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        param: 'messages',
      });
      expect(error['message']).toMatch(
        /^This model's maximum context length is 8192 tokens\. However, your messages resulted in about \d+ tokens/,
      );
      const parts = partsIn(error['message'] ?? '');
      const stated = Number(/resulted in about (\d+)/.exec(error['message'] ?? '')?.[1]);
      expect(Object.values(parts).reduce((sum, tokens) => sum + tokens, 0)).toBe(stated);
      expect(Object.keys(parts)).toEqual([
        'fixed part',
        'user text',
        'open group',
        'media',
        'summaries',
        'history that could not be shortened',
      ]);
      expect(Object.entries(parts).toSorted(([, a], [, b]) => b - a)[0]?.[0]).toBe(part);
      expect(parts[part]).toBeGreaterThan(5_735);
      expect(pair.simulator.requests).toEqual([]);
    },
  );

  it('is sent where the window is only believed, and the provider has the last word (SPEC 7.7)', async () => {
    const pair = await startPair({}, { ...goesOn, windows: { '*': 8_192 } });
    const response = await pair.post({ model: 'gpt-4', messages: [{ role: 'user', content: hugeText }] });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain('8192');
    expect(pair.simulator.chatRequests().length).toBeGreaterThan(0);

    const wide = await startPair({}, { script: () => say('It is a long text.') });
    const answered = await wide.post({ model: 'gpt-4', messages: [{ role: 'user', content: hugeText }] });
    expect(answered.status).toBe(200);
  });
});

describe('a tool loop in a window that nobody knows', () => {
  it('recovers when the provider refuses in the middle, and goes on (SPEC 6.4, 7.3)', async () => {
    const pair = await startPair({}, goesOn);
    const seen: Record<string, string>[] = [];
    for (let calls = 1; calls < 45; calls++) {
      const step = await loopOf(pair, outputs.slice(0, calls), 'a-model-nobody-knows').send();
      expect(step.status).toBe(200);
      seen.push({ action: step.spillway['action'] ?? '', overflow: step.spillway['overflow'] ?? '' });
      expect(unpaired(lastSent(pair))).toEqual([]);
      expect(lastSent(pair)[0]).toEqual(USER);
    }
    const recovered = seen.filter(({ overflow }) => overflow !== '');
    // The first one teaches the window; what follows is prepared for it.
    expect(recovered).toHaveLength(1);
    expect(recovered[0]?.['action']).toContain('tool-results');
    expect(seen.filter(({ action }) => action !== 'none').length).toBeGreaterThan(1);
    const marks = paidFor(pair);
    expect(new Set(marks).size).toBe(marks.length);
  });
});
