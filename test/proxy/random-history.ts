import fc from 'fast-check';
import { expect } from 'vitest';
import { isSummaryPrompt, SUMMARY_HEADINGS } from '../../src/core/compaction/headings.js';
import type { ResultStrategy } from '../../src/core/request/fit.js';
import type { ViewPolicies } from '../../src/core/request/policies.js';
import type { SendUpstream } from '../../src/upstream/upstream.js';

export type Wire = Record<string, unknown>;

/** What a person and a model do next in a random history. */
export type Step =
  /** A question and all that came of it, calls of tools included. */
  | { readonly kind: 'turn'; readonly words: number; readonly tools: readonly number[]; readonly system: boolean }
  /** A tool loop under one question; every group of results is sent before the next is called for. Words by result. */
  | { readonly kind: 'loop'; readonly groups: readonly (readonly number[])[] }
  | { readonly kind: 'fork'; readonly back: number }
  | { readonly kind: 'command' };

const STEPS = [
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('turn' as const),
      words: fc.integer({ min: 1, max: 30 }),
      tools: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 3 }),
      system: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fork' as const), back: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('command' as const) }) },
];

const LOOP = {
  weight: 4,
  arbitrary: fc.record({
    kind: fc.constant('loop' as const),
    groups: fc.array(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 3 }), {
      minLength: 2,
      maxLength: 8,
    }),
  }),
};

const outcome = fc.constantFrom('good', 'good', 'good', 'empty', 'cut', 'headless', 'huge', 'error');

export interface Rendering {
  readonly strategy: ResultStrategy;
  readonly policies: ViewPolicies;
}

const BY_DEFAULT: Rendering = { strategy: 'summarise', policies: { agingTurns: null, spillTokens: null } };

const rendering = fc.oneof(
  fc.constant(BY_DEFAULT),
  fc.record<Rendering>({
    strategy: fc.constantFrom('summarise', 'mask', 'mask'),
    policies: fc.record({
      agingTurns: fc.option(fc.integer({ min: 1, max: 3 }), { freq: 2 }),
      spillTokens: fc.option(fc.integer({ min: 100, max: 250 }), { freq: 2 }),
    }),
  }),
);

export const randomHistory = (windowTokens: readonly number[], withLoops: boolean) =>
  fc.record({
    steps: fc.array<Step>(withLoops ? fc.oneof(...STEPS, LOOP) : fc.oneof(...STEPS), { minLength: 4, maxLength: 14 }),
    outcomes: fc.infiniteStream(outcome),
    windowTokens: fc.constantFrom(...windowTokens),
    /** How Spillway shortens results; as it does by default where there are no loops. */
    rendering: withLoops ? rendering : fc.constant(BY_DEFAULT),
    /** The client's own output cap, or none. */
    outputCap: fc.option(fc.integer({ min: 50, max: 400 })),
  });

/** A person's side of a conversation: every message carries a word that occurs nowhere else. */
export class Person {
  messages: Wire[] = [];
  readonly tags: string[] = [];
  #unique = 0;

  #text(words: number): string {
    const tag = `tag-${String(this.#unique++)}x`;
    this.tags.push(tag);
    return `${tag} ${'some words of no weight '.repeat(words)}`.trim();
  }

  ask(withSystem: boolean): void {
    if (withSystem && this.messages.length > 0) this.messages.push({ role: 'system', content: this.#text(2) });
    this.messages.push({ role: 'user', content: this.#text(12) });
  }

  hear(words: number): void {
    this.messages.push({ role: 'assistant', content: this.#text(words) });
  }

  /** Calls tools and gets their results, of so many words each. */
  work(tools: readonly number[]): void {
    const ids = tools.map((_, index) => `call_${this.#unique}_${index}`);
    const calls = ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{"at":1}' } }));
    this.messages.push({ role: 'assistant', content: null, tool_calls: calls });
    for (const [index, id] of ids.entries()) {
      this.messages.push({ role: 'tool', tool_call_id: id, content: this.#text(tools[index] ?? 1) });
    }
  }

  /** Goes back to before one of the last typed messages, to say something else there. */
  goBack(turns: number): void {
    const users = this.messages.flatMap((message, index) => (message['role'] === 'user' ? [index] : []));
    const at = users.at(-turns) ?? users[0] ?? 0;
    this.messages = this.messages.slice(0, at);
  }
}

export interface RandomSummariser {
  readonly send: SendUpstream;
  /** Inputs of the summary calls whose answer could be used. */
  readonly inputs: string[];
  readonly calls: number;
}

/** Answers summary calls as `outcomes` go. What is good for a tool result or a checkpoint need not be for a conversation. */
export function randomSummariser(outcomes: Iterator<string>): RandomSummariser {
  const inputs: string[] = [];
  let calls = 0;
  const send: SendUpstream = (request) => {
    calls++;
    const body = JSON.parse(typeof request.body === 'string' ? request.body : '') as {
      messages: { role: string; content: string }[];
    };
    const instructions = body.messages[0]?.content ?? '';
    expect(isSummaryPrompt(instructions)).toBe(true);
    const next = outcomes.next().value as string;
    const needsHeadings = instructions.includes(SUMMARY_HEADINGS[0] ?? '');
    if (next === 'good' || (next === 'headless' && !needsHeadings)) inputs.push(body.messages[1]?.content ?? '');
    const text = {
      good: SUMMARY_HEADINGS.map((heading) => `${heading}\nNone.`).join('\n'),
      empty: ' ',
      cut: SUMMARY_HEADINGS.join('\n'),
      headless: 'And so it went on.',
      huge: SUMMARY_HEADINGS.map((heading) => `${heading}\n${'much ado '.repeat(120)}`).join('\n'),
      error: '',
    }[next];
    const reply = {
      choices: [
        { index: 0, finish_reason: next === 'cut' ? 'length' : 'stop', message: { role: 'assistant', content: text } },
      ],
    };
    const bytes = new TextEncoder().encode(JSON.stringify(next === 'error' ? { error: { message: 'no' } } : reply));
    return Promise.resolve({
      status: next === 'error' ? 500 : 200,
      headers: [],
      body: (async function* () {
        yield await Promise.resolve(bytes);
      })(),
    });
  };
  return {
    send,
    inputs,
    get calls() {
      return calls;
    },
  };
}
