import { expect, describe, it } from 'vitest';
import type { Mark } from '../../../src/core/ports.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf, usageOf } from '../builders.js';
import type { World } from './world.js';

/** Closing a turn, and the matches and marks that it leaves. */
export function closingConformance(world: World): void {
  const { open, head, everything, expectRefusal } = world;

  describe('closing a turn', () => {
    const reply = () => nodeAfter(endOf('a >b c'), '>d');

    it('records reply and call and moves HEAD to the reply, SPEC 2.3, 2.5, 8.2', async () => {
      await open('a >b c');
      world.now = 3_000;
      const call = callOf('call-1', endOf('a >b c'), { usage: usageOf(7), estimatedTokens: 6.5 });
      expect(await world.ledger.closeTurn(closeOf(call, [reply()]))).toEqual({ head: reply().id });
      expect(await head()).toBe(reply().id);
      expect(await world.ledger.call(alice, 'call-1')).toEqual({ ...call, replies: [reply().id] });
      expect(await world.ledger.node(alice, reply().id)).toEqual({
        ...reply(),
        conversation: alice.id,
        seq: 4,
        createdAt: 3_000,
        deletedAt: null,
      });
      expect(await world.ledger.conversation(alice.id, null)).toMatchObject({ createdAt: 1_000, usedAt: 3_000 });
      expect((await open('a >b c >d e')).known).toBe(4);
    });

    it.each(['cancelled', 'failed'] as const)('keeps a %s reply but leaves HEAD, SPEC 2.3', async (outcome) => {
      await open('a >b c');
      const call = callOf('call-1', endOf('a >b c'), { outcome });
      expect(await world.ledger.closeTurn(closeOf(call, [reply()]))).toEqual({ head: endOf('a >b c') });
      expect(await world.ledger.node(alice, reply().id)).not.toBeNull();
    });

    it('leaves HEAD for a spawned turn, SPEC 8.3', async () => {
      await open('a >b c');
      const close = closeOf(callOf('call-1', endOf('a >b c')), [reply()], { advanceHead: false });
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >b c') });
    });

    it('leaves HEAD when it has gone elsewhere meanwhile, SPEC 8.2', async () => {
      await open('a >b c');
      await open('a >b other');
      const close = closeOf(callOf('call-1', endOf('a >b c')), [reply()]);
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >b other') });
    });

    it('records every choice and moves HEAD to the first; equal choices are one node, SPEC 1.4', async () => {
      await open('a');
      const choices = ['>x', '>y', '>x'].map((text) => nodeAfter(endOf('a'), text));
      expect(await world.ledger.closeTurn(closeOf(callOf('call-1', endOf('a')), choices))).toEqual({
        head: endOf('a >x'),
      });
      expect(await world.ledger.nodes(alice, 0, 10)).toHaveLength(3);
      expect((await world.ledger.call(alice, 'call-1'))?.replies).toEqual([
        endOf('a >x'),
        endOf('a >y'),
        endOf('a >x'),
      ]);
    });

    it('records the items of one reply one after the other and moves HEAD to the last, SPEC 1.7, 8.2', async () => {
      await open('a');
      const items = spineOf('a >x >y >z').slice(1);
      const close = closeOf(callOf('call-1', endOf('a')), items);
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >x >y >z') });
      expect((await world.ledger.spine(alice, null, 'spine')).nodes.map((node) => node.id)).toEqual(
        idsOf('a >x >y >z'),
      );
      for (const item of items) {
        expect((await world.ledger.callsOfReply(alice, item.id)).map((call) => call.id)).toEqual(['call-1']);
      }
      expect(await world.ledger.callsOfReply(alice, endOf('a'))).toEqual([]);
    });

    it('moves HEAD along the first choice only, and not for an incomplete one, SPEC 2.3', async () => {
      await open('a');
      const choices = [...spineOf('a >x >y').slice(1), ...spineOf('a >other').slice(1)];
      const failed = closeOf(callOf('2', endOf('a'), { outcome: 'failed' }), choices);
      expect(await world.ledger.closeTurn(failed)).toEqual({ head: endOf('a') });
      expect(await world.ledger.closeTurn(closeOf(callOf('1', endOf('a')), choices))).toEqual({
        head: endOf('a >x >y'),
      });
      expect((await world.ledger.callsOfReply(alice, endOf('a >x >y'))).map((call) => call.id)).toEqual(['2', '1']);
      const skipping = closeOf(callOf('3', endOf('a')), [
        ...spineOf('a >x >y').slice(1),
        ...spineOf('a >x >z').slice(2),
      ]);
      await expectRefusal(() => world.ledger.closeTurn(skipping), 'invalid_request', 'replies');
    });

    it('takes a reply that is there already as that node and moves HEAD to it, SPEC 1.4', async () => {
      await open('a >b');
      await open('a');
      const close = closeOf(callOf('call-1', endOf('a')), [nodeAfter(endOf('a'), '>b')]);
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >b') });
      expect(await world.ledger.nodes(alice, 0, 10)).toHaveLength(2);
    });

    it('without a call records what Spillway itself answered, SPEC 4.9', async () => {
      await open('a >b !compact');
      const answer = nodeAfter(endOf('a >b !compact'), '!done', { role: 'llm' });
      expect(await world.ledger.closeTurn(closeOf(null, [answer]))).toEqual({ head: answer.id });
      expect(await world.ledger.calls(alice, 10)).toEqual([]);
      expect((await open('a >b !compact !done c')).commands).toEqual(idsOf('a >b !compact !done').slice(2));
    });

    it('changes nothing when the same call is closed again', async () => {
      await open('a >b c');
      const close = closeOf(callOf('call-1', endOf('a >b c')), [reply()]);
      await world.ledger.closeTurn(close);
      await open('a >b c >d e');
      const before = await everything();
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >b c >d e') });
      expect(await everything()).toEqual(before);
    });

    it('tells which calls recorded a reply, in the order closed, SPEC 2.3', async () => {
      await open('a >b c');
      const close = (id: string, text: string, outcome: 'complete' | 'failed') =>
        world.ledger.closeTurn(closeOf(callOf(id, endOf('a >b c'), { outcome }), [nodeAfter(endOf('a >b c'), text)]));
      await close('z', '>d', 'failed');
      await close('m', '>other', 'complete');
      await close('a', '>d', 'complete');
      expect((await world.ledger.callsOfReply(alice, reply().id)).map((call) => [call.id, call.outcome])).toEqual([
        ['z', 'failed'],
        ['a', 'complete'],
      ]);
      expect(await world.ledger.callsOfReply(alice, 'nobody')).toEqual([]);
      expect((await world.ledger.calls(alice, 10)).map((call) => call.id)).toEqual(['z', 'm', 'a']);
      expect((await world.ledger.calls(alice, 2)).map((call) => call.id)).toEqual(['m', 'a']);
    });

    it('refuses what no correct caller sends, names the field and writes nothing', async () => {
      await open('a >b c');
      const call = callOf('call-1', endOf('a >b c'));
      const close = (changes: Parameters<typeof closeOf>[2]) => () =>
        world.ledger.closeTurn(closeOf(call, [reply()], changes));
      await expectRefusal(close({ call }), 'invalid_request', 'call.replies');
      await expectRefusal(close({ call: { ...call, id: '', replies: [reply().id] } }), 'invalid_request', 'call.id');
      await expectRefusal(
        close({ call: { ...call, conversation: 'c_other' } }),
        'invalid_request',
        'call.conversation',
      );
      const misplaced = nodeAfter(endOf('a'), '>d');
      await expectRefusal(() => world.ledger.closeTurn(closeOf(call, [misplaced])), 'invalid_request', 'replies');
      const homeless = closeOf(callOf('call-1', 'nobody'), [nodeAfter('nobody', '>d')]);
      await expectRefusal(() => world.ledger.closeTurn(homeless), 'node_not_found', 'head');
      const marks: Mark[] = [{ kind: 'latched', head: 'nobody', tokens: 1, scope: 's' }];
      await expectRefusal(close({ marks }), 'node_not_found', 'mark.head');
      await expectRefusal(close({ conversation: { ...alice, id: 'c_none' }, call: null }), 'conversation_not_found');
      const taken = { ...reply(), id: endOf('a') };
      await expectRefusal(() => world.ledger.closeTurn(closeOf(call, [taken])), 'invalid_request', 'replies');
    });
  });

  describe('matches and marks', () => {
    const close = (id: string, words: string, changes: Parameters<typeof callOf>[2]) =>
      world.ledger.closeTurn(closeOf(callOf(id, endOf(words), changes), [], { advanceHead: false }));
    const match = async (words: string, model = 'gpt-test') => (await open(words, { model })).match;

    it('the match is the one whose head lies deepest on this spine, whatever was closed last, SPEC 5.1', async () => {
      await open('a >b c >d e');
      await close('1', 'a >b c >d e', { estimatedTokens: 50, usage: usageOf(55) });
      await close('2', 'a', { estimatedTokens: 10, usage: usageOf(11) });
      await close('3', 'a >b c', { estimatedTokens: 30, usage: usageOf(33) });
      expect(await match('a >b c >d e >f g')).toEqual({ estimatedTokens: 50, measuredTokens: 55 });
      expect(await match('a >b c x')).toEqual({ estimatedTokens: 30, measuredTokens: 33 });
      expect(await match('a >b')).toEqual({ estimatedTokens: 10, measuredTokens: 11 });
      expect(await match('z')).toBeNull();
    });

    it('of two matches at one head the later one counts, and each model has its own, SPEC 5.1', async () => {
      await open('a');
      await close('2', 'a', { estimatedTokens: 10, usage: usageOf(11) });
      await close('1', 'a', { estimatedTokens: 10, usage: usageOf(12) });
      await close('3', 'a', { model: 'other', estimatedTokens: 10, usage: usageOf(20) });
      expect(await match('a')).toEqual({ estimatedTokens: 10, measuredTokens: 12 });
      expect(await match('a', 'other')).toEqual({ estimatedTokens: 10, measuredTokens: 20 });
      expect(await match('a', 'third')).toBeNull();
    });

    it('usage without an estimate, an estimate without usage, zero usage, prompts that were cut and unfinished calls calibrate nothing, SPEC 9.4', async () => {
      await open('a');
      await close('1', 'a', { usage: usageOf(11) });
      await close('2', 'a', { estimatedTokens: 10 });
      await close('3', 'a', { estimatedTokens: 10, usage: usageOf(null) });
      await close('4', 'a', { estimatedTokens: 10, usage: usageOf(0) });
      await close('5', 'a', { estimatedTokens: 10, usage: usageOf(11), outcome: 'failed' });
      await close('6', 'a', { estimatedTokens: 0, usage: usageOf(11) });
      await close('7', 'a', { estimatedTokens: 10, usage: usageOf(11), overflow: 'cut-prompt' });
      expect(await match('a >b')).toBeNull();
    });

    it('the deepest mark of each kind on this spine holds for every head that descends from it, SPEC 5.11', async () => {
      const mark = (kind: Mark['kind'], words: string, tokens: number): Mark => ({
        kind,
        head: endOf(words),
        tokens,
        scope: `s${tokens}`,
      });
      await open('a >b c >d e');
      await open('a >b x >y z');
      await world.ledger.closeTurn(
        closeOf(callOf('1', endOf('a >b x >y z')), [nodeAfter(endOf('a >b x >y z'), '>r')], {
          marks: [mark('overflowed', 'a >b x >y z >r', 9), mark('latched', 'a >b c >d', 4)],
        }),
      );
      await world.ledger.setMark(alice, mark('latched', 'a >b', 2));
      expect((await open('a >b c >d e')).marks).toEqual([mark('latched', 'a >b c >d', 4)]);
      expect((await open('a >b x >y z >r')).marks).toEqual([
        mark('latched', 'a >b', 2),
        mark('overflowed', 'a >b x >y z >r', 9),
      ]);
      expect((await open('a')).marks).toEqual([]);
      await world.ledger.setMark(alice, mark('latched', 'a >b', 7));
      expect((await open('a >b c')).marks).toEqual([mark('latched', 'a >b', 7)]);
    });

    it('are found however far back they lie and whatever other branches hold', async () => {
      const words = Array.from({ length: 300 }, (_, index) => `w${index}`);
      const mark: Mark = { kind: 'latched', head: endOf(words.slice(0, 2)), tokens: 1, scope: 's' };
      await world.ledger.openTurn(openOf(spineOf(words)));
      await world.ledger.setMark(alice, mark);
      for (const fork of [3, 60, 150, 280]) {
        const branch = [...words.slice(0, fork), 'fork'];
        await world.ledger.openTurn(openOf(spineOf(branch)));
        await world.ledger.setMark(alice, { ...mark, head: endOf(branch), scope: 'elsewhere' });
      }
      expect((await world.ledger.openTurn(openOf(spineOf(words)))).marks).toEqual([mark]);
    });

    it('a mark needs a chain node and a count', async () => {
      await open('a');
      await world.ledger.commitSummary(commitOf('s', idsOf('a'), 1));
      const mark: Mark = { kind: 'latched', head: 'summary_s', tokens: 1, scope: 's' };
      await expectRefusal(() => world.ledger.setMark(alice, mark), 'node_not_found', 'mark.head');
      await expectRefusal(
        () => world.ledger.setMark(alice, { ...mark, head: endOf('a'), tokens: -1 }),
        'invalid_request',
        'mark.tokens',
      );
      await expectRefusal(
        () => world.ledger.setMark({ ...alice, id: 'c_none' }, { ...mark, head: endOf('a') }),
        'conversation_not_found',
      );
    });
  });
}
