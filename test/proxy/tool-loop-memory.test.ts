import { describe, expect, it } from 'vitest';
import { callTools } from '../../src/simulator/reply-plan.js';
import { AGENT_TOOLS, messagesOf, toolMessages, unpaired } from '../support/agent.js';
import type { WireMessage } from '../support/chat.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { toolOutputs } from '../support/tool-outputs.js';

const WINDOW = 8_192;
const settings = { SPILLWAY_WINDOWS: `*=${WINDOW}` };
const USER = { role: 'user', content: 'Find out why the build fails.' } as const;

/** Outputs of some 600 tokens each: a dozen is more than the window takes. */
const outputs = toolOutputs(400, 5).filter(({ text }) => text.length > 1_200 && text.length < 2_400);
const goesOn = { windows: { '*': WINDOW }, script: () => callTools({ name: 'read_file', arguments: '{}' }) };

const send = (pair: StartedPair, messages: readonly WireMessage[]) =>
  pair.post({ model: 'an-agent', tools: AGENT_TOOLS, messages });
const actionOf = (response: Response): string => response.headers.get('x-spillway-action') ?? '';
const lastSent = (pair: StartedPair) => messagesOf(pair.simulator.chatRequests().at(-1));
const isCheckpointCall = (systemText: string): boolean => !systemText.includes('You shorten what one of');

/** Results that cannot be shortened, so that only a checkpoint helps. */
const onlyCheckpoints = {
  ...goesOn,
  summariser: ({ systemText }: { readonly systemText: string }) =>
    isCheckpointCall(systemText) ? ('faithful' as const) : ('echo' as const),
};

describe('two branches of a tool loop', () => {
  it('are each sent what they were sent before, and neither pays for its checkpoints again (SPEC 7.6)', async () => {
    const pair = await startPair(settings, onlyCheckpoints);
    const common = toolMessages(outputs.slice(0, 6));
    const branch = (from: number, count: number) => [
      USER,
      ...common,
      ...toolMessages(outputs.slice(from, from + count)),
    ];
    const before = new Map<number, readonly WireMessage[]>();
    for (const from of [10, 30]) {
      expect(actionOf(await send(pair, branch(from, 8)))).toContain('checkpoint');
      before.set(from, lastSent(pair));
    }
    const paid = pair.simulator.summaryRequests().length;
    for (const from of [10, 30, 10]) {
      expect(actionOf(await send(pair, branch(from, 9)))).toBe('none');
      const sent = before.get(from) ?? [];
      expect(lastSent(pair).slice(0, sent.length)).toEqual(sent);
      expect(unpaired(lastSent(pair))).toEqual([]);
    }
    expect(pair.simulator.summaryRequests()).toHaveLength(paid);
  });
});

describe('two requests of a tool loop at a time', () => {
  it('are made to fit once: the longer one begins with what the shorter one had made, and does no more (SPEC 7.6)', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const pair = await startPair(settings, { ...goesOn, summariser: () => released.then(() => 'faithful' as const) });
    const shorter = send(pair, [USER, ...toolMessages(outputs.slice(0, 14))]);
    await pair.simulator.waitFor(({ body }) => JSON.stringify(body ?? '').includes('You shorten what one of'));
    const longer = send(pair, [USER, ...toolMessages(outputs.slice(0, 15))]);
    // Its node is durable before it has to wait.
    await expect
      .poll(async () => ((await pair.api('/conversations')) as { data: { nodes: number }[] }).data[0]?.nodes, {
        timeout: 20_000,
      })
      .toBe(31);
    release();
    expect([actionOf(await shorter), actionOf(await longer)]).toEqual([
      expect.stringContaining('tool-results'),
      'none',
    ]);
    const [first, second] = pair.simulator.chatRequests().map(messagesOf);
    expect(second?.slice(0, first?.length)).toEqual(first);
  });
});

describe('a request that was refused', () => {
  it('costs nothing when it is sent again: what could not be made is known (SPEC 7.6, 7.7)', async () => {
    const pair = await startPair(settings, { ...goesOn, summariser: () => 'echo' });
    const messages = [USER, ...toolMessages(outputs.slice(0, 14))];
    expect((await send(pair, messages)).status).toBe(400);
    const paid = pair.simulator.summaryRequests().length;
    expect(paid).toBeGreaterThan(10);
    expect((await send(pair, messages)).status).toBe(400);
    expect(pair.simulator.summaryRequests()).toHaveLength(paid);
  });
});
