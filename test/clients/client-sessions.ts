import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringsIn } from '../../src/simulator/json-value.js';
import type { RecordedRequest } from '../../src/simulator/request-log.js';
import { openPair } from '../support/start.js';
import { nodesOf, onlyConversation } from '../support/stored.js';
import type { StoredNode } from '../support/stored.js';
import { ANSWER, createWorker, DONE, markOf, ROUNDS, WINDOW } from './tool-loop.js';

/** Where a client finds its model. */
export interface Place {
  /** Without a path. */
  readonly url: string;
  readonly model: string;
}

/** Gives the task to a client, lets it run the tool as long as it is asked to, then asks the question; rejects where the client fails. */
export type Session = (place: Place) => Promise<{ readonly done: string; readonly answer: string }>;

const DIRECT = 'gpt-5-direct';
const THROUGH = 'gpt-5-through';

interface Ran {
  readonly directly: unknown;
  readonly seen: Awaited<ReturnType<Session>>;
  readonly sent: readonly RecordedRequest[];
  readonly statuses: readonly unknown[];
  readonly nodes: readonly StoredNode[];
  readonly head: string;
  readonly parts: number;
}

/**
 * Runs each session without Spillway and with it, and states what must be true of both. `statuses` are those that Spillway may answer
 * with: a client that goes on after a refusal as it is meant to has not failed.
 */
export function describeSessions(
  sessions: Readonly<Record<string, Session>>,
  statuses: readonly number[] = [200],
): void {
  describe.each(Object.entries(sessions))('%s', (_name, session) => {
    let ran: Ran;
    let close = (): Promise<void> => Promise.resolve();

    beforeAll(async () => {
      const workers = new Map([DIRECT, THROUGH].map((model) => [model, createWorker()]));
      const pair = await openPair(
        { SPILLWAY_WINDOWS: `*=${WINDOW}` },
        {
          windows: { '*': WINDOW },
          servesThreads: true,
          script: (request) => workers.get(request.model)?.reply(request) ?? null,
        },
      );
      close = pair.close;
      const directly = await session({ url: pair.simulator.url, model: DIRECT }).catch((error: unknown) => error);
      const before = pair.simulator.requests.length;
      const seen = await session({ url: pair.spillway.url, model: THROUGH });
      const conversation = await onlyConversation(pair);
      ran = {
        directly,
        seen,
        sent: pair.simulator.requests.slice(before),
        statuses: pair.logs.filter((line) => 'status' in line).map((line) => line['status']),
        nodes: await nodesOf(pair, conversation.id),
        head: conversation.head,
        parts: workers.get(THROUGH)?.parts ?? 0,
      };
    });
    afterAll(() => close());

    it('fails without Spillway: the window is too small for its work', () => {
      expect(ran.directly).toBeInstanceOf(Error);
      expect(JSON.stringify(causesOf(ran.directly))).toMatch(
        /context_length_exceeded|prompt is too long|exceed context limit/,
      );
    });

    it('ends its work, and is told what was said at its beginning', () => {
      expect(ran.seen).toEqual({ done: DONE, answer: ANSWER });
      const last = ran.sent.findLast(({ kind }) => kind === 'chat');
      const read = stringsIn(last?.reads ?? last?.body).join('\n');
      expect(read).toContain('FACT-harbour=blue-7');
      expect(read).toContain('FACT-berth=north-4');
    });

    it('sends no request that fails, and every one within the window', () => {
      const chats = ran.sent.filter(({ kind }) => kind === 'chat');
      expect(chats).toHaveLength(ROUNDS + 2);
      expect(new Set(ran.sent.map(({ status }) => status))).toEqual(new Set([200]));
      expect(new Set(ran.statuses)).toEqual(new Set(statuses));
      expect(Math.max(...chats.map(({ promptTokens }) => promptTokens ?? Infinity))).toBeLessThanOrEqual(WINDOW);
      expect(ran.sent.some(({ kind }) => kind === 'summary')).toBe(true);
    });

    it('leaves one chain in the ledger, from its first message to its last, with each of them once', () => {
      const chain = ran.nodes.filter((node) => node.metadata.covers_ids === undefined);
      expect(chain.map((node) => node.predecessor)).toEqual(['ROOT', ...chain.slice(0, -1).map((node) => node.id)]);
      expect(ran.head).toBe(chain.at(-1)?.id);
      const texts = chain.map((node) => JSON.stringify(node.content));
      const marks = Array.from({ length: ran.parts }, (_, part) => markOf(part));
      expect(marks.length).toBeGreaterThan(ROUNDS);
      expect(marks.map((mark) => texts.filter((text) => text.includes(mark)).length)).toEqual(marks.map(() => 1));
      expect(texts.filter((text) => text.includes(DONE))).toHaveLength(1);
      expect(texts.filter((text) => text.includes(ANSWER))).toHaveLength(1);
    });
  });
}

/** What an error says, and whatever it was caused by. */
function causesOf(error: unknown): readonly unknown[] {
  if (!(error instanceof Error)) return [error];
  return [
    error.message,
    Object.fromEntries(Object.entries(error)),
    ...(error.cause === undefined ? [] : causesOf(error.cause)),
  ];
}
