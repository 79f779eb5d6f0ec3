import { describe, expect, it } from 'vitest';
import { callTools } from '../../src/simulator/reply-plan.js';
import { padding } from '../support/chat.js';
import type { WireMessage } from '../support/chat.js';
import { lastText } from '../support/sent.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';

/**
 * A purse of one call and a model for summaries that reads little at once: each compaction covers a few turns of many. The trigger is
 * at 11,000 tokens beside the reserve, the limit at 14,000; growth is 2,500 (SPEC 5.11).
 */
const settings = {
  SPILLWAY_WINDOWS: 'any=20000,small=5000',
  SPILLWAY_SUMMARY_MODEL: 'small',
  SPILLWAY_PURSE_CALLS: '1',
  SPILLWAY_KEEP_TOKENS: '700',
  SPILLWAY_RESULT_STRATEGY: 'mask',
};

const turns = (count: number): readonly WireMessage[] =>
  Array.from({ length: count }, (_, index) => [
    { role: 'user', content: padding(`turn ${index}`, 235) },
    { role: 'assistant', content: `That was turn ${index}, and it was noted.` },
  ]).flat();
const said = { role: 'assistant', content: 'Noted.' };
const user = (word: string, tokens: number) => ({ role: 'user', content: padding(word, tokens) });
const called = (id: string, tokens: number): readonly WireMessage[] => [
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: id, content: padding(id, tokens) },
];

async function send(pair: StartedPair, messages: readonly WireMessage[]) {
  const response = await pair.post({ model: 'any', messages });
  expect(response.status).toBe(200);
  await response.text();
  return {
    action: response.headers.get('x-spillway-action') ?? '',
    tokens: Number(response.headers.get('x-spillway-tokens-after')),
    paid: pair.simulator.summaryRequests().length,
  };
}

describe('a compaction that leaves the budget at the trigger or above', () => {
  it('is not gone on with by the same request again, nor by the next turn, before the history has grown (SPEC 5.11)', async () => {
    const pair = await startPair(settings);
    const messages = [...turns(50), user('more', 235)];
    const first = await send(pair, messages);
    expect(first).toMatchObject({ action: 'auto', paid: 1 });
    expect(first.tokens).toBeGreaterThan(11_000);
    const sent = lastText(pair);
    expect(await send(pair, messages)).toMatchObject({ action: 'none', paid: 1 });
    expect(lastText(pair)).toBe(sent);
    const next = [...messages, said, user('next', 500)];
    expect(await send(pair, next)).toMatchObject({ action: 'none', paid: 1 });
    expect(await send(pair, [...next, said, user('much', 2_100)])).toMatchObject({ action: 'auto', paid: 2 });
  });

  it('is gone on with where it ended below the trigger and the history reached it again', async () => {
    const pair = await startPair(settings);
    const messages = [...turns(45), user('more', 400)];
    const first = await send(pair, messages);
    expect(first).toMatchObject({ action: 'auto', paid: 1 });
    expect(first.tokens).toBeLessThan(11_000);
    expect(await send(pair, [...messages, said, user('next', 1_000)])).toMatchObject({ action: 'auto', paid: 2 });
  });

  it('is tried once in a tool loop, and again in the next turn, which can cover the loop (SPEC 5.11, 7.3)', async () => {
    const pair = await startPair(settings);
    const loop = [...turns(50), user('look', 20), ...called('one', 2_000)];
    const first = await send(pair, loop);
    expect(first).toMatchObject({ action: 'auto', paid: 1 });
    expect(first.tokens).toBeGreaterThan(11_000);
    const further = [...loop, ...called('two', 1_500)];
    const second = await send(pair, further);
    // It passes the limit again, and has grown too little: this time its results are shortened.
    expect(second).toMatchObject({ action: 'tool-results', paid: 1 });
    const done = [...further, said, user('thanks', 20)];
    expect(await send(pair, done)).toMatchObject({ paid: 2 });
    expect(pair.logs.at(-1)).toMatchObject({ compaction: 'compacted' });
  });

  it('is tried again in a tool loop whose history has grown, however much of it was shortened (SPEC 5.11)', async () => {
    // Without a call in the reply the loop would be over, and what was shortened for it forgotten.
    const pair = await startPair(settings, { script: () => callTools({ name: 'look', arguments: '{}' }) });
    const loop = [...turns(50), user('look', 20), ...called('one', 2_000)];
    expect(await send(pair, loop)).toMatchObject({ action: 'auto', paid: 1 });
    const seen: unknown[] = [];
    for (const id of ['two', 'three', 'four', 'five']) {
      loop.push(...called(id, 1_500));
      await send(pair, loop);
      seen.push(pair.logs.at(-1)?.['compaction']);
    }
    expect(seen).toEqual([undefined, undefined, 'compacted', undefined]);
  });
});
