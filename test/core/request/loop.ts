import { hash as digestOf } from 'node:crypto';
import { nodeId } from '../../../src/core/canonical.js';
import { createPurse } from '../../../src/core/compaction/purse.js';
import { messageTokens } from '../../../src/core/estimate.js';
import type { Ruler } from '../../../src/core/estimate.js';
import type { Message } from '../../../src/core/message.js';
import type { SummaryRequest, SummaryResponse, TokenCounter } from '../../../src/core/ports.js';
import type { SpineNode } from '../../../src/core/render.js';
import type { FitDeps, FitInput } from '../../../src/core/request/fit.js';
import { NO_REDUCTION } from '../../../src/core/request/reduction.js';
import { chatCompletions } from '../../../src/dialects/chat-completions.js';

/** A token a word: plain enough to reckon with in a test. */
export const wordCounter: TokenCounter = {
  tokenizer: 'words',
  count: (text) => text.split(/\s+/).filter((word) => word !== '').length,
  countMedia: () => 500,
};

export function words(count: number, word = 'word'): string {
  return Array.from({ length: count }, () => word).join(' ');
}

/** The spine of wire messages, as a turn has it. */
export function spineOf(wire: readonly unknown[]): readonly SpineNode[] {
  let last = 'root';
  return wire.map((source) => {
    const message = chatCompletions.readMessage(source);
    if (message === null) throw new Error('unreadable');
    last = nodeId((text) => digestOf('sha256', text, 'base64url').slice(0, 32), last, message);
    return { id: last, message, command: false };
  });
}

export const user = (content: unknown) => ({ role: 'user', content });

export const calls = (...ids: string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: `{"at":"${id}"}` } })),
});

export const result = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content });

function rulerOf(spine: readonly SpineNode[]): Ruler {
  return {
    fixedTokens: 0,
    tokensAt: (index) => messageTokens(spine[index]?.message ?? emptyMessage, wordCounter),
    summaryTokens: (content) => messageTokens(chatCompletions.summaryMessage(content), wordCounter),
  };
}

const emptyMessage: Message = {
  role: 'user',
  text: '',
  name: null,
  calls: [],
  results: [],
  media: [],
  reasoning: '',
  signed: false,
  source: null,
};

export function fitInput(spine: readonly SpineNode[], changes: Partial<FitInput>): FitInput {
  return {
    spine,
    active: null,
    reduction: NO_REDUCTION,
    ruler: rulerOf(spine),
    forms: chatCompletions,
    limitTokens: 1_000,
    targetTokens: 300,
    strategy: 'summarise',
    windowTokens: 8_000,
    summariserWindowTokens: 8_000,
    calibration: 1,
    ...changes,
  };
}

export interface Summariser extends FitDeps {
  readonly requests: SummaryRequest[];
}

/** A summariser that says the same few words, and an invocation's memory. */
export function summariser(answer: (request: SummaryRequest) => SummaryResponse = () => say('short')): Summariser {
  const requests: SummaryRequest[] = [];
  const memory = new Map<string, string | null>();
  const givenUp = new Set<string>();
  let unique = 0;
  return {
    requests,
    ask(request) {
      requests.push(request);
      return Promise.resolve(answer(request));
    },
    purse: createPurse({ calls: 32, durationMs: 60_000 }, () => 0),
    uniqueId: () => `fence${unique++}`,
    count: (text) => wordCounter.count(text),
    known: ({ text }) => memory.get(text),
    remember: ({ text }, shorter) => void memory.set(text, shorter),
    isGivenUp: (run) => givenUp.has(JSON.stringify(run)),
    giveUp: (run) => void givenUp.add(JSON.stringify(run)),
  };
}

export function say(text: string, stopped = true): SummaryResponse {
  return {
    kind: 'text',
    text,
    stopped,
    stopReason: stopped ? 'stop' : 'length',
    calledTool: false,
    reasoningOnly: false,
    usage: null,
  };
}
