import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startChild } from './support/child.js';
import { SSE_HEADERS, chunkEvent, startProvider } from './support/provider.js';
import { sendChat } from './support/raw-client.js';
import { startPair } from './support/start.js';
import { callOf, nodesOf, onlyConversation } from './support/stored.js';

/** A process before a provider that begins every stream and ends none, and answers nothing else at all. */
async function startStalled(more: Readonly<Record<string, string>>) {
  const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const provider = await startProvider((received, response) => {
    if (received.body.includes('"stream":true')) {
      response.writeHead(200, SSE_HEADERS).write(chunkEvent({ content: 'So far' }));
    }
  });
  const settings = { SPILLWAY_UPSTREAM_URL: provider.url, SPILLWAY_DATA_DIR: dataDir };
  return { provider, settings, child: await startChild({ ...settings, ...more }) };
}

const question = { model: 'any', stream: true, messages: [{ role: 'user', content: 'Go on for ever.' }] };

describe('a process that is told to stop while a stream runs', () => {
  it.each([
    ['when the time to drain is up', { SPILLWAY_DRAIN_SECONDS: '0' }, 0],
    ['at once when it is told so again', { SPILLWAY_DRAIN_SECONDS: '3600' }, 1],
  ])('ends with 0 %s, the turn recorded as cancelled, SPEC 2.3, 2.4', async (_, more, repeats) => {
    const { provider, settings, child } = await startStalled(more);
    const answer = await sendChat(child.url, question).answer;
    await answer.until('So far');
    child.kill('SIGTERM');
    await expect.poll(() => child.said()).toContain('finishes what is running');
    for (let count = 0; count < repeats; count++) child.kill('SIGTERM');
    expect(await child.exited).toEqual([0, null]);
    await expect(answer.body()).rejects.toThrow('broke off');
    await expect.poll(() => provider.received[0]?.left.aborted).toBe(true);

    const pair = await startPair(settings);
    expect(await callOf(pair, answer.headers)).toMatchObject({ outcome: 'cancelled', status: 200 });
    const { id, head } = await onlyConversation(pair);
    const [asked, reply] = await nodesOf(pair, id);
    expect(head).toBe(asked?.id);
    expect(reply?.content).toMatchObject({ content: 'So far' });
  });

  it('does not wait for a summary either, told so again', async () => {
    const { provider, child } = await startStalled({ SPILLWAY_KEEP_TOKENS: '300', SPILLWAY_PURSE_SECONDS: '3600' });
    const turns = Array.from({ length: 8 }, (_, index) => [
      { role: 'user', content: `${index}: ${'plain words of no weight '.repeat(50)}` },
      { role: 'assistant', content: 'Noted.' },
    ]).flat();
    const messages = [...turns, { role: 'user', content: '/compact' }];
    const exchange = sendChat(child.url, { model: 'any', messages });
    exchange.answer.catch(() => undefined);
    // Run from its sources, it first packs the tokenizer's ranks.
    await expect.poll(() => provider.received.length, { timeout: 25_000 }).toBe(1);
    child.kill('SIGTERM');
    await expect.poll(() => child.said()).toContain('finishes what is running');
    child.kill('SIGTERM');
    expect(await child.exited).toEqual([0, null]);
  });
});
