import { expect } from 'vitest';
import { budgetShare } from '../../src/core/budget.js';
import { faultsOf } from '../../src/core/check.js';
import { SpillwayError } from '../../src/core/errors.js';
import { estimateView } from '../../src/core/estimate.js';
import { isTypedUserMessage } from '../../src/core/message.js';
import { isSummary } from '../../src/core/node.js';
import { readsOf } from '../../src/core/render.js';
import type { Entry } from '../../src/core/render.js';
import type { Reduction } from '../../src/core/request/reduction.js';
import { segmentOn } from '../../src/core/summary.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { spineOfTurn } from '../../src/proxy/compact-spine.js';
import { dispatchOf } from '../../src/proxy/dispatch.js';
import type { Dispatch } from '../../src/proxy/dispatch.js';
import { prepare } from '../../src/proxy/prepare.js';
import type { Prepared } from '../../src/proxy/prepare.js';
import type { Turn } from '../../src/proxy/turn.js';
import { createWorld } from '../support/in-memory.js';
import type { Rendering, Wire } from './random-history.js';

export function bodyOf(bytes: Uint8Array): { readonly messages: readonly Wire[]; readonly [field: string]: unknown } {
  return JSON.parse(new TextDecoder().decode(bytes)) as { messages: Wire[] };
}

/** What is sent is legal, and is the client's request but for what the view says: nothing else is changed, lost or moved. */
export async function checkDispatch(turn: Turn, prepared: Prepared): Promise<void> {
  const { dispatch } = prepared;
  const original = bodyOf(turn.body.original);
  const sent = bodyOf(dispatch.body);
  expect({ ...sent, messages: null }).toEqual({ ...original, messages: null });
  const read = sent.messages
    .map((message) => chatCompletions.readMessage(message))
    .filter((message) => message !== null);
  expect(faultsOf(read)).toEqual([]);
  expect(sent.messages).toEqual(expectedMessages(turn, dispatch, original.messages));
  checkTail(turn, dispatch);

  // Every instruction stays, each text once, and every user message behind the summary, in order.
  const contents = new Set(sent.messages.map((message) => message['content']));
  expect(original.messages.every(({ role, content }) => role !== 'system' || contents.has(content))).toBe(true);
  const behind = original.messages.slice(original.messages.length - turn.spine.length + coveredBy(turn, dispatch));
  const typed = (messages: readonly Wire[]) => messages.filter(({ role }) => role === 'user');
  const substitutes = new Set(substituteTexts(dispatch));
  expect(typed(sent.messages).filter(({ content }) => !substitutes.has(String(content)))).toEqual(typed(behind));
  expect(typed(behind).length).toBeGreaterThan(0);

  checkFrozen(turn, dispatch, sent.messages.length);
  await checkEstimate(turn, prepared);
}

/** The list that a view stands for, put together from the client's own messages. */
function expectedMessages(turn: Turn, { view }: Dispatch, original: readonly Wire[]): readonly Wire[] {
  const instructions = original.length - turn.spine.length;
  const at = (index: number): Wire => original[instructions + index] ?? {};
  const substitute = (content: string): Wire => ({
    role: 'user',
    content: chatCompletions.summaryMessage(content).text,
  });
  return [
    ...original.slice(0, instructions),
    ...view.pinned.map(at),
    ...(view.summary === null ? [] : [substitute(view.summary.content)]),
    ...view.tail.map((entry): Wire => {
      if (entry.kind === 'checkpoint') return substitute(entry.checkpoint.content);
      const message = at(entry.index);
      if (entry.kind === 'message') return message;
      const [result, ...more] = entry.results;
      expect(more).toEqual([]);
      expect(result?.callId).toBe(message['tool_call_id']);
      return { ...message, content: result?.text };
    }),
  ];
}

/** Behind the summary every message has one place, and no checkpoint stands for a user's or the latest assistant's. */
function checkTail(turn: Turn, dispatch: Dispatch): void {
  const ids = turn.spine.map(({ id }) => id);
  const places = dispatch.view.tail.flatMap((entry): readonly number[] => {
    if (entry.kind !== 'checkpoint') return [entry.index];
    const run = segmentOn(ids, entry.checkpoint);
    return run === null ? [] : Array.from({ length: run.to - run.from }, (_, index) => run.from + index);
  });
  const covered = coveredBy(turn, dispatch);
  expect(places).toEqual(ids.slice(covered).map((_, index) => covered + index));

  const verbatim = new Set(dispatch.view.tail.flatMap((entry) => (entry.kind === 'checkpoint' ? [] : [entry.index])));
  const latest = turn.spine.findLastIndex(({ message }) => message.role === 'llm');
  for (const [index, { message }] of turn.spine.entries()) {
    const stays = isTypedUserMessage(message) || message.role === 'system' || index >= latest;
    if (stays && index >= covered) expect(verbatim.has(index)).toBe(true);
  }
}

function coveredBy(turn: Turn, { view }: Dispatch): number {
  const ids = turn.spine.map(({ id }) => id);
  return view.summary === null ? 0 : (segmentOn(ids, view.summary)?.to ?? 0);
}

function substituteTexts({ view }: Dispatch): readonly string[] {
  const checkpoints = view.tail.flatMap((entry: Entry) =>
    entry.kind === 'checkpoint' ? [entry.checkpoint.content] : [],
  );
  const contents = view.summary === null ? checkpoints : [view.summary.content, ...checkpoints];
  return contents.map((content) => chatCompletions.summaryMessage(content).text);
}

/** Rendered again from what is stored of the call it gives the same bytes (SPEC 4.5, 4.6). */
function checkFrozen(turn: Turn, dispatch: Dispatch, messages: number): void {
  const { summary } = dispatch.view;
  const stored = dispatch.reduction === null ? undefined : (JSON.parse(dispatch.reduction.content) as Reduction);
  expect(dispatch.manifest.reduction).toBe(dispatch.reduction?.digest ?? null);
  const again = dispatchOf(turn, summary, stored);
  expect(Buffer.compare(again.body, dispatch.body)).toBe(0);
  if (summary === null && stored === undefined) expect(dispatch.body).toBe(turn.body.original);

  const chain = turn.spine.map(({ id }) => id);
  const reads = readsOf(chain, dispatch.manifest, summary, stored);
  expect(reads.length).toBe(messages - turn.read.instructions.length - (stored?.checkpoints.length ?? 0));
}

/** It is under its limit, and the figure told is of what is sent (SPEC 7.1). */
async function checkEstimate(turn: Turn, { dispatch, after }: Prepared): Promise<void> {
  if (after === null) throw new Error('the window is known');
  expect(after.tokens).toBeLessThanOrEqual(limitOf(turn));
  if (after.kind === 'bound') return;
  expect(after.tokens).toBe(estimateView(dispatch.view, await turn.measure.ruler()));
}

export async function checkSummary(turn: Turn, id: string, prepared: Prepared): Promise<void> {
  const { summary } = prepared.dispatch.view;
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

/** Most input tokens, by the letter of SPEC 7.1 and 7.2. */
function limitOf({ belief, read }: Turn): number {
  const window = belief.windowTokens ?? 0;
  const reserve = read.outputCap ?? Math.min(16_384, Math.floor(window / 4));
  return window - reserve - Math.max(256, Math.floor(window / 20));
}

/** A refusal is right and names its parts (SPEC 7.7). */
export function checkRefusal(turn: Turn, error: unknown): void {
  if (!(error instanceof SpillwayError)) throw error;
  expect(error.code).toBe('context_length_exceeded');
  const [window, input, limit, , ...parts] = (error.message.match(/\d+/g) ?? []).map(Number);
  expect(window).toBe(turn.belief.windowTokens);
  expect(limit).toBe(limitOf(turn));
  expect(input).toBeGreaterThan(limit ?? Infinity);
  expect(error.message).toMatch(
    /fixed part .* [1-9]\d*, user text [1-9]\d*, open group .* \d+, media 0, summaries \d+, history .* \d+\.$/,
  );
  expect(parts.reduce((sum, tokens) => sum + tokens, 0)).toBe(input);
}

/**
 * Preparing what was dispatched once more changes nothing, under the cap that the client gave. Only at the trigger of a turn's start
 * may a summary be wanted again: the conversation is another one. So it is where results age and something stands in for messages,
 * since that is then a user message among others, and turns are counted.
 */
export async function checkTwice(turn: Turn, { dispatch, after }: Prepared, rendering: Rendering): Promise<void> {
  if (rendering.policies.agingTurns !== null && substituteTexts(dispatch).length > 0) return;
  let calls = 0;
  // A proxy that has seen nothing yet, and whose summariser never works.
  const world = createWorld({
    windowTokens: turn.belief.windowTokens,
    ...rendering,
    send() {
      calls++;
      return Promise.reject(new Error('no summariser'));
    },
  });
  const again = await world.open(bodyOf(dispatch.body));
  const twice = await prepare(again, world.preparing);
  expect(twice.action).toBe('none');
  expect(Buffer.compare(twice.dispatch.body, dispatch.body)).toBe(0);
  // What stands in for messages was counted as what it is sent as.
  if (after?.kind === 'estimate') {
    expect(estimateView(twice.dispatch.view, await again.measure.ruler())).toBe(after.tokens);
  }
  if (!isAtTrigger(again, twice)) expect(calls).toBe(0);
}

/** What is dispatched takes so much of the window that a turn that starts with it is compacted (SPEC 5). */
export function isAtTrigger({ limits, spine }: Turn, { after }: Prepared): boolean {
  const last = spine.at(-1);
  const starts = last !== undefined && isTypedUserMessage(last.message);
  return starts && limits !== null && after?.kind === 'estimate' && budgetShare(after.tokens, limits) >= 0.8;
}
