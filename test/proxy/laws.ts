import fc from 'fast-check';
import { expect } from 'vitest';
import { isSummary } from '../../src/core/node.js';
import type { Node } from '../../src/core/node.js';
import { prepare } from '../../src/proxy/prepare.js';
import type { Prepared } from '../../src/proxy/prepare.js';
import type { Turn } from '../../src/proxy/turn.js';
import { createWorld } from '../support/in-memory.js';
import { bodyOf, checkDispatch, checkRefusal, checkSummary, checkTwice, isAtTrigger } from './law-checks.js';
import { Person, randomHistory, randomSummariser } from './random-history.js';
import type { RandomSummariser, Rendering, Step, Wire } from './random-history.js';

/** Histories per file of the suite, of which two have no tool loops; SPILLWAY_TEST_HISTORIES asks for more. */
export const HISTORIES = Number(process.env['SPILLWAY_TEST_HISTORIES'] ?? 5_000);

/** A tool loop is sent after each of its steps, so that such a history takes several times as long. */
export const LOOP_HISTORIES = Math.ceil(HISTORIES / 5);

/** How often each thing was done, so that no law holds for want of cases. */
type Done = Record<'auto' | 'tool-results' | 'checkpoint' | 'refused' | 'masked' | 'aged' | 'spilled', number>;

/** Checks every law after every request of random histories of questions, answers and forks. */
export async function expectLawsToHold(windowTokens: readonly number[]): Promise<void> {
  const done = await liveAll(HISTORIES, windowTokens, false);
  expect(done.auto).toBeGreaterThan(HISTORIES / 40);
}

/** The same with tool loops among them, every step of which is a request. */
export async function expectLawsToHoldInLoops(windowTokens: readonly number[]): Promise<void> {
  const done = await liveAll(LOOP_HISTORIES, windowTokens, true);
  for (const [what, times] of Object.entries(done)) expect(times, what).toBeGreaterThan(LOOP_HISTORIES / 40);
}

async function liveAll(histories: number, windowTokens: readonly number[], withLoops: boolean): Promise<Done> {
  const done: Done = { auto: 0, 'tool-results': 0, checkpoint: 0, refused: 0, masked: 0, aged: 0, spilled: 0 };
  await fc.assert(
    fc.asyncProperty(
      randomHistory(windowTokens, withLoops),
      async ({ steps, outcomes, windowTokens: window, outputCap, rendering }) => {
        const model = randomSummariser(outcomes[Symbol.iterator]());
        const world = createWorld({ windowTokens: window, send: model.send, ...rendering });
        const more = outputCap === null ? {} : { max_completion_tokens: outputCap };
        await live(steps, { person: new Person(), sent: new Set(), model, world, more, rendering, done });
      },
    ),
    { numRuns: histories },
  );
  return done;
}

/** One history through one proxy. */
interface Life {
  readonly person: Person;
  /** Tags that the model has read. */
  readonly sent: Set<string>;
  readonly model: RandomSummariser;
  readonly world: ReturnType<typeof createWorld>;
  /** Members of every request beside its messages. */
  readonly more: Wire;
  readonly rendering: Rendering;
  readonly done: Done;
}

async function live(steps: readonly Step[], life: Life): Promise<void> {
  const { person } = life;
  for (const next of steps) {
    if (next.kind === 'command') continue;
    if (next.kind === 'fork') person.goBack(next.back);
    person.ask(next.kind === 'turn' && next.system);
    if (!(await request(life))) continue;
    switch (next.kind) {
      case 'turn':
        if (next.tools.length > 0) person.work(next.tools);
        person.hear(next.words);
        break;
      case 'loop':
        await loop(next.groups, life);
        break;
      case 'fork':
        person.hear(3);
    }
  }
  expectNothingLost(life);
}

async function loop(groups: readonly (readonly number[])[], life: Life): Promise<void> {
  for (const tools of groups) {
    life.person.work(tools);
    if (!(await request(life))) return;
  }
  life.person.hear(3);
}

/** Sends the history as it is. False if it was refused: the person takes the last question back. */
async function request(life: Life): Promise<boolean> {
  const { world, person, done } = life;
  const messages = [{ role: 'system', content: 'Be brief.' }, ...person.messages];
  const body = { model: 'any', temperature: 0.5, messages, ...life.more };
  const turn = await world.open(body);
  const before = await storedOf(turn, life);
  const prepared = await prepare(turn, world.preparing).catch((error: unknown) => {
    checkRefusal(turn, error);
    return null;
  });
  await checkLedger(turn, before, prepared, life);
  if (prepared === null) {
    done.refused++;
    person.goBack(1);
    return false;
  }

  await checkDispatch(turn, prepared);
  if (prepared.dispatch.rewritten) await checkTwice(turn, prepared, life.rendering);
  if (prepared.action !== 'none' || prepared.report !== null) await checkRetry(turn, body, prepared, life);
  for (const action of prepared.action.split(', ')) if (isCounted(action)) done[action]++;
  for (const { text } of prepared.dispatch.view.reduction.results) {
    if (text.includes('the whole result is in node')) done.spilled++;
    // Without aging all such lines are the strategy's.
    else if (text.includes(', left out: "')) done[life.rendering.policies.agingTurns === null ? 'masked' : 'aged']++;
  }
  const text = JSON.stringify(bodyOf(prepared.dispatch.body).messages);
  for (const tag of person.tags) if (text.includes(tag)) life.sent.add(tag);
  return true;
}

interface Stored {
  readonly nodes: readonly Node[];
  readonly head: string | undefined;
}

async function storedOf(turn: Turn, { world: { ledger } }: Life): Promise<Stored> {
  const nodes = await ledger.nodes(turn.conversation, 0, 10_000);
  return { nodes, head: (await ledger.conversation(turn.conversation.id, null))?.head };
}

/** Compaction adds its one node; nothing else that is done to a request touches the ledger (SPEC 3.1, 7.5). */
async function checkLedger(turn: Turn, before: Stored, prepared: Prepared | null, life: Life): Promise<void> {
  const after = await storedOf(turn, life);
  expect(after.head).toBe(before.head);
  expect(after.nodes.slice(0, before.nodes.length)).toEqual(before.nodes);
  const added = after.nodes.slice(before.nodes.length);
  if (prepared?.action.startsWith('auto') === true) {
    expect(added.length).toBe(1);
    await checkSummary(turn, added[0]?.id ?? '', prepared);
  } else if (prepared === null) {
    // What was compacted stays so, though it was not enough.
    expect(added.length).toBeLessThanOrEqual(1);
    expect(added.every(isSummary)).toBe(true);
  } else {
    expect(added).toEqual([]);
  }
  const { nodes } = await life.world.ledger.spine(turn.conversation, turn.spine.at(-1)?.id ?? '', 'spine');
  expect(`[${nodes.map((node) => node.content).join(',')}]`).toBe(JSON.stringify(life.person.messages));
}

/**
 * The same request once more leaves as the same bytes, and nothing is paid for it (SPEC 4.5, 7.6): unless a compaction that
 * covered a part did not come below the trigger, and there is more to cover.
 */
async function checkRetry(turn: Turn, body: Wire, prepared: Prepared, { world, model }: Life): Promise<void> {
  if (prepared.action.startsWith('auto') && isAtTrigger(turn, prepared)) return;
  const paid = model.calls;
  const again = await prepare(await world.open(body), world.preparing);
  expect(again.action).toBe('none');
  expect(Buffer.compare(again.dispatch.body, prepared.dispatch.body)).toBe(0);
  expect(model.calls).toBe(paid);
}

/** Whatever was said and stands was read by the model, or by one that summarised it. */
function expectNothingLost({ person: { messages, tags }, sent, model }: Life): void {
  const told = model.inputs.join('\n');
  const asked = JSON.stringify(messages);
  const missing = tags.filter((tag) => asked.includes(tag) && !sent.has(tag) && !told.includes(tag));
  // What was said last has not been sent yet.
  const lastUser = messages.findLastIndex((message) => message['role'] === 'user');
  const last = JSON.stringify(messages.slice(lastUser + 1));
  expect(missing.filter((tag) => !last.includes(tag))).toEqual([]);
}

function isCounted(action: string): action is keyof Done {
  return action === 'auto' || action === 'tool-results' || action === 'checkpoint';
}
