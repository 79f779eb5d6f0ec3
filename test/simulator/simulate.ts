import { onTestFinished } from 'vitest';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/simulator.js';
import { createCounterLoader } from '../../src/tokens/counter.js';
import { readPackedRanks } from '../../src/tokens/node-ranks.js';

const loadCounter = createCounterLoader(readPackedRanks);

/** The exact counter that simulators of these tests count with. */
export const exactCounter = () => loadCounter('o200k_base');

/** A simulator with the exact counter, closed when the test ends. */
export async function simulate(options: Omit<SimulatorOptions, 'counter'> = {}): Promise<Simulator> {
  const simulator = await startSimulator({ counter: await exactCounter(), ...options });
  onTestFinished(() => simulator.close());
  return simulator;
}

/** Posts a chat request as a client with a key; `body` as JSON unless it is text. */
export function postChat(simulator: Simulator, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(`${simulator.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-of-a-test' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });
}

/** The `data` lines of an event stream, `[DONE]` left out, parsed. */
export function eventsOf(stream: string) {
  return stream
    .split('\n\n')
    .filter((event) => event.startsWith('data: ') && event !== 'data: [DONE]')
    .map((event) => JSON.parse(event.slice('data: '.length)));
}

/** A response's JSON, to be looked into without ceremony. */
export async function jsonOf(response: Response) {
  return JSON.parse(await response.text());
}

/** Posts a body as JSON, unless it is text, to a path of the API with whatever headers its formats want. */
export function post(
  simulator: Simulator,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${simulator.url}/v1${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'sk-of-a-test',
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** The named events of a stream, parsed; each has the name its data says. */
export function typedEventsOf(stream: string) {
  return stream
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const [, name, data = ''] = /^event: (\S+)\ndata: (.*)$/.exec(event) ?? [];
      const parsed = JSON.parse(data);
      if (parsed.type !== name) throw new Error(`${name} is named ${parsed.type}`);
      return parsed;
    });
}

/** A value without what tells one reply of the same text from another. */
export function withoutSerials<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replaceAll(/_simulated_[0-9a-f]{8}_\d+/g, '_simulated'));
}
