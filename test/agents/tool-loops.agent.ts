import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plantedFacts } from '../../src/simulator/facts.js';
import { stringsIn } from '../../src/simulator/json-value.js';
import type { ModelRequest } from '../../src/simulator/model-request.js';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import type { PlannedReply } from '../../src/simulator/reply-plan.js';
import type { RecordedRequest } from '../../src/simulator/request-log.js';
import { padding } from '../support/chat.js';
import { openPair } from '../support/start.js';
import { conversationsOf, nodesOf } from '../support/stored.js';
import type { StoredNode } from '../support/stored.js';
import { AGENTS } from './agents.js';
import type { Agent } from './agents.js';
import { installed } from './install.js';

const ROUNDS = 42;
const RESULT_TOKENS = 5_000;
const DEADLINE_MS = 240_000;
const TASK = 'Read every part with your shell. The first thing to remember is FACT-harbour=blue-7.';
const ANSWER = 'I have read every part: blue-7 and north-4.';

const markOf = (part: number): string => `mark-${String(part).padStart(3, '0')}`;

interface Ran {
  readonly status: number | null;
  readonly output: string;
  readonly requests: readonly RecordedRequest[];
}

const isRefused = ({ kind, status }: RecordedRequest): boolean => kind === 'chat' && status === 400;

function hasTools(body: unknown): boolean {
  const tools: unknown = (body as { readonly tools?: unknown }).tools;
  return Array.isArray(tools) && tools.length > 0;
}

/** A model that has the agent read one part a reply, and tells at the end what it was sent of the facts. */
function createWorker(agent: Agent) {
  let replies = 0;
  return ({ toolNames, reads }: ModelRequest): PlannedReply | null => {
    if (!toolNames.includes(agent.shell.name)) return null;
    const part = replies++;
    if (part < ROUNDS) {
      const given = agent.shell.argumentsFor(`cat part-${part}.txt`);
      return callTools({ name: agent.shell.name, arguments: JSON.stringify(given) });
    }
    const facts = plantedFacts(stringsIn(reads));
    return say(`I have read every part: ${facts.get('harbour')} and ${facts.get('berth')}.`);
  };
}

describe.each(Object.entries(AGENTS))('%s', (_name, agent) => {
  let folder = '';
  let meetsTheEnd = false;
  let through: Ran;
  let chain: readonly StoredNode[] = [];
  let statuses: readonly unknown[] = [];
  let close = (): Promise<void> => Promise.resolve();

  beforeAll(async () => {
    const program = join(await installed(agent.package, agent.version, agent.prepare), agent.program);
    folder = await mkdtemp(join(tmpdir(), 'spillway-agent-'));
    let worker = createWorker(agent);
    const windows = { '*': agent.windowTokens };
    const pair = await openPair(
      { SPILLWAY_WINDOWS: `*=${agent.windowTokens}` },
      { windows, servesCompaction: false, script: (request) => worker(request) },
    );
    close = pair.close;
    const refused = pair.simulator.waitFor(isRefused, DEADLINE_MS);
    // Some agents would ask again and again.
    await runAgent(agent, program, join(folder, 'direct'), { url: pair.simulator.url, until: refused });
    meetsTheEnd = pair.simulator.requests.some(isRefused);
    const before = pair.simulator.requests.length;
    worker = createWorker(agent);
    const ran = await runAgent(agent, program, join(folder, 'through'), { url: pair.spillway.url, until: null });
    through = { ...ran, requests: pair.simulator.requests.slice(before) };
    statuses = pair.logs
      .filter((line) => line['route'] !== undefined && 'outcome' in line)
      .map((line) => line['status']);
    const [longest] = (await conversationsOf(pair)).toSorted((a, b) => b.nodes - a.nodes);
    chain = (await nodesOf(pair, longest?.id ?? '')).filter((node) => node.metadata.covers_ids === undefined);
  });
  afterAll(async () => {
    await close();
    await rm(folder, { recursive: true, force: true });
  });

  it('meets the end of the window without Spillway', () => {
    expect(meetsTheEnd).toBe(true);
  });

  it('ends its work through Spillway, and shows no error', () => {
    expect(through.output).toContain(ANSWER);
    expect(through.output).not.toMatch(/^\W*error\b/im);
    expect(through.status).toBe(0);
  });

  it('has no request refused, and compacts nothing by itself', () => {
    expect(new Set(statuses)).toEqual(new Set([200]));
    // Some ask for a title too, without tools.
    const chats = through.requests.filter(({ kind, body }) => kind === 'chat' && hasTools(body));
    expect(chats.map(({ status }) => status)).toEqual(chats.map(() => 200));
    expect(chats.length).toBe(ROUNDS + 1);
    expect(through.requests.some(({ kind }) => kind === 'summary')).toBe(true);
  });

  it('leaves one chain in the ledger, with every message once', () => {
    expect(chain.map((node) => node.predecessor)).toEqual(['ROOT', ...chain.slice(0, -1).map((node) => node.id)]);
    const texts = chain.map((node) => JSON.stringify(node.content));
    const marks = Array.from({ length: ROUNDS }, (_, part) => markOf(part));
    expect(marks.map((mark) => texts.filter((text) => text.includes(mark)).length)).toEqual(marks.map(() => 1));
    expect(texts.filter((text) => text.includes(ANSWER))).toHaveLength(1);
  });
});

/**
 * Runs an agent on its task in a folder of its own. What it would ask of the outside meets a closed door. It is
 * stopped at the deadline, or once `until` is settled.
 */
async function runAgent(
  agent: Agent,
  program: string,
  folder: string,
  { url, until }: { readonly url: string; readonly until: Promise<unknown> | null },
): Promise<Omit<Ran, 'requests'>> {
  const home = join(folder, 'home');
  const work = join(folder, 'work');
  await mkdir(home, { recursive: true });
  await mkdir(work);
  for (let part = 0; part < ROUNDS; part++) {
    const text = padding(`${markOf(part)}: ${part === 2 ? 'FACT-berth=north-4' : 'nothing'}.`, RESULT_TOKENS);
    await writeFile(join(work, `part-${part}.txt`), text);
  }
  await agent.configure(home, url);
  const isScript = program.endsWith('js');
  const child = spawn(isScript ? process.execPath : program, [...(isScript ? [program] : []), ...agent.args(TASK)], {
    cwd: work,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      HTTPS_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: '127.0.0.1',
      ...agent.environment(home, url),
    },
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const stop = (): boolean => child.kill('SIGKILL');
  const timer = setTimeout(stop, DEADLINE_MS);
  until?.then(stop, stop);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', reject);
  });
  clearTimeout(timer);
  return { status, output };
}
