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
