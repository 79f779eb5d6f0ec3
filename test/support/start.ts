import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { onTestFinished } from 'vitest';
import { readConfig } from '../../src/config.js';
import { startSpillway } from '../../src/node.js';
import type { Spillway } from '../../src/node.js';
import { startSimulator } from '../../src/simulator/simulator.js';
import type { Simulator, SimulatorOptions } from '../../src/simulator/simulator.js';
import { createCounterLoader } from '../../src/tokens/counter.js';
import { readPackedRanks } from '../../src/tokens/node-ranks.js';

const counters = createCounterLoader(readPackedRanks);

export interface StartedPair {
  readonly simulator: Simulator;
  readonly spillway: Spillway;
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, unknown>[];
  /** Everything that was logged, as it was written. */
  logText(): string;
  /** The official client, pointed at Spillway. */
  client(headers?: Record<string, string>): OpenAI;
  /** Stops Spillway and starts it again on the same data. */
  restart(): Promise<void>;
  post(body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** A resource of Spillway's own API, parsed; `path` begins after `/spillway/v1`. */
  api(path: string, body?: unknown): Promise<Record<string, unknown>>;
}

/** A simulator and a Spillway before it, on free ports; both end with the test. Settings are environment variables. */
export async function startPair(
  settings: Record<string, string> = {},
  simulated: Partial<SimulatorOptions> = {},
): Promise<StartedPair> {
  const pair = await openPair(settings, simulated);
  onTestFinished(() => pair.close());
  return pair;
}

/** A pair that many tests share: whoever opens it closes it. */
export async function openPair(
  settings: Record<string, string> = {},
  simulated: Partial<SimulatorOptions> = {},
): Promise<StartedPair & { close(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
  const simulator = await startSimulator({ counter: await counters('o200k_base'), ...simulated });
  const lines: string[] = [];
  const start = (): Promise<Spillway> =>
    startSpillway(
      readConfig({
        SPILLWAY_UPSTREAM_URL: `${simulator.url}/v1`,
        SPILLWAY_PORT: '0',
        SPILLWAY_DATA_DIR: dataDir,
        // Tests count the requests that reach the provider; those of discovery turn it on.
        SPILLWAY_DISCOVER_WINDOWS: 'off',
        ...settings,
      }),
      { logTo: { write: (line) => void lines.push(line) } },
    );
  let spillway = await start();
  return {
    async close() {
      await spillway.close();
      await simulator.close();
      await rm(dataDir, { recursive: true, force: true });
    },
    simulator,
    get spillway() {
      return spillway;
    },
    get logs() {
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    },
    logText: () => lines.join(''),
    client: (headers = {}) =>
      new OpenAI({ baseURL: `${spillway.url}/v1`, apiKey: 'sk-test', maxRetries: 0, defaultHeaders: headers }),
    async restart() {
      await spillway.close();
      spillway = await start();
    },
    post: (body, headers = {}) =>
      fetch(`${spillway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    async api(path, body) {
      const init: RequestInit =
        body === undefined
          ? {}
          : {
              method: 'POST',
              headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
              body: JSON.stringify(body),
            };
      const response = await fetch(`${spillway.url}/spillway/v1${path}`, init);
      return (await response.json()) as Record<string, unknown>;
    },
  };
}
