import { describe, expect, it } from 'vitest';
import { OVERFLOW_FORMS } from '../../src/simulator/overflow-forms.js';
import { replayedOverflow } from '../../src/simulator/replayed-overflow.js';
import { overflow } from '../core/overflow/evidence.js';
import { eventsOf, jsonOf, postChat, simulate } from './simulate.js';

const LIMIT = 2_000;
const text = 'plain words of no weight '.repeat(600);
const body = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: text }] };
const refusals = Object.entries(OVERFLOW_FORMS).filter(([, form]) => form.where !== 'reply');
const replies = Object.entries(OVERFLOW_FORMS).filter(([, form]) => form.where === 'reply');

/** What each silent form tells of a prompt of so many tokens. */
const SILENT: Readonly<Record<string, (input: number) => object>> = {
  'stop-reason': (input) => ({ stop: 'model_context_window_exceeded', says: false, tokens: input }),
  'stop-reason-after-content': (input) => ({ stop: 'model_context_window_exceeded', says: true, tokens: input }),
  'length-without-content': () => ({ stop: 'length', says: false, tokens: LIMIT }),
  'length-after-content': () => ({ stop: 'length', says: true, tokens: LIMIT }),
  'empty-reply': () => ({ stop: 'stop', says: false, tokens: 0 }),
  'above-window': (input) => ({ stop: 'stop', says: true, tokens: input }),
  'cut-prompt': () => ({ stop: 'stop', says: true, tokens: LIMIT / 2 + 2 }),
};

/** What a provider of that form answers, as text. */
async function refused(name: string, stream: boolean) {
  const simulator = await simulate({ windows: { m: LIMIT }, overflow: OVERFLOW_FORMS[name] });
  const response = await postChat(simulator, { ...body, stream });
  const answered = await response.text();
  return { status: response.status, text: answered, input: simulator.requests[0]?.promptTokens ?? 0 };
}

describe('an overflow form', () => {
  it.each(refusals.map(([name]) => name))('states the numbers of the request itself: %s', async (name) => {
    const { status, text: answered, input } = await refused(name, false);
    expect(status).toBeGreaterThanOrEqual(400);
    if (answered === '') return;
    const seen = overflow(answered, { status, estimatedTokens: input });
    // Where a number stands in the text it is the request's own, and read as what it is.
    expect(seen.limit).toBe(answered.includes(String(LIMIT)) ? LIMIT : null);
    const total = input + 100;
    const statesUse = [input, total, total - LIMIT].some((tokens) => answered.includes(String(tokens)));
    const excessOnly = seen.limit === null && seen.excess === total - LIMIT;
    expect([input, total, null]).toContain(seen.used);
    expect(seen.used !== null || excessOnly).toBe(statesUse);
  });

  it.each(refusals.flatMap(([name, form]) => (form.where === 'http' ? [] : [[name, form.where] as const])))(
    'comes inside a stream after a 200: %s, %s',
    async (name, where) => {
      const { status, text: answered, input } = await refused(name, true);
      expect(status).toBe(200);
      expect(overflow(answered, { status, estimatedTokens: input }).kind).not.toBe('bytes');
      expect(answered.includes('"role":"assistant"')).toBe(where !== 'first');
      expect(answered.includes('"content":"This reply')).toBe(where === 'after-content');
    },
  );

  it.each(replies.map(([name]) => name))('is a reply of which only stop and usage tell: %s', async (name) => {
    const simulator = await simulate({ windows: { m: LIMIT }, overflow: OVERFLOW_FORMS[name] });
    const whole = await jsonOf(await postChat(simulator, body));
    const [choice] = whole.choices;
    const streamed = eventsOf(
      await (await postChat(simulator, { ...body, stream: true, stream_options: { include_usage: true } })).text(),
    );
    // The same prompt once more is in the cache, and counts the same.
    const { prompt_tokens, completion_tokens, total_tokens } = whole.usage;
    expect(streamed.at(-1)?.usage).toMatchObject({ prompt_tokens, completion_tokens, total_tokens });
    const input = simulator.requests[0]?.promptTokens ?? 0;
    const told = {
      stop: choice.finish_reason,
      says: choice.message.content !== '',
      tokens: whole.usage.prompt_tokens,
    };
    expect(told).toEqual(SILENT[name]?.(input));
  });

  it('is replayed as often as was said, whatever the size of the request', async () => {
    const simulator = await simulate({ script: replayedOverflow(Buffer.of(0x7b, 0xff), 422, { times: 2 }) });
    const ask = () => postChat(simulator, { model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
    for (let time = 0; time < 2; time++) {
      const response = await ask();
      expect(response.status).toBe(422);
      expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.of(0x7b, 0xff));
    }
    expect((await ask()).status).toBe(200);
  });
});
