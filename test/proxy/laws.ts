import fc from 'fast-check';
import { expect } from 'vitest';
import { faultsOf } from '../../src/core/check.js';
import { SUMMARY_HEADINGS, isSummaryPrompt } from '../../src/core/compaction/prompt.js';
import { estimateView } from '../../src/core/estimate.js';
import { isSummary } from '../../src/core/node.js';
import { readsOf } from '../../src/core/render.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { spineOfTurn } from '../../src/proxy/compact-spine.js';
import { dispatchOf } from '../../src/proxy/dispatch.js';
import { prepare } from '../../src/proxy/prepare.js';
import type { Turn } from '../../src/proxy/turn.js';
import type { SendUpstream } from '../../src/upstream/upstream.js';
import { createWorld } from '../support/in-memory.js';

/** Histories per file of the suite, and there are two; SPILLWAY_TEST_HISTORIES asks for more. */
export const HISTORIES = Number(process.env['SPILLWAY_TEST_HISTORIES'] ?? 5_000);

type Wire = Record<string, unknown>;

/** What a person and a model do next in a random history. */
type Step =
  | { readonly kind: 'turn'; readonly words: number; readonly tools: readonly number[]; readonly system: boolean }
  | { readonly kind: 'fork'; readonly back: number }
  | { readonly kind: 'command' };

const step: fc.Arbitrary<Step> = fc.oneof(
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
);

const outcome = fc.constantFrom('good', 'good', 'good', 'empty', 'cut', 'headless', 'huge', 'error');

const history = (windowTokens: readonly number[]) =>
  fc.record({
    steps: fc.array(step, { minLength: 4, maxLength: 14 }),
    outcomes: fc.infiniteStream(outcome),
    windowTokens: fc.constantFrom(...windowTokens),
  });

/** A person's side of a conversation: every message carries a word that occurs nowhere else. */
class Person {
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

  hear(words: number, tools: readonly number[]): void {
    if (tools.length > 0) {
      const ids = tools.map((_, index) => `call_${this.#unique}_${index}`);
      const calls = ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{"at":1}' } }));
      this.messages.push({ role: 'assistant', content: null, tool_calls: calls });
      for (const [index, id] of ids.entries()) {
        this.messages.push({ role: 'tool', tool_call_id: id, content: this.#text(tools[index] ?? 1) });
      }
    }
    this.messages.push({ role: 'assistant', content: this.#text(words) });
  }

  /** Goes back to before one of the last typed messages, to say something else there. */
  goBack(turns: number): void {
    const users = this.messages.flatMap((message, index) => (message['role'] === 'user' ? [index] : []));
    const at = users.at(-turns) ?? users[0] ?? 0;
    this.messages = this.messages.slice(0, at);
  }
}

interface Summariser {
  readonly send: SendUpstream;
  /** Inputs of the summary calls that were answered well. */
  readonly inputs: string[];
}

function summariser(outcomes: Iterator<string>): Summariser {
  const inputs: string[] = [];
  const send: SendUpstream = (request) => {
    const body = JSON.parse(typeof request.body === 'string' ? request.body : '') as {
      messages: { role: string; content: string }[];
    };
    expect(isSummaryPrompt(body.messages[0]?.content ?? '')).toBe(true);
    const input = body.messages[1]?.content ?? '';
    const next = outcomes.next().value as string;
    if (next === 'good') inputs.push(input);
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
  return { send, inputs };
}

function sentMessages(bytes: Uint8Array): Wire[] {
  return (JSON.parse(new TextDecoder().decode(bytes)) as { messages: Wire[] }).messages;
}

/** Checks every law after every request of `HISTORIES` random histories, half of all that a run of the suite makes. */
export async function expectLawsToHold(windowTokens: readonly number[]): Promise<void> {
  let compactions = 0;
  await fc.assert(
    fc.asyncProperty(history(windowTokens), async (life) => {
      compactions += await live(life.steps, life.outcomes[Symbol.iterator](), life.windowTokens);
    }),
    { numRuns: HISTORIES },
  );
  expect(compactions).toBeGreaterThan(HISTORIES / 10);
}

/** Lives one history and checks every law after every request. Returns how many compactions were committed. */
async function live(steps: readonly Step[], outcomes: Iterator<string>, windowTokens: number): Promise<number> {
  const model = summariser(outcomes);
  const world = createWorld({ windowTokens, send: model.send });
  const person = new Person();
  const sent = new Set<string>();
  let compactions = 0;
  for (const next of steps) {
    if (next.kind === 'fork') person.goBack(next.back);
    if (next.kind === 'command') continue;
    person.ask(next.kind === 'turn' && next.system);
    const body = {
      model: 'any',
      temperature: 0.5,
      messages: [{ role: 'system', content: 'Be brief.' }, ...person.messages],
    };
    const turn = await world.open(body);
    const before = await world.ledger.nodes(turn.conversation, 0, 10_000);
    const headBefore = (await world.ledger.conversation(turn.conversation.id, null))?.head;
    const prepared = await prepare(turn, world.compactSpine, { trigger: world.trigger });

    await checkView(turn, prepared.dispatch, body.messages);
    const after = await world.ledger.nodes(turn.conversation, 0, 10_000);
    const head = (await world.ledger.conversation(turn.conversation.id, null))?.head;
    expect(head).toBe(headBefore);
    if (prepared.action === 'auto') {
      compactions++;
      expect(after.length).toBe(before.length + 1);
      await checkSummary(turn, after.at(-1)?.id ?? '', prepared);
    } else {
      expect(after.length).toBe(before.length);
      expect(
        after.every((node, index) => node.id === before[index]?.id && node.content === before[index].content),
      ).toBe(true);
    }
    const spine = (await world.ledger.spine(turn.conversation, turn.spine.at(-1)?.id ?? '', 'spine')).nodes;
    expect(`[${spine.map((node) => node.content).join(',')}]`).toBe(JSON.stringify(person.messages));

    const text = JSON.stringify(sentMessages(prepared.dispatch.body));
    for (const tag of person.tags) if (text.includes(tag)) sent.add(tag);
    if (next.kind === 'turn') person.hear(next.words, next.tools);
    else person.hear(3, []);
  }
  const told = model.inputs.join('\n');
  const asked = JSON.stringify(person.messages);
  const missing = person.tags.filter((tag) => asked.includes(tag) && !sent.has(tag) && !told.includes(tag));
  // What was said last has not been sent yet.
  const last = JSON.stringify(person.messages.slice(lastUser(person.messages) + 1));
  expect(missing.filter((tag) => !last.includes(tag))).toEqual([]);
  return compactions;
}

function lastUser(messages: readonly Wire[]): number {
  return messages.findLastIndex((message) => message['role'] === 'user');
}

async function checkView(
  turn: Turn,
  dispatch: ReturnType<typeof dispatchOf>,
  original: readonly Wire[],
): Promise<void> {
  const messages = sentMessages(dispatch.body);
  const read = messages.map((message) => chatCompletions.readMessage(message)).filter((message) => message !== null);
  expect(faultsOf(read)).toEqual([]);
  expect(messages.filter((message) => message['role'] === 'user').length).toBeGreaterThan(0);

  const summary = dispatch.view.summary;
  const kept = messages.filter(
    (message) => summary === null || message['content'] !== chatCompletions.summaryMessage(summary.content).text,
  );
  expect(kept.length).toBe(messages.length - (summary === null ? 0 : 1));
  const originals = new Set(original.map((message) => JSON.stringify(message)));
  expect(kept.every((message) => originals.has(JSON.stringify(message)))).toBe(true);
  // Every instruction stays, each text once.
  const contents = new Set(messages.map((message) => message['content']));
  expect(original.every((message) => message['role'] !== 'system' || contents.has(message['content']))).toBe(true);

  const again = dispatchOf(turn, summary);
  expect(Buffer.compare(again.body, dispatch.body)).toBe(0);
  if (summary === null) expect(dispatch.body).toBe(turn.body.original);

  const chain = turn.spine.map((node) => node.id);
  const reads = readsOf(chain, dispatch.manifest, summary);
  expect(reads.length).toBe(messages.length - turn.read.instructions.length);
}

async function checkSummary(turn: Turn, id: string, prepared: Awaited<ReturnType<typeof prepare>>): Promise<void> {
  const summary = prepared.dispatch.view.summary;
  const chain = turn.spine.map((node) => node.id);
  expect(summary?.id).toBe(id);
  expect(summary?.first).toBe(chain[0]);
  const covered = chain.slice(0, summary?.count);
  expect(covered.at(-1)).toBe(summary?.last);
  expect(summary?.count).toBeGreaterThan(turn.opened.active?.count ?? 0);
  expect(covered.some((nodeId) => nodeId.startsWith('summary_'))).toBe(false);
  const ruler = await turn.measure.ruler();
  expect(estimateView(prepared.dispatch.view, ruler)).toBeLessThan(
    estimateView(dispatchOf(turn, turn.opened.active).view, ruler),
  );
  // A fork from inside the segment renders raw (SPEC 4.2).
  const inside = dispatchOf({ ...turn, spine: turn.spine.slice(0, (summary?.count ?? 1) - 1) }, summary);
  expect(inside.view.summary).toBeNull();
  expect(spineOfTurn(turn).spine.every((node) => !isSummary({ ...emptyNode, id: node.id }))).toBe(true);
}

const emptyNode = {
  predecessor: '',
  caller: null,
  role: 'user',
  name: null,
  content: '',
  metadata: {},
  tokens: null,
  tokenizer: null,
} as const;
