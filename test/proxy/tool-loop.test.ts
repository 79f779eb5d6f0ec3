import { hash as digestOf } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chainIds } from '../../src/core/canonical.js';
import type { Message } from '../../src/core/message.js';
import type { Ledger } from '../../src/core/ports.js';
import { sentence } from '../../src/simulator/default-script.js';
import type { ModelRequest } from '../../src/simulator/model-request.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { ReplyPlan } from '../../src/simulator/reply-plan.js';
import { hash32 } from '../../src/simulator/seeded.js';
import type { SummaryBehaviour } from '../../src/simulator/summariser.js';
import { Agent, messagesOf, unpaired } from '../support/agent.js';
import type { WireMessage } from '../support/chat.js';
import { lookIntoLedger, readWire, replay } from '../support/replay.js';
import { openPair } from '../support/start.js';
import { toolOutputs } from '../support/tool-outputs.js';
import type { ToolOutput } from '../support/tool-outputs.js';

const SYSTEM: WireMessage = { role: 'system', content: 'You are a coding agent. Find faults and mend them.' };
const USER: WireMessage = {
  role: 'user',
  content: 'Find out why "the build" fails.\n\n  Keep the indentation, and do not touch src/ledger — ever.\n',
};

/** Every size of a result up to 60 kB as often as any other; mostly code, so 30 kB are about 8,500 tokens. */
const EVERY_SIZE = { sizes: 'uniform', reads: 3 / 4 } as const;

/** One request of the loop, as far as the provider saw it. */
interface Sent {
  readonly action: string;
  readonly call: string;
  readonly promptTokens: number;
  readonly broken: boolean;
  readonly hasUserMessage: boolean;
  readonly unpaired: readonly string[];
  /** Names the whole list of messages behind the system message. */
  readonly messages: string;
}

const hash = (text: string): string => digestOf('sha256', text, 'base64url').slice(0, 32);
const nameOf = (messages: readonly Message[]): string => chainIds(hash, 'list', messages).at(-1) ?? '';

/** As a model shortens: to a fifth, within its cap. Some small results come back longer than they were. */
function shorten(request: ModelRequest, isStubborn: boolean): SummaryBehaviour {
  const { promptTokens, outputCap } = request;
  const most = (outputCap ?? 1_000) / 2;
  const words = isStubborn ? promptTokens : Math.floor(Math.min(most, promptTokens / 5));
  return { kind: 'plan', plan: say(sentence(request.messages.at(-1)?.text ?? '', words)) };
}

const MARK = /mark-\d+-\d+-\w+/g;

class Loop {
  readonly agent: Agent;
  readonly sent: Sent[] = [];
  readonly failed: string[] = [];
  /** How often each result's beginning stood in a request to shorten a result. */
  readonly shortened = new Map<string, number>();
  readonly stubborn = new Set<string>();
  checkpoints = 0;
  conversation = '';
  #step = 0;

  readonly pair: Awaited<ReturnType<typeof openPair>>;
  readonly #outputs: readonly ToolOutput[];
  readonly #folder: string;

  private constructor(pair: Awaited<ReturnType<typeof openPair>>, outputs: readonly ToolOutput[], folder: string) {
    this.pair = pair;
    this.#outputs = outputs;
    this.#folder = folder;
    this.agent = new Agent(pair, 'an-agent');
  }

  static async run(windowTokens: number, outputs: readonly ToolOutput[]): Promise<Loop> {
    const folder = await mkdtemp(join(tmpdir(), 'spillway-loop-'));
    const holder: { loop?: Loop } = {};
    const pair = await openPair(
      { SPILLWAY_WINDOWS: `*=${windowTokens}`, SPILLWAY_DATA_DIR: folder },
      {
        windows: { '*': windowTokens },
        keepRequests: 64,
        script: () => holder.loop?.plan() ?? null,
        summariser: (request) => holder.loop?.summarise(request) ?? 'faithful',
      },
    );
    const loop = new Loop(pair, outputs, folder);
    holder.loop = loop;
    await loop.#go();
    return loop;
  }

  plan(): ReplyPlan {
    const output = this.#outputs[this.#step];
    return output === undefined
      ? say('Done.')
      : callTools({ name: output.tool, arguments: output.arguments, id: `call_${this.#step}` });
  }

  summarise(request: ModelRequest): SummaryBehaviour {
    if (!request.systemText.includes('shorten what one of')) {
      this.checkpoints++;
      return shorten(request, false);
    }
    const marks = request.messages.at(-1)?.text.match(MARK) ?? [];
    for (const mark of marks) this.shortened.set(mark, (this.shortened.get(mark) ?? 0) + 1);
    const isStubborn = request.promptTokens < 900 && marks.some((mark) => hash32(mark) % 3 === 0);
    if (isStubborn) for (const mark of marks) this.stubborn.add(mark);
    return shorten(request, isStubborn);
  }

  async #go(): Promise<void> {
    this.agent.add(SYSTEM, USER);
    for (this.#step = 0; this.#step <= this.#outputs.length; this.#step++) {
      const { status, error, spillway } = await this.agent.send();
      if (status !== 200) {
        this.failed.push(`${this.#step}: ${status} ${error}`);
        return;
      }
      const record = this.pair.simulator.chatRequests().at(-1);
      const messages = messagesOf(record);
      this.conversation = spillway['conversation'] ?? '';
      this.sent.push({
        action: spillway['action'] ?? '',
        call: spillway['call'] ?? '',
        promptTokens: record?.promptTokens ?? Number.POSITIVE_INFINITY,
        broken: record?.prefix?.broken ?? true,
        hasUserMessage: messages.some((message) => JSON.stringify(message) === JSON.stringify(USER)),
        unpaired: unpaired(messages),
        messages: nameOf(messages.slice(1).map(readWire)),
      });
      const output = this.#outputs[this.#step];
      if (output !== undefined) this.agent.answer(output);
    }
  }

  /** What the ledger holds, read through a connection of its own. */
  ledger<T>(look: (ledger: Ledger) => Promise<T>): Promise<T> {
    return lookIntoLedger(this.#folder, look);
  }

  async close(): Promise<void> {
    await this.pair.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

describe.each([
  ['300 calls with results that are mostly small', '8k', 8_192, toolOutputs(300, 11)],
  ['300 calls with results that are mostly small', '32k', 32_768, toolOutputs(300, 11)],
  ['300 calls with results that are mostly small', '128k', 131_072, toolOutputs(300, 11)],
  ['40 calls with results of every size', '8k', 8_192, toolOutputs(40, 12, EVERY_SIZE)],
  ['40 calls with results of every size', '32k', 32_768, toolOutputs(40, 12, EVERY_SIZE)],
  ['120 calls with results of every size', '128k', 131_072, toolOutputs(120, 12, EVERY_SIZE)],
])('a tool loop of %s under one user message in a window of %s', (_, size, windowTokens, outputs) => {
  const calls = outputs.length;
  let loop: Loop;
  beforeAll(async () => {
    loop = await Loop.run(windowTokens, outputs);
  }, 240_000);
  afterAll(() => loop.close());

  it('comes to its end, with something to do on the way', () => {
    expect(loop.failed).toEqual([]);
    expect(loop.sent).toHaveLength(calls + 1);
    expect(loop.sent.some(({ action }) => action.includes('tool-results'))).toBe(true);
    if (size !== '128k' || calls < 300) expect(loop.checkpoints).toBeGreaterThan(0);
    expect(loop.agent.messages.at(-1)?.content).toBe('Done.');
  });

  it('has the first user message in every request, word for word (SPEC 7.4)', () => {
    expect(loop.sent.filter(({ hasUserMessage }) => !hasUserMessage)).toEqual([]);
  });

  it('has every call with its result and every result with its call in every request (SPEC 4.7)', () => {
    expect(loop.sent.flatMap((sent) => sent.unpaired)).toEqual([]);
  });

  it('stays within the window less the reserve in every request (SPEC 7.1, 7.2)', () => {
    const most = windowTokens - Math.min(16_384, windowTokens / 4);
    expect(loop.sent.filter(({ promptTokens }) => promptTokens > most)).toEqual([]);
  });

  it('breaks the prefix that was sent only where it acts, and acts seldom in a large window (SPEC 7.1)', () => {
    const acted = loop.sent.filter(({ action }) => action !== 'none').length;
    expect(loop.sent.filter(({ broken }) => broken).length).toBeLessThanOrEqual(acted);
    expect(loop.sent.filter(({ action, broken }) => broken && action === 'none')).toEqual([]);
    if (size === '128k') expect(acted).toBeLessThanOrEqual(calls / 10);
  });

  it('pays for no result twice, shrunk or not (SPEC 7.6)', () => {
    expect([...loop.shortened].filter(([, times]) => times > 1)).toEqual([]);
    if (calls === 300) expect(loop.stubborn.size).toBeGreaterThan(5);
  });

  it('leaves the originals in the ledger as they were sent, and nothing beside them (SPEC 7.5)', async () => {
    const key = { id: loop.conversation, tenant: 'local' };
    const nodes = await loop.ledger((ledger) => ledger.nodes(key, 0, 10_000));
    const chain = loop.agent.messages.slice(1);
    expect(nodes).toHaveLength(chain.length);
    for (const [index, message] of chain.entries()) {
      const { content } = nodes[index] ?? { content: '' };
      // A reply is stored as it was told, a message of the client's by its very bytes.
      if (message.role === 'assistant')
        expect(nameOf([readWire(JSON.parse(content))])).toBe(nameOf([readWire(message)]));
      else expect(content).toBe(JSON.stringify(message));
    }
  });

  it('is rendered again from the manifest of each call to the very messages that were sent (SPEC 4.6)', async () => {
    const key = { id: loop.conversation, tenant: 'local' };
    await loop.ledger(async (ledger) => {
      const { nodes } = await ledger.spine(key, null, 'spine');
      const recorded = new Map((await ledger.calls(key, 10_000)).map((call) => [call.id, call]));
      expect(recorded.size).toBe(loop.sent.length);
      for (const sent of loop.sent) {
        const call = recorded.get(sent.call);
        if (call === undefined) throw new Error('a call was not recorded');
        expect(nameOf(await replay(ledger, nodes, call))).toBe(sent.messages);
      }
    });
  });
});
