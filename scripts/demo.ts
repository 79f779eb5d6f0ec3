/**
 * The main job, seen: a conversation far longer than its model's window goes on through Spillway, driven by the official
 * `openai` SDK. Against the provider simulator unless `--real` is given and OPENAI_API_KEY is set. Exits with 1 if a turn
 * failed or a planted fact was lost.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { APIError } from 'openai';
import { z } from 'zod';
import { readConfig } from '../src/config.js';
import { startSpillway } from '../src/node.js';
import { startSimulator } from '../src/simulator/simulator.js';
import { createCounterLoader } from '../src/tokens/counter.js';
import { readPackedRanks } from '../src/tokens/node-ranks.js';
import { DemoClient } from './demo/client.js';
import type { Row } from './demo/client.js';
import { demoSteps, shortSteps } from './demo/conversation.js';
import type { DemoStep } from './demo/conversation.js';
import { graphNode, graphText } from './demo/graph-text.js';
import { tableHead, tableLine, totals } from './demo/table.js';

const USAGE = 'npm run demo -- [--real] [--turns 60] [--window 8000] [--model NAME]';
/** In no catalogue and no setting: its window is unknown to Spillway until it refuses. */
const UNKNOWN_MODEL = 'simulated-stranger';

const values = readArguments();
const windowTokens = Number(values.window);
const apiKey = values.real ? (process.env['OPENAI_API_KEY'] ?? '') : 'sk-demo';
if (apiKey === '') leave(1, '--real needs a key in OPENAI_API_KEY.');
const model = values.model ?? (values.real ? 'gpt-4o-mini' : 'simulated-model');
const dataDir = await mkdtemp(join(tmpdir(), 'spillway-demo-'));
const simulator = values.real ? null : await startDemoSimulator();
const upstream = simulator === null ? 'https://api.openai.com/v1' : `${simulator.url}/v1`;
const spillway = await startSpillway(
  readConfig({
    SPILLWAY_UPSTREAM_URL: upstream,
    SPILLWAY_PORT: '0',
    SPILLWAY_DATA_DIR: dataDir,
    SPILLWAY_WINDOWS: `${model}=${windowTokens}`,
    SPILLWAY_LOG_LEVEL: 'silent',
  }),
);
const steps = demoSteps(Number(values.turns));
try {
  process.exitCode = (await runDemo()) ? 0 : 1;
} finally {
  await spillway.close();
  await simulator?.close();
  await rm(dataDir, { recursive: true, force: true });
}

function readArguments() {
  try {
    const { values: given } = parseArgs({
      options: {
        real: { type: 'boolean', default: false },
        turns: { type: 'string', default: '60' },
        window: { type: 'string', default: '8000' },
        model: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    return given.help ? leave(0, USAGE) : given;
  } catch {
    return leave(2, USAGE);
  }
}

function leave(status: number, message: string): never {
  (status === 0 ? process.stdout : process.stderr).write(`${message}\n`);
  process.exit(status);
}

async function startDemoSimulator() {
  const counter = await createCounterLoader(readPackedRanks)('o200k_base');
  return startSimulator({ counter, windows: { '*': windowTokens }, replyWords: 60 });
}

/** True if every turn succeeded and every planted fact reached the model at the end. */
async function runDemo(): Promise<boolean> {
  const where = simulator === null ? upstream : `${upstream} (a simulator, not a provider)`;
  say(`A window of ${windowTokens} tokens, ${steps.length} turns, model ${model} at ${where}.\n`);
  say(tableHead());
  const startedAt = performance.now();
  const rows: Row[] = [];
  let turn = 0;
  const show = (row: Row): void => {
    rows.push(row);
    say(tableLine(turn, row, windowTokens));
  };
  const client = new DemoClient(`${spillway.url}/v1`, apiKey, model, show);
  let missing: readonly string[] = [];
  const take = async (by: DemoClient, step: DemoStep): Promise<boolean> => {
    turn++;
    try {
      const words = await by.take(step);
      if (step.kind === 'recall') missing = lostFacts(step.expected, words);
      return true;
    } catch (error) {
      say(`\nTurn ${turn} failed: ${describe(error)}`);
      return false;
    }
  };
  for (const step of steps) if (!(await take(client, step))) return false;
  const conversation = rows.at(-1)?.headers.get('x-spillway-conversation') ?? '';
  if (simulator !== null) {
    say(`\nA new conversation with ${UNKNOWN_MODEL}, whose window Spillway does not know:`);
    const stranger = new DemoClient(`${spillway.url}/v1`, apiKey, UNKNOWN_MODEL, show);
    for (const step of shortSteps(windowTokens)) if (!(await take(stranger, step))) return false;
  }
  say(`\n${totals(rows, turn, performance.now() - startedAt)}`);
  say(`\nWithout Spillway the same client gets, for the same history:\n  ${await withoutSpillway(client)}`);
  await showGraph(conversation);
  say(
    missing.length === 0
      ? '\nEvery fact planted at the beginning was in what the model read at the end.'
      : `\nLost: ${missing.join(', ')}`,
  );
  return missing.length === 0;
}

/** Facts that the model did not read, or against a real provider did not say, at the end. */
function lostFacts(expected: readonly string[], reply: string): readonly string[] {
  const read = simulator === null ? reply : (simulator.textsRead().at(-1) ?? '');
  return expected.filter((value) => !read.includes(value));
}

/** What the same history meets at the provider itself. */
async function withoutSpillway(client: DemoClient): Promise<string> {
  // A real model's window is larger than the one that was configured for the demo, so there is nothing to see.
  if (simulator === null)
    return "a bill for the whole history with every turn; the window of this demo is smaller than the model's.";
  const bare = new DemoClient(upstream, apiKey, model, () => undefined);
  bare.messages = [...client.messages];
  try {
    await bare.take({ kind: 'chat', text: 'And now?' });
    return 'a reply: the history would have fitted.';
  } catch (error) {
    return describe(error);
  }
}

async function showGraph(id: string): Promise<void> {
  const { head } = await api(`/conversations/${id}`, z.object({ head: z.string() }));
  const { data } = await api(`/conversations/${id}/nodes?limit=1000`, z.object({ data: z.array(graphNode) }));
  say(`\nThe first conversation as Spillway keeps it, ${id}:\n${graphText(data, head)}`);
}

/** A resource of Spillway's own API. */
async function api<T>(path: string, form: z.ZodType<T>): Promise<T> {
  const response = await fetch(`${spillway.url}/spillway/v1${path}`);
  return form.parse(await response.json());
}

function describe(error: unknown): string {
  // The SDK's message begins with the status, where there is one.
  if (error instanceof APIError) return error.status === undefined ? error.message : `HTTP ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
