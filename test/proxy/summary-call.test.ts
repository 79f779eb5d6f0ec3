import { describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../../src/simulator/request-log.js';
import { padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';

const settings = { SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '700' };
const messages = [
  ...Array.from({ length: 10 }, (_, index) => [
    { role: 'user', content: padding(`turn ${index}`, 250) },
    { role: 'assistant', content: `That was turn ${index}.` },
  ]).flat(),
  { role: 'user', content: padding('more', 900) },
];

/** Sends a request that is compacted first, with this query. */
async function send(pair: StartedPair, query: string): Promise<void> {
  const response = await fetch(`${pair.spillway.url}/v1/chat/completions${query}`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'any', messages }),
  });
  expect(response.headers.get('x-spillway-action')).toBe('auto');
}

const queriesOf = (requests: readonly RecordedRequest[]): readonly string[] => requests.map(({ query }) => query);

describe('a summary call', () => {
  it('carries the query of the request that caused it, for upstreams that take none without (SPEC 5.6)', async () => {
    const pair = await startPair(settings);
    await send(pair, '?api-version=2024-10-21&x=a%20b');
    expect(queriesOf(pair.simulator.summaryRequests())).toEqual(['?api-version=2024-10-21&x=a%20b']);
  });

  it('carries a key in it where that is who pays, and not where another key does (SPEC 5.6)', async () => {
    const query = '?api-version=1&api-key=sk-of-the-client';
    const paidByClient = await startPair(settings);
    await send(paidByClient, query);
    expect(queriesOf(paidByClient.simulator.summaryRequests())).toEqual([query]);
    const paidHere = await startPair({ ...settings, SPILLWAY_SUMMARY_KEY: 'sk-for-summaries' });
    await send(paidHere, query);
    expect(queriesOf(paidHere.simulator.summaryRequests())).toEqual(['?api-version=1']);
    expect(queriesOf(paidHere.simulator.chatRequests())).toEqual([query]);
  });

  it('asked for through the API has the query of the base URL alone: nothing of a client is kept for it', async () => {
    const pair = await startPair({ ...settings, SPILLWAY_SUMMARY_KEY: 'sk-for-summaries', SPILLWAY_TRIGGER: '0.95' });
    await (await pair.post({ model: 'any', messages: messages.slice(0, -2) })).text();
    const { data } = (await pair.api('/conversations')) as { data: { id: string }[] };
    expect(await pair.api(`/conversations/${data[0]?.id}/compact`, {})).toMatchObject({ outcome: 'compacted' });
    expect(queriesOf(pair.simulator.summaryRequests())).toEqual(['']);
  });
});

describe('a manual compaction where nobody knows the window', () => {
  it('of a conversation that is hardly one finds nothing to compact, and says so (SPEC 5.10)', async () => {
    const pair = await startPair();
    const system = { role: 'system', content: padding('rules', 2_000) };
    const short = [system, { role: 'user', content: 'Hello' }, { role: 'assistant', content: 'Hello.' }];
    const ask = async (content: string) => {
      const response = await pair.post({ model: 'any', messages: [...short, { role: 'user', content }] });
      return (await response.json()) as { choices: { message: { content: string } }[] };
    };
    await ask('How are you?');
    const { data } = (await pair.api('/conversations')) as { data: { id: string }[] };
    expect(await pair.api(`/conversations/${data[0]?.id}/compact`, {})).toMatchObject({ outcome: 'no_op' });
    const { choices } = await ask('/compact');
    expect(choices[0]?.message.content).toMatch(/^Nothing to compact/);
    expect(pair.simulator.summaryRequests()).toEqual([]);
  });

  it('is still of no use where a window is known that the fixed part fills (SPEC 5.4)', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=3000' });
    const system = { role: 'system', content: padding('rules', 2_300) };
    const response = await pair.post({
      model: 'any',
      messages: [
        system,
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'Hello.' },
        { role: 'user', content: '/compact' },
      ],
    });
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    expect(choices[0]?.message.content).toMatch(/^Compaction cannot help here/);
  });
});
