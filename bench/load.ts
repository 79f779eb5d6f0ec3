import { Pool } from 'undici';
import type { Conversations, Scenario } from './conversation.js';

const REQUEST_TIMEOUT_MS = 20_000;

/** What clients saw in one stretch of load. */
export interface Seen {
  readonly requests: number;
  readonly durationMs: number;
  /** From a request's start to the first byte of its answer, and to its last. */
  readonly firstMs: readonly number[];
  readonly wholeMs: readonly number[];
}

/** Clients that each go through one conversation after another, their next request after the last answer. */
export interface Load {
  run(durationMs: number): Promise<Seen>;
  close(): Promise<void>;
}

export interface LoadOptions {
  /** Base URL. */
  readonly url: string;
  readonly scenario: Scenario;
  readonly conversations: Conversations;
  /** As many clients, each with a connection. */
  readonly connections: number;
  /** A number for a conversation that no other has. */
  nextConversation(): number;
}

/** Resolves when every client has sent the first turn of a conversation, which a store has to write whole. */
export async function openLoad(options: LoadOptions): Promise<Load> {
  const { url, scenario, conversations, connections, nextConversation } = options;
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, {
    connections,
    bodyTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: REQUEST_TIMEOUT_MS,
  });
  const headers = {
    'content-type': 'application/json',
    authorization: 'Bearer sk-bench',
    accept: scenario.stream ? 'text/event-stream' : 'application/json',
  };
  const ask = async (body: Uint8Array): Promise<{ readonly firstMs: number; readonly wholeMs: number }> => {
    const startedAt = performance.now();
    const answer = await pool.request({ path: `${pathname}/chat/completions`, method: 'POST', headers, body });
    let firstMs: number | null = null;
    for await (const _ of answer.body) firstMs ??= performance.now() - startedAt;
    const wholeMs = performance.now() - startedAt;
    const action = String(answer.headers['x-spillway-action'] ?? 'none');
    if (answer.statusCode !== 200 || action !== 'none') throw new Error(`${url}: ${answer.statusCode}, ${action}`);
    return { firstMs: firstMs ?? wholeMs, wholeMs };
  };
  const clients = Array.from({ length: connections }, () => ({ conversation: nextConversation(), turn: 1 }));
  await Promise.all(clients.map(({ conversation }) => ask(conversations.body(conversation, 0))));

  return {
    async run(durationMs) {
      const firstMs: number[] = [];
      const wholeMs: number[] = [];
      const startedAt = performance.now();
      await Promise.all(
        clients.map(async (client) => {
          while (performance.now() - startedAt < durationMs) {
            if (client.turn === scenario.turns) Object.assign(client, { conversation: nextConversation(), turn: 0 });
            const took = await ask(conversations.body(client.conversation, client.turn));
            client.turn += 1;
            firstMs.push(took.firstMs);
            wholeMs.push(took.wholeMs);
          }
        }),
      );
      return { requests: wholeMs.length, durationMs: performance.now() - startedAt, firstMs, wholeMs };
    },
    close: () => pool.close(),
  };
}
