import { describe, expect, it } from 'vitest';
import { Chat, padding } from './support/chat.js';
import type { Seen, WireMessage } from './support/chat.js';
import { startPair } from './support/start.js';
import type { StartedPair } from './support/start.js';

interface NodeRow {
  readonly id: string;
  readonly predecessor: string;
  readonly role: string;
  readonly content: unknown;
  readonly metadata: { readonly covers_ids?: readonly string[]; readonly command?: boolean };
}

/** What can be seen of a conversation from outside after a step. */
interface State {
  readonly head: string;
  readonly nodes: readonly NodeRow[];
  readonly summaries: readonly NodeRow[];
  /** Contents from ROOT to HEAD: the original, whatever was summarised. */
  readonly original: readonly unknown[];
}

async function stateOf(pair: StartedPair, id: string): Promise<State> {
  const conversation = await pair.api(`/conversations/${id}`);
  const page = (await pair.api(`/conversations/${id}/nodes?limit=1000`)) as { data: NodeRow[] };
  const byId = new Map(page.data.map((node) => [node.id, node]));
  const original: unknown[] = [];
  for (let node = byId.get(String(conversation['head'])); node !== undefined; node = byId.get(node.predecessor)) {
    original.unshift(node.content);
  }
  const summaries = page.data.filter((node) => node.metadata.covers_ids !== undefined);
  return { head: String(conversation['head']), nodes: page.data, summaries, original };
}

async function readsOf(pair: StartedPair, seen: Seen): Promise<readonly string[]> {
  const call = await pair.api(`/conversations/${seen.spillway['conversation']}/calls/${seen.spillway['call']}`);
  return call['reads'] as string[];
}

const settings = { SPILLWAY_WINDOWS: '*=6000', SPILLWAY_KEEP_TOKENS: '700' };

describe.each(['sqlite', 'memory'])('chat, fork, checkout, compact, chat, compact, chat, restart on %s', (store) => {
  it.each([
    ['named by the client, so one summary for the conversation (SPEC 3.4)', { 'x-spillway-conversation': 'the plan' }],
    ['known by its first message, so one summary for each branch (SPEC 3.4)', {}],
  ])('keeps HEAD, views and the original right after every step: %s', async (_, headers: Record<string, string>) => {
    const pair = await startPair({ ...settings, SPILLWAY_STORE: store });
    const chat = new Chat(pair, headers);

    // Chat: a linear chain, HEAD on the newest reply, everything read raw (SPEC 4.1, 8.2).
    let seen = await chat.say(padding('one', 250));
    const id = seen.spillway['conversation'] ?? '';
    for (const word of ['two', 'three', 'four', 'five']) seen = await chat.say(padding(word, 250));
    let state = await stateOf(pair, id);
    expect(state.original).toEqual(chat.messages.map(withoutEmpty));
    expect(await readsOf(pair, seen)).toEqual(state.nodes.slice(0, -1).map((node) => node.id));
    const trunkHead = state.head;
    const trunk = [...chat.messages];

    // Fork: an edit of the third message shares what is before it and nothing behind it (SPEC 1.4).
    chat.messages = trunk.slice(0, 4);
    seen = await chat.say(padding('another', 250));
    state = await stateOf(pair, id);
    expect(state.original).toEqual(chat.messages.map(withoutEmpty));
    expect(state.nodes.length).toBe(trunk.length + 2);
    const fork = [...chat.messages];
    const forkHead = state.head;

    // Checkout: HEAD moves because it was told to, and nothing else changes (SPEC 8.1).
    await pair.api(`/conversations/${id}/head`, { to: trunkHead, expected_head: forkHead });
    state = await stateOf(pair, id);
    expect(state.head).toBe(trunkHead);
    expect(state.original).toEqual(trunk.map(withoutEmpty));

    // Compact: one node more, HEAD where it was (SPEC 3.1, 3.2, 8.5).
    const before = state;
    const report = await pair.api(`/conversations/${id}/compact`, {});
    expect(report).toMatchObject({ outcome: 'compacted', calls: 1 });
    state = await stateOf(pair, id);
    expect(state.head).toBe(before.head);
    expect(state.nodes.slice(0, -1)).toEqual(before.nodes);
    const first = state.summaries[0];
    expect(state.summaries.length).toBe(1);
    expect(first?.metadata.covers_ids).toEqual(
      before.nodes.slice(0, Number(report['covered_count'])).map((node) => node.id),
    );

    // Chat: the model reads the summary and the kept tail, word for word (SPEC 4.1, 4.3).
    chat.messages = trunk;
    seen = await chat.say(padding('six', 250));
    state = await stateOf(pair, id);
    expect(state.original).toEqual(chat.messages.map(withoutEmpty));
    let reads = await readsOf(pair, seen);
    expect(reads[0]).toBe(first?.id);
    expect(reads.slice(1)).toEqual(idsBehind(state, first).slice(0, -1));
    expect(lastSent(pair).slice(1)).toEqual(chat.messages.slice(-reads.length, -1));

    // The fork from inside the segment still reads raw (SPEC 4.2), and HEAD follows it there and back.
    chat.messages = fork;
    seen = await chat.say('still here?');
    reads = await readsOf(pair, seen);
    expect(reads).not.toContain(first?.id);
    expect(lastSent(pair)).toEqual(chat.messages.slice(0, -1));
    expect((await stateOf(pair, id)).original).toEqual(chat.messages.map(withoutEmpty));

    // Compact again: coverage grows over the same segment, from the summary and not from what it covers (SPEC 3.2, 5.5).
    chat.messages = [...trunk, ...(await lastTwo(pair, id, 'six'))];
    for (const word of ['seven', 'eight', 'nine']) seen = await chat.say(padding(word, 250));
    const summaryCalls = pair.simulator.summaryRequests().length;
    seen = await chat.say('/compact keep the numbers');
    expect(seen.spillway['action']).toBe('manual');
    expect(seen.text).toMatch(/^Compacted \d+ messages/);
    expect(pair.simulator.summaryRequests().length).toBe(summaryCalls + 1);
    const input = JSON.stringify(pair.simulator.summaryRequests().at(-1)?.body);
    expect(input).toContain('keep the numbers');
    expect(input).not.toContain(padding('one', 250).slice(0, 40));
    state = await stateOf(pair, id);
    expect(state.summaries.length).toBe(2);
    const second = state.summaries[1];
    const coveredFirst = first?.metadata.covers_ids ?? [];
    expect(second?.metadata.covers_ids?.slice(0, coveredFirst.length)).toEqual(coveredFirst);
    expect(second?.metadata.covers_ids?.length).toBeGreaterThan(coveredFirst.length);
    expect(state.original).toEqual(chat.messages.map(withoutEmpty));

    // Chat: neither the command nor its answer is read by any model (SPEC 4.9), only the newest summary is.
    seen = await chat.say('and now?');
    reads = await readsOf(pair, seen);
    expect(reads[0]).toBe(second?.id);
    expect(reads).not.toContain(first?.id);
    expect(JSON.stringify(lastSent(pair))).not.toContain('/compact');
    const commands = (await stateOf(pair, id)).nodes.filter((node) => node.metadata.command === true);
    expect(commands.length).toBe(2);
    for (const command of commands) expect(reads).not.toContain(command.id);

    // Restart: the same state to the last field, and the same view for the next message (SPEC 8.5).
    if (store === 'sqlite') {
      const old = await stateOf(pair, id);
      await pair.restart();
      expect(await stateOf(pair, id)).toEqual(old);
      seen = await chat.say('and after the restart?');
      expect((await readsOf(pair, seen))[0]).toBe(second?.id);
      expect((await stateOf(pair, id)).original).toEqual(chat.messages.map(withoutEmpty));
    }
  });
});

/** What the model really read last. */
function lastSent(pair: StartedPair): readonly WireMessage[] {
  const body = pair.simulator.chatRequests().at(-1)?.body as { messages: WireMessage[] } | undefined;
  return body?.messages ?? [];
}

/** Ids of the spine of HEAD that a summary does not cover. */
function idsBehind(state: State, summary: NodeRow | undefined): readonly string[] {
  const byId = new Map(state.nodes.map((node) => [node.id, node]));
  const ids: string[] = [];
  const covered = new Set(summary?.metadata.covers_ids);
  for (
    let node = byId.get(state.head);
    node !== undefined && !covered.has(node.id);
    node = byId.get(node.predecessor)
  ) {
    ids.unshift(node.id);
  }
  return ids;
}

/** The stored user message that begins with a word, and the reply to it. */
async function lastTwo(pair: StartedPair, id: string, word: string): Promise<readonly WireMessage[]> {
  const { nodes } = await stateOf(pair, id);
  const user = nodes.find((node) => JSON.stringify(node.content).includes(`"${word} plain`));
  const reply = nodes.find((node) => node.predecessor === user?.id);
  return [user?.content as WireMessage, reply?.content as WireMessage];
}

/** A reply as the ledger keeps it: members without a value, which providers send and clients drop, are not stored. */
function withoutEmpty(message: WireMessage): unknown {
  const kept = Object.entries(message).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(kept);
}
