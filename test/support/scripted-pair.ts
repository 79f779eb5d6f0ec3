import { afterAll, beforeAll } from 'vitest';
import type { Script } from '../../src/simulator/reply-plan.js';
import type { RecordedRequest } from '../../src/simulator/request-log.js';
import { padding } from './chat.js';
import type { WireMessage } from './chat.js';
import { openPair } from './start.js';
import type { StartedPair } from './start.js';

/** A pair that all tests of a file share. Each has a model of its own, and so a conversation and a window of its own. */
export interface ScriptedPair {
  readonly started: StartedPair;
  /** Has requests for a model answered by a script; the default reply where it returns null. */
  script(model: string, script: Script): void;
  /** What reached the simulator since the last call, in order: chats and summaries. */
  newRequests(): readonly RecordedRequest[];
}

/** To be called where tests are declared: the pair starts before the first of them and ends after the last. */
export function scriptedPair(settings: Record<string, string> = {}): ScriptedPair {
  const scripts = new Map<string, Script>();
  let opened: Awaited<ReturnType<typeof openPair>> | null = null;
  let seen = 0;
  const started = (): StartedPair => {
    if (opened === null) throw new Error('the pair starts with the first test');
    return opened;
  };
  beforeAll(async () => {
    opened = await openPair(settings, { script: (request) => scripts.get(request.model)?.(request) ?? null });
  });
  afterAll(() => opened?.close());
  return {
    get started() {
      return started();
    },
    script: (model, script) => void scripts.set(model, script),
    newRequests() {
      const { requests } = started().simulator;
      const fresh = requests.slice(seen).filter(({ kind }) => kind === 'chat' || kind === 'summary');
      seen = requests.length;
      return fresh;
    },
  };
}

const WORDS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];

/** Eleven turns of which the first plants a fact and the last asks for it; ten of them of so many tokens. */
export function longConversation(name: string, turnTokens = 250): WireMessage[] {
  return [
    { role: 'user', content: `${name}: FACT-harbour=blue-7` },
    { role: 'assistant', content: 'Noted.' },
    ...WORDS.flatMap((word) => [
      { role: 'user', content: padding(word, turnTokens) },
      { role: 'assistant', content: `That was ${word}.` },
    ]),
    { role: 'user', content: 'What is the value of FACT-harbour?' },
  ];
}

/** The answer that only a model can give that still knows of the first turn. */
export const FACT_TOLD = 'The value of FACT-harbour is blue-7.';
