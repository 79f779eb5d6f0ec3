import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { callTools } from '../../src/simulator/reply-plan.js';
import { Agent, messagesOf, toolMessages } from '../support/agent.js';
import type { WireMessage } from '../support/chat.js';
import { lookIntoLedger, replay } from '../support/replay.js';
import { openPair } from '../support/start.js';
import { toolOutputs } from '../support/tool-outputs.js';

const outputs = toolOutputs(400, 5).filter(({ text }) => text.length > 1_200 && text.length < 2_400);
const user = (content: string): WireMessage => ({ role: 'user', content });
const answer = (content: string): WireMessage => ({ role: 'assistant', content });

const loop = [user('Find out why the build fails.'), ...toolMessages(outputs.slice(0, 20))];
const turns = [
  user('Read the first one.'),
  ...toolMessages(outputs.slice(0, 1)),
  answer('It is a log.'),
  user('Read the second one.'),
  ...toolMessages(outputs.slice(1, 2)),
  answer('It is code.'),
  user('And the third?'),
];

/** Sends a history under some settings, and tells what the model read. */
async function send(folder: string, settings: Record<string, string>, messages: readonly WireMessage[]) {
  const pair = await openPair(
    { SPILLWAY_DATA_DIR: folder, ...settings },
    { script: () => callTools({ name: 'read_file', arguments: '{}' }) },
  );
  try {
    const agent = new Agent(pair, 'a-model');
    agent.add(...messages);
    const { status, spillway } = await agent.send();
    expect(status).toBe(200);
    return { spillway, sent: messagesOf(pair.simulator.chatRequests().at(-1)) };
  } finally {
    await pair.close();
  }
}

describe('a call whose view was substituted', () => {
  const window = (tokens: number) => ({ SPILLWAY_WINDOWS: `*=${tokens}` });
  it.each([
    [
      'summaries of tool results',
      { messages: loop, settings: window(16_384), later: { ...window(16_384), SPILLWAY_RESULT_STRATEGY: 'mask' } },
      '[Result shortened by the proxy',
    ],
    [
      'masked tool results',
      { messages: loop, settings: { ...window(16_384), SPILLWAY_RESULT_STRATEGY: 'mask' }, later: window(16_384) },
      'left out: ',
    ],
    ['a checkpoint', { messages: loop, settings: window(8_192), later: window(131_072) }, '[Work done so far]'],
    [
      'aged tool results',
      { messages: turns, settings: { ...window(131_072), SPILLWAY_AGING_TURNS: '1' }, later: window(131_072) },
      'left out: ',
    ],
    [
      'a spilled tool result',
      { messages: turns, settings: { ...window(131_072), SPILLWAY_SPILL_TOKENS: '100' }, later: window(131_072) },
      'the whole result is in node',
    ],
  ])(
    'is rendered again to the same bytes after the policy changed: %s (SPEC 4.6)',
    async (_, { messages, settings, later }, mark) => {
      const folder = await mkdtemp(join(tmpdir(), 'spillway-frozen-'));
      onTestFinished(() => rm(folder, { recursive: true, force: true }));
      const first = await send(folder, settings, messages);
      expect(JSON.stringify(first.sent)).toContain(mark);
      const second = await send(folder, later, messages);
      expect(JSON.stringify(second.sent)).not.toContain(mark);

      await lookIntoLedger(folder, async (ledger) => {
        const key = { tenant: 'local', id: first.spillway['conversation'] ?? '' };
        const nodes = await ledger.nodes(key, 0, 10_000);
        const calls = await ledger.calls(key, 10);
        for (const { spillway, sent } of [first, second]) {
          const call = calls.find(({ id }) => id === spillway['call']);
          if (call === undefined) throw new Error('a call was not recorded');
          const again = await replay(ledger, nodes, call);
          expect(again.map(({ source }) => JSON.stringify(source))).toEqual(sent.map((one) => JSON.stringify(one)));
        }
      });
    },
  );
});
