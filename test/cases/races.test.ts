import { describe, expect, it } from 'vitest';
import { isSummary } from '../../src/core/node.js';
import { NO_REDUCTION } from '../../src/core/request/reduction.js';
import { spineOfTurn } from '../../src/proxy/compact-spine.js';
import { prepare } from '../../src/proxy/prepare.js';
import { Chat, padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import { assistant, filler, isRecord, recordOf, scriptedWorld, talks, user } from './scripted-world.js';
import type { SummaryAnswer, Wire, World } from './scripted-world.js';

/** Between the trigger of 2,200 tokens and the limit of 2,744: what cannot be compacted is sent whole. */
const history: readonly Wire[] = [...talks(5, 450), user('now')];
const options = { windowTokens: 4_000, keepTokens: 600 };

/** A world whose first summary call is held until it is let go; the others answer at once. */
function heldWorld(answer: SummaryAnswer = recordOf('held')) {
  let letGo = (): void => undefined;
  let reached = (): void => undefined;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const started = new Promise<void>((resolve) => (reached = resolve));
  const world = scriptedWorld(options, async (call) => {
    if (call > 0) return recordOf(`call ${call}`);
    reached();
    await gate;
    return answer;
  });
  return { world, started, letGo: () => letGo() };
}

async function summariesOf(world: World, conversation: { readonly tenant: string; readonly id: string }) {
  return (await world.ledger.nodes(conversation, 0, 1_000)).filter(isSummary);
}

describe('two requests at once', () => {
  it('on one spine share one compaction and read the same summary, SPEC 5.11', async () => {
    const { world, started, letGo } = heldWorld();
    const first = world.request(history);
    await started;
    const second = world.request(history);
    letGo();
    const [one, other] = await Promise.all([first, second]);
    expect(world.asked.length).toBe(1);
    expect(isRecord(one.messages[0])).toBe(true);
    expect(other.text).toBe(one.text);
    expect((await summariesOf(world, one.turn.conversation)).length).toBe(1);
  });

  it('on one spine, the later of which compacts when the other has done so: it reads that summary and pays nothing, SPEC 5.11', async () => {
    const world = scriptedWorld(options);
    const turn = await world.open({ model: 'any', messages: history });
    const one = await world.request(history);
    const prepared = await prepare(turn, world.preparing);
    expect(prepared).toMatchObject({ action: 'auto', report: { outcome: 'compacted', calls: 0 } });
    expect(Buffer.compare(prepared.dispatch.body, one.prepared.dispatch.body)).toBe(0);
    expect(world.asked.length).toBe(1);
    expect((await summariesOf(world, turn.conversation)).length).toBe(1);
  });

  it('what arrives while a compaction runs is read verbatim behind its summary, SPEC 5.8', async () => {
    const { world, started, letGo } = heldWorld();
    const first = world.request(history);
    await started;
    const arrived = [assistant('well'), user(filler('arrived', 100))];
    const second = world.request([...history, ...arrived]);
    letGo();
    const [one, other] = await Promise.all([first, second]);
    expect(world.asked.length).toBe(1);
    expect(other.messages).toEqual([...one.messages, ...arrived]);
    const nodes = await world.ledger.nodes(one.turn.conversation, 0, 1_000);
    expect(nodes.filter((node) => !isSummary(node)).map((node): unknown => JSON.parse(node.content))).toEqual([
      ...history,
      ...arrived,
    ]);
  });

  it('on two branches: each gets a summary of its own messages, SPEC 4.2, 5.11', async () => {
    const { world, started, letGo } = heldWorld();
    const first = world.request(history);
    await started;
    const branch = [...history.slice(0, 4), ...talks(4, 500).map(renamed), user('there')];
    const second = world.request(branch);
    letGo();
    const [one, other] = await Promise.all([first, second]);
    expect(world.asked.length).toBeGreaterThan(1);
    expect(isRecord(one.messages[0]) && isRecord(other.messages[0])).toBe(true);
    expect(world.asked[1]?.input).toContain('branched');
    expect(world.asked[0]?.input).not.toContain('branched');
    expect(history).toEqual(expect.arrayContaining(one.messages.slice(1)));
    expect(branch).toEqual(expect.arrayContaining(other.messages.slice(1)));
  });

  it('on two branches: what failed for one is tried for the other, SPEC 5.11', async () => {
    const { world, started, letGo } = heldWorld(500);
    const first = world.request(history);
    await started;
    const second = world.request([...history.slice(0, -1), user('rather this')]);
    letGo();
    expect((await first).prepared.report?.outcome).toBe('failed');
    expect((await second).prepared.action).toBe('auto');
  });

  it('on two branches: a summary of what both share serves both, SPEC 3.4', async () => {
    const { world, started, letGo } = heldWorld();
    const first = world.request(history);
    await started;
    const second = world.request([...history.slice(0, -1), user('rather this')]);
    letGo();
    const [one, other] = await Promise.all([first, second]);
    expect(world.asked.length).toBe(1);
    expect(other.messages.slice(0, -1)).toEqual(one.messages.slice(0, -1));
    expect(other.messages.at(-1)).toEqual(user('rather this'));
  });
});

describe('a summary whose ground has changed is stale and writes nothing, SPEC 5.8', () => {
  it('when another one was committed meanwhile: the request goes on raw and no head is latched', async () => {
    const { world, started, letGo } = heldWorld();
    const running = world.request(history);
    await started;
    const turn = await world.open({ model: 'any', messages: history });
    const chain = turn.spine.map((node) => node.id);
    const covers = chain.slice(0, 4);
    const rival = await world.ledger.commitSummary({
      conversation: turn.conversation,
      policy: turn.policy,
      chain,
      expectedActive: null,
      headMustDescend: false,
      lease: null,
      node: {
        id: 'summary_rival',
        predecessor: 'ROOT',
        caller: null,
        role: 'llm',
        name: 'context/summary',
        content: `[Previous conversation summary]\n${recordOf('rival')}`,
        tokens: null,
        tokenizer: null,
        metadata: {
          compaction: true,
          covers_ids: covers,
          covered_count: covers.length,
          tokens_before: 9,
          tokens_after: 1,
          model: 'any',
          trigger: 'auto',
          duration_ms: 0,
        },
      },
    });
    expect(rival.outcome).toBe('committed');
    letGo();
    const { prepared, messages } = await running;
    expect(prepared).toMatchObject({ action: 'none', report: { outcome: 'stale' } });
    expect(messages).toEqual(history);
    expect((await summariesOf(world, turn.conversation)).map((node) => node.id)).toEqual(['summary_rival']);
    expect((await world.open({ model: 'any', messages: history })).opened.marks).toEqual([]);
  });

  it('when HEAD was moved off the segment, for a manual one', async () => {
    const { world, started, letGo } = heldWorld();
    const turn = await world.open({ model: 'any', messages: history });
    const { limits } = turn;
    if (limits === null) throw new Error('no window');
    const running = world.preparing.compactSpine.run(spineOfTurn(turn), {
      active: null,
      reduction: NO_REDUCTION,
      trigger: 'manual',
      waits: true,
      aim: 'window',
      limits,
      userWish: null,
    });
    await started;
    await world.ledger.moveHead(turn.conversation, turn.spine[1]?.id ?? '', null);
    letGo();
    expect(await running).toMatchObject({ outcome: 'stale', summary: null });
    expect(await summariesOf(world, turn.conversation)).toEqual([]);
  });
});

describe('histories and the summaries that stand on them', () => {
  it('an edit of a covered message reads raw, or by the longest summary of what was not edited, SPEC 3.4, 4.2', async () => {
    const world = scriptedWorld(options);
    const first = await world.request(history);
    const shortest = first.prepared.report?.coveredCount ?? 0;
    const longer = [...history, assistant('well'), ...talks(6, 500).map(renamed), user('and now?')];
    const second = await world.request(longer);
    expect(second.prepared.report?.coveredCount).toBeGreaterThan(shortest);

    const edited = (at: number, upTo: number) =>
      longer.slice(0, upTo).map((message, index) => (index === at ? user('edited') : message));
    const early = await world.request([...edited(2, 5), user('?')]);
    expect(early.messages).toEqual([...edited(2, 5), user('?')]);
    const late = await world.request([...edited(shortest, shortest + 2), user('?')]);
    expect(late.messages[0]).toEqual(first.messages[0]);
    expect(late.messages.slice(1)).toEqual([user('edited'), longer[shortest + 1], user('?')]);
  });

  it('a helper’s history under the same session, or a shorter one, is nobody else’s: nothing goes by count or shape, SPEC 1.2', async () => {
    const world = scriptedWorld(options);
    const session = { 'x-session-id': 'agent-7' };
    const main = await world.request(history, {}, session);
    expect(main.prepared.action).toBe('auto');
    const helper = [user('You are a helper. Find the bug.'), assistant('Found it: line 7.'), user('Thanks. And?')];
    const other = await world.request(helper, {}, session);
    expect(other.turn.conversation.id).not.toBe(main.turn.conversation.id);
    expect(other.prepared.dispatch.body).toBe(other.turn.body.original);
    const shorter = await world.request([...history.slice(0, 2), user('Again?')], {}, session);
    expect(shorter.turn.conversation.id).toBe(main.turn.conversation.id);
    expect(shorter.prepared.dispatch.body).toBe(shorter.turn.body.original);
  });

  it('an undone turn said anew is a new node, and a summary of the undone one never stands on it, SPEC 1.4', async () => {
    const world = scriptedWorld(options);
    const first = await world.request([...history, assistant('well'), ...talks(6, 500).map(renamed), user('x')]);
    const again = [...history.slice(0, 10), user('something else'), assistant('ok'), user('x')];
    const anew = await world.request(again);
    expect(first.prepared.action).toBe('auto');
    expect(anew.messages.slice(-3)).toEqual(again.slice(-3));
    expect(anew.text).not.toContain('branched');
  });
});

describe('a client that leaves', () => {
  it.each([
    ['while it still runs', false],
    ['when it is over', true],
  ])(
    'does not end the compaction it caused; its retry, %s, reads the summary and pays nothing, SPEC 5.6',
    async (_when, over) => {
      const { world, started, letGo } = heldWorld();
      const turn = await world.open({ model: 'any', messages: history });
      const leaving = new AbortController();
      const prepared = prepare({ ...turn, closed: leaving.signal }, world.preparing);
      await started;
      leaving.abort(new Error('client left'));
      await expect(prepared).rejects.toThrow('client left');
      if (over) letGo();
      const retry = world.request(history);
      letGo();
      expect(isRecord((await retry).messages[0])).toBe(true);
      expect(world.asked.length).toBe(1);
      expect((await summariesOf(world, turn.conversation)).length).toBe(1);
    },
  );
});

it('summaries have ids of their own, never used again, and never a chain node’s, SPEC 3.1', async () => {
  const pair = await startPair({ SPILLWAY_WINDOWS: '*=4000', SPILLWAY_KEEP_TOKENS: '500' });
  const chat = new Chat(pair);
  let id = '';
  for (let round = 0; round < 8; round++) {
    id = (await chat.say(padding(`round${round}`, 500))).spillway['conversation'] ?? '';
  }
  const { data } = (await pair.api(`/conversations/${id}/nodes?limit=1000`)) as { data: { id: string }[] };
  const ids = data.map((node) => node.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((each) => each.startsWith('summary_')).length).toBeGreaterThan(1);
});

function renamed(message: Wire): Wire {
  return { ...message, content: `branched ${String(message['content'])}` };
}
