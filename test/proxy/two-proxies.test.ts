import { describe, expect, it, vi } from 'vitest';
import { isSummaryPrompt } from '../../src/core/compaction/headings.js';
import { isSummary } from '../../src/core/node.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { RecordedRequest } from '../../src/simulator/request-log.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import { AGENT_TOOLS, messagesOf, toolMessages, unpaired } from '../support/agent.js';
import { padding } from '../support/chat.js';
import { startProxiesOnOneStore } from '../support/proxies-on-one-store.js';
import type { OneOfMany } from '../support/proxies-on-one-store.js';
import { toolOutputs } from '../support/tool-outputs.js';

const HISTORY = Array.from({ length: 10 }, (_, index) => [
  { role: 'user', content: padding(`turn ${index}`, 250) },
  { role: 'assistant', content: `That was turn ${index}.` },
]).flat();
const full = { model: 'any', messages: [...HISTORY, { role: 'user', content: padding('more', 650) }] };
const compacting = { SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '700' };

const soon = <T>(look: () => T) => expect.poll(look, { timeout: 20_000 });
const actionOf = (response: Response): string => response.headers.get('x-spillway-action') ?? '';

function asksForSummary({ body }: RecordedRequest): boolean {
  const [first] = (body as { messages?: { content: string }[] } | undefined)?.messages ?? [];
  return isSummaryPrompt(first?.content ?? '');
}

/** A summariser that answers when the test says so. */
function held() {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  return { release, summariser: async () => released.then(() => 'faithful' as const) };
}

/** How often the beginning of the history was summarised; a long one takes several calls. */
function timesTold(simulator: Simulator): number {
  return simulator.summaryRequests().filter(({ body }) => JSON.stringify(body).includes('turn 0 plain')).length;
}

describe('two proxies on one store', () => {
  it('compact a conversation once: while one does, the other sends it raw, and then reads the summary (SPEC 5.11)', async () => {
    const { release, summariser } = held();
    const { simulator, proxies, ledger } = await startProxiesOnOneStore(2, compacting, { summariser });
    const [here, there] = pair(proxies);
    const compacted = there.post(full);
    await simulator.waitFor(asksForSummary);
    expect(actionOf(await here.post(full))).toBe('none');
    expect(messagesOf(simulator.chatRequests().at(-1))).toEqual(full.messages);
    expect(here.logs.at(-1)).toMatchObject({ compaction: 'failed', compactionReason: 'busy' });
    release();
    expect(actionOf(await compacted)).toBe('auto');

    await here.post(full);
    expect(messagesOf(simulator.chatRequests().at(-1))[0]?.content).toContain('[Previous conversation summary]');
    expect(timesTold(simulator)).toBe(1);
    const [conversation] = await ledger.list(null, 10, null);
    expect(conversation).toMatchObject({ summaries: 1 });
  });

  it('try again at once what was busy: nothing is known to have failed (SPEC 5.11)', async () => {
    const { proxies, ledger } = await startProxiesOnOneStore(2, compacting);
    const [here, there] = pair(proxies);
    await there.post({ ...full, messages: full.messages.slice(0, 1) });
    const [conversation] = await ledger.list(null, 10, null);
    if (conversation === undefined) throw new Error('no conversation');
    const [first] = await ledger.nodes(conversation, 0, 1);
    const lease = await ledger.acquireLease(conversation, [first?.id ?? ''], 60_000);
    expect(actionOf(await here.post(full))).toBe('none');
    if (lease !== null) await ledger.releaseLease(conversation, lease);
    expect(actionOf(await here.post(full))).toBe('auto');
  });

  it('recover from one overflow with one summary: the second waits for the first and joins it (SPEC 5.11, 6.4)', async () => {
    const { release, summariser } = held();
    const { simulator, proxies, ledger } = await startProxiesOnOneStore(
      2,
      // What is configured is not learned anew, so that both are refused by the provider.
      { SPILLWAY_WINDOWS: '*=20000', SPILLWAY_KEEP_TOKENS: '700' },
      { summariser, windows: { '*': 3_000 } },
    );
    const [here, there] = pair(proxies);
    const first = there.post(full);
    await simulator.waitFor(asksForSummary);
    const looks = vi.spyOn(ledger, 'acquireLease');
    const second = here.post(full);
    await soon(() => looks.mock.calls.length).toBeGreaterThan(0);
    release();
    const answers = await Promise.all([first, second]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers.map(actionOf)).toEqual(['reactive', 'reactive']);
    expect(timesTold(simulator)).toBe(1);
    const [conversation] = await ledger.list(null, 10, null);
    const nodes = conversation === undefined ? [] : await ledger.nodes(conversation, 0, 1_000);
    expect(nodes.filter(isSummary)).toHaveLength(1);
    const [one, other] = simulator
      .chatRequests()
      .slice(-2)
      .map(({ bytes }) => Buffer.from(bytes).toString());
    expect(one).toBe(other);
  });
});

describe('a request that does not fit as it is', () => {
  it('waits for what another proxy compacts, and is not refused (SPEC 5.11, 7.3)', async () => {
    const { release, summariser } = held();
    const { simulator, proxies, ledger } = await startProxiesOnOneStore(
      2,
      { SPILLWAY_WINDOWS: '*=4000', SPILLWAY_KEEP_TOKENS: '700' },
      { summariser },
    );
    const [here, there] = pair(proxies);
    const first = there.post(full);
    await simulator.waitFor(asksForSummary);
    const looks = vi.spyOn(ledger, 'acquireLease');
    const second = here.post(full);
    await soon(() => looks.mock.calls.length).toBeGreaterThan(0);
    release();
    expect((await Promise.all([first, second])).map(actionOf)).toEqual(['auto', 'auto']);
    expect(timesTold(simulator)).toBe(1);
  });
});

const WINDOW = 8_192;
const outputs = toolOutputs(400, 5).filter(({ text }) => text.length > 1_200 && text.length < 2_400);

/** A request of a tool loop after so many calls; without a call in its reply, the loop would be over. */
const loopAfter = (calls: number) => ({
  model: 'an-agent',
  tools: AGENT_TOOLS,
  messages: [{ role: 'user', content: 'Find out why the build fails.' }, ...toolMessages(outputs.slice(0, calls))],
});
const goesOn = { windows: { '*': WINDOW }, script: () => callTools({ name: 'read_file', arguments: '{}' }) };

/** The marks of the results that a model was asked to shorten, as often as it was. */
function paidFor(simulator: Simulator): readonly string[] {
  return simulator
    .summaryRequests()
    .map((request) => JSON.stringify(request.body))
    .filter((body) => body.includes('You shorten what one of'))
    .flatMap((body) => [...body.matchAll(/mark-\d+-\d+-\w+/g)].map(([mark]) => mark));
}

describe('a tool loop whose requests go to two proxies in turn', () => {
  it('reads the very same bytes as one that goes to one, and pays for nothing twice (SPEC 7.6)', async () => {
    const stubborn = outputs[1]?.mark ?? '';
    const { simulator, proxies, cache } = await startProxiesOnOneStore(
      2,
      { SPILLWAY_WINDOWS: `*=${WINDOW}` },
      {
        ...goesOn,
        keepRequests: 1_000,
        summariser: ({ systemText, body }) =>
          systemText.includes('shorten what one of') && JSON.stringify(body).includes(stubborn) ? 'echo' : 'faithful',
      },
    );
    const acted: string[] = [];
    for (let calls = 1; calls <= outputs.length; calls++) {
      const proxy = proxies[calls % 2];
      const response = await proxy?.post(loopAfter(calls));
      expect(response?.status).toBe(200);
      const last = simulator.chatRequests().at(-1);
      expect(unpaired(messagesOf(last))).toEqual([]);
      const action = response === undefined ? '' : actionOf(response);
      if (action !== 'none') {
        acted.push(`${calls % 2}`);
        continue;
      }
      // The prefix that was sent before stays, but where something is shortened; then there is nothing to be done either.
      expect(last?.prefix?.broken).toBe(false);
      await response?.text();
      await soon(() => proxy?.logs.at(-1)?.['nodes']).toBe(1 + 2 * calls);
      expect(proxy?.logs.at(-1)).not.toHaveProperty('compaction');
    }
    // Each of them acted, so that each built on what the other had made.
    expect(new Set(acted)).toEqual(new Set(['0', '1']));
    const marks = paidFor(simulator).filter((mark) => mark !== stubborn);
    expect(marks.length).toBeGreaterThan(10);
    expect(new Set(marks).size).toBe(marks.length);
    // A text that was refused is asked for once more at once, and then never again.
    expect(paidFor(simulator).filter((mark) => mark === stubborn).length).toBeLessThanOrEqual(2);
    expect(cache.values.size).toBe(2);
  });

  it('leaves nothing in the shared cache when it ends, whoever ends it (SPEC 7.6)', async () => {
    let isDone = false;
    const { proxies, cache } = await startProxiesOnOneStore(
      2,
      { SPILLWAY_WINDOWS: `*=${WINDOW}` },
      { windows: { '*': WINDOW }, script: () => (isDone ? say('It was the cache.') : goesOn.script()) },
    );
    const [here, there] = pair(proxies);
    expect(actionOf(await here.post(loopAfter(14)))).toContain('tool-results');
    expect(cache.values.size).toBe(2);
    isDone = true;
    await (await there.post(loopAfter(15))).text();
    await soon(() => cache.values.size).toBe(0);
  });

  it('goes on where the shared cache does not, each proxy by itself (SPEC 7.6)', async () => {
    const { proxies, cache, simulator } = await startProxiesOnOneStore(2, { SPILLWAY_WINDOWS: `*=${WINDOW}` }, goesOn);
    cache.isDown = true;
    for (let calls = 13; calls <= 20; calls++) {
      expect((await proxies[calls % 2]?.post(loopAfter(calls)))?.status).toBe(200);
      expect(unpaired(messagesOf(simulator.chatRequests().at(-1)))).toEqual([]);
    }
    expect(cache.values.size).toBe(0);
  });

  it('asks the shared cache nothing for turns that are no loop', async () => {
    const { proxies, cache } = await startProxiesOnOneStore(
      2,
      { SPILLWAY_WINDOWS: `*=${WINDOW}` },
      { script: () => say('Hello.') },
    );
    const [here, there] = pair(proxies);
    const messages = [{ role: 'user', content: 'Hello' }];
    await (await here.post({ model: 'any', messages })).text();
    const next = [...messages, { role: 'assistant', content: 'Hello.' }, { role: 'user', content: 'How are you?' }];
    await (await there.post({ model: 'any', messages: next })).text();
    expect(cache.asked).toEqual([]);
  });
});

describe('thin clients of two proxies on one store', () => {
  const thin = { 'x-spillway-conversation': 'shared', 'x-spillway-append': 'true' };
  const saying = (content: string) => ({ model: 'any', messages: [{ role: 'user', content }] });
  const wholeText = (response: Response) => response.text();

  it('append after HEAD when the turn that runs there in the other is over, SPEC 1.6', async () => {
    let end: () => void = () => undefined;
    let gate: Promise<void> = Promise.resolve();
    const { simulator, proxies, ledger, cache } = await startProxiesOnOneStore(
      2,
      {},
      { script: () => gate.then(() => say('Aye.')) },
    );
    const [here, there] = pair(proxies);
    await here.post(saying('One'), thin).then(wholeText);
    gate = new Promise((resolve) => (end = resolve));
    const running = here.post(saying('Two'), thin).then(wholeText);
    await simulator.waitFor(({ index, body }) => index === 1 && body !== undefined);
    const refused = await there.post(saying('Three'), thin);
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ error: { code: 'turn_in_progress' } });
    end();
    await running;
    await there.post(saying('Three'), thin).then(wholeText);
    const [entry] = await ledger.list(null, 1, null);
    if (entry === undefined) throw new Error('nothing is stored');
    const { nodes } = await ledger.spine(entry, null, 'session');
    const said = nodes.map((node) => (JSON.parse(node.content) as { content: string }).content);
    expect(said).toEqual(['One', 'Aye.', 'Two', 'Aye.', 'Three', 'Aye.']);
    await soon(() => cache.values.size).toBe(0);
  });

  it('are refused, and nothing is written, where the processes cannot hear of each other', async () => {
    const { proxies, ledger, cache } = await startProxiesOnOneStore(2, {}, { script: () => say('Aye.') });
    const [here, there] = pair(proxies);
    await here.post(saying('One'), thin).then(wholeText);
    cache.isDown = true;
    const refused = await there.post(saying('Two'), thin);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: 'store_unavailable' } });
    expect(await ledger.list(null, 1, null)).toMatchObject([{ nodes: 2 }]);
  });
});

function pair(proxies: readonly OneOfMany[]): readonly [OneOfMany, OneOfMany] {
  const [here, there] = proxies;
  if (here === undefined || there === undefined) throw new Error('two proxies are wanted');
  return [here, there];
}
