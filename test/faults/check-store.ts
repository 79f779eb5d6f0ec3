import { expect } from 'vitest';
import { isSummary, ROOT } from '../../src/core/node.js';
import type { Node } from '../../src/core/node.js';
import type { Conversation, Ledger } from '../../src/core/ports.js';
import { policyFor } from '../../src/proxy/identify.js';
import type { Told } from './caller.js';
import type { Spoken } from './conversations.js';

/** The nodes behind which a reply is missing, as the proxies' logs tell it. */
export type Gaps = ReadonlySet<string>;

/** Nothing that any client was told is missing, and nothing is half written, SPEC 2.4, 3.2, 3.5. */
export async function checkStore(ledger: Ledger, told: readonly Told[], gaps: Gaps): Promise<void> {
  for (const id of new Set(told.map(({ conversation }) => conversation))) {
    const stored = await read(ledger, id);
    const here = told.filter(({ conversation }) => conversation === id);
    for (const one of here) checkAcknowledged(stored, one, gaps);
    checkSummaries(stored);
    await checkCalls(ledger, stored);
    const named = here[0]?.request.headers['x-spillway-conversation'] ?? null;
    if (policyFor(named, 'auto') === 'session') await checkOneActive(ledger, stored);
  }
}

/** HEAD is where the last turn that moved it ended, SPEC 8.1, 8.2. */
export async function checkHead(ledger: Ledger, { kind, ends }: Spoken, gaps: Gaps): Promise<void> {
  const stored = await read(ledger, ends[0]?.conversation ?? '');
  const { head } = stored.conversation;
  // Of those who spoke at once, one opened the last turn, and that was its last.
  expect(
    ends.flatMap((end) => endsOf(stored, end, gaps)),
    kind,
  ).toContain(head);
  expect(stored.nodes.get(head)).toMatchObject({ deletedAt: null });
  expect(stored.nodes.get(head)?.id).not.toMatch(/^summary_/);
}

/** Everything that was ever said in turn lies on HEAD's spine. */
export async function checkLine(ledger: Ledger, told: readonly Told[]): Promise<void> {
  const stored = await read(ledger, told[0]?.conversation ?? '');
  const line = new Set(spineOf(stored, stored.conversation.head).map((node) => node.id));
  expect(told.filter(({ head }) => !line.has(head))).toEqual([]);
  const covered = stored.summaries.map((summary) => summary.metadata.covers_ids);
  // Each goes further than the one before it, and along the same line.
  for (const [index, ids] of covered.entries()) {
    expect(ids.length).toBeGreaterThan(covered[index - 1]?.length ?? 0);
    expect(ids.every((id) => line.has(id))).toBe(true);
  }
}

interface Stored {
  readonly conversation: Conversation;
  readonly nodes: ReadonlyMap<string, Node>;
  readonly summaries: readonly (Node & { readonly metadata: { readonly covers_ids: readonly string[] } })[];
}

async function read(ledger: Ledger, id: string): Promise<Stored> {
  const conversation = await ledger.conversation(id, null);
  if (conversation === null) throw new Error(`the conversation ${id} is missing`);
  const nodes: Node[] = [];
  for (;;) {
    const page = await ledger.nodes(conversation, nodes.at(-1)?.seq ?? 0, 500);
    nodes.push(...page);
    if (page.length === 0) break;
  }
  return { conversation, nodes: new Map(nodes.map((node) => [node.id, node])), summaries: nodes.filter(isSummary) };
}

/** Walked here and not by the store. */
function spineOf({ nodes }: Stored, end: string): readonly Node[] {
  const spine: Node[] = [];
  for (let id = end; id !== ROOT; id = spine[0]?.predecessor ?? ROOT) {
    const node = nodes.get(id);
    if (node === undefined) throw new Error(`the node ${id} before ${end} is missing`);
    spine.unshift(node);
  }
  return spine;
}

function textOf(node: Node | undefined): string {
  const message: unknown = JSON.parse(node?.content ?? 'null');
  return message !== null && typeof message === 'object' && 'content' in message ? String(message.content) : '';
}

/** The request's messages are stored, and behind them the reply, if its end was seen and no gap was reported. */
function checkAcknowledged(stored: Stored, told: Told, gaps: Gaps): void {
  const { messages, streams, headers } = told.request;
  const spine = spineOf(stored, told.head);
  const replies = repliesOf(stored, told);
  const asked = !streams && spine.at(-1)?.role === 'llm' ? spine.slice(0, -1) : spine;
  const texts = messages.map(({ content }) => content);
  expect(asked.slice(-texts.length).map(textOf)).toEqual(texts);
  if (headers['x-spillway-append'] === undefined) expect(asked).toHaveLength(texts.length);
  if (told.reply !== null && !gaps.has(told.head)) expect(replies.map(textOf)).toContain(told.reply);
}

/** The reply that a whole answer names, or those behind the request's end that a stream names. */
function repliesOf({ nodes }: Stored, { request, head }: Told): readonly Node[] {
  const named = nodes.get(head);
  if (!request.streams) return named?.role === 'llm' ? [named] : [];
  return [...nodes.values()].filter((node) => node.predecessor === head && node.role === 'llm' && !isSummary(node));
}

function endsOf(stored: Stored, told: Told, gaps: Gaps): readonly string[] {
  const replies = repliesOf(stored, told).filter((node) => textOf(node) === told.reply);
  return [...replies.map((node) => node.id), ...(gaps.has(told.head) ? [told.head] : [])];
}

/** A summary covers stored nodes of one spine, from its first on, and no summary, SPEC 3.1, 3.2. */
function checkSummaries(stored: Stored): void {
  for (const { predecessor, metadata } of stored.summaries) {
    const spine = spineOf(stored, metadata.covers_ids.at(-1) ?? ROOT);
    expect(metadata.covers_ids).toEqual(spine.map((node) => node.id));
    expect(metadata.covers_ids.length).toBeGreaterThan(0);
    expect(predecessor).toBe(ROOT);
    expect(spine.filter(isSummary)).toEqual([]);
  }
  // The last one written is the one that is named, SPEC 3.5.
  expect(stored.conversation.activeSummary).toBe(stored.summaries.at(-1)?.id ?? null);
}

/** What a call names is there. */
async function checkCalls(ledger: Ledger, { conversation, nodes }: Stored): Promise<void> {
  const calls = await ledger.calls(conversation, 100_000);
  const named = calls.flatMap(({ manifest, replies }) => [
    manifest.head,
    ...replies,
    manifest.summary ?? manifest.head,
  ]);
  expect(named.filter((id) => !nodes.has(id))).toEqual([]);
}

/** Whatever spine is looked at, no summary is active but the one that the conversation names, SPEC 3.4. */
async function checkOneActive(ledger: Ledger, { conversation, nodes }: Stored): Promise<void> {
  const chain = [...nodes.values()].filter((node) => !isSummary(node));
  const inner = new Set(chain.map((node) => node.predecessor));
  for (const { id } of chain.filter((node) => !inner.has(node.id))) {
    const { active } = await ledger.spine(conversation, id, 'session');
    expect([null, conversation.activeSummary]).toContain(active?.id ?? null);
  }
}
