import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../src/core/node.js';
import type { Mark } from '../../../src/core/ports.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf } from '../builders.js';
import type { World } from './world.js';

const nobody = { ...alice, id: 'c_none' };
const mallory = { ...alice, tenant: 'mallory' };

/** Tombstones, their lifting, and erasing (SPEC 2.6). */
export function deletionConformance(world: World): void {
  const { open, head, expectRefusal } = world;
  const deleted = async () =>
    (await world.ledger.nodes(alice, 0, 1_000)).filter((node) => node.deletedAt !== null).map((node) => node.id);
  const stored = async () => (await world.ledger.nodes(alice, 0, 1_000)).map((node) => node.id);
  const entry = async () => (await world.ledger.oldest(null, 1))[0];
  const conversation = () => world.ledger.conversation(alice.id, null);

  describe('deleting a branch', () => {
    it('puts a tombstone on a node and all behind it, and HEAD steps to its predecessor, SPEC 2.6, 8.1', async () => {
      await open('a >b x >y');
      await open('a >b c >d e');
      world.now = 2_000;
      expect(await world.ledger.deleteBranch(alice, endOf('a >b c'), null)).toEqual({ nodes: 3, head: endOf('a >b') });
      expect(await deleted()).toEqual(idsOf('a >b c >d e').slice(2));
      expect(await world.ledger.node(alice, endOf('a >b c >d'))).toMatchObject({ deletedAt: 2_000, createdAt: 1_000 });
      expect(await conversation()).toMatchObject({ head: endOf('a >b'), usedAt: 1_000, deletedAt: null });
      expect(await entry()).toMatchObject({ nodes: 7 });
    });

    it('leaves HEAD where it is on another branch, and keeps the earlier time of what was deleted before', async () => {
      await open('a >b c >d e');
      await open('a >b x');
      world.now = 2_000;
      expect(await world.ledger.deleteBranch(alice, endOf('a >b c >d'), null)).toEqual({
        nodes: 2,
        head: endOf('a >b x'),
      });
      world.now = 3_000;
      expect(await world.ledger.deleteBranch(alice, endOf('a >b c'), endOf('a >b x'))).toEqual({
        nodes: 1,
        head: endOf('a >b x'),
      });
      expect(await world.ledger.node(alice, endOf('a >b c'))).toMatchObject({ deletedAt: 3_000 });
      expect(await world.ledger.node(alice, endOf('a >b c >d e'))).toMatchObject({ deletedAt: 2_000 });
    });

    it('from the first node leaves HEAD at ROOT', async () => {
      await open('a >b');
      expect(await world.ledger.deleteBranch(alice, endOf('a'), null)).toEqual({ nodes: 2, head: ROOT });
      expect((await world.ledger.spine(alice, null, 'spine')).nodes).toEqual([]);
    });

    it('is refused for what is not there, a summary, what was deleted, and another HEAD than expected', async () => {
      await open('a >b c');
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b c'), 1));
      await world.ledger.deleteBranch(alice, endOf('a >b c'), null);
      const remove = (from: string, expected: string | null = null, key = alice) =>
        world.ledger.deleteBranch(key, from, expected);
      await expectRefusal(() => remove('nobody'), 'node_not_found', 'from');
      await expectRefusal(() => remove(ROOT), 'node_not_found', 'from');
      await expectRefusal(() => remove('summary_s'), 'node_not_found', 'from');
      await expectRefusal(() => remove(endOf('a >b c')), 'node_not_found', 'from');
      await expectRefusal(() => remove(endOf('a >b'), endOf('a')), 'head_moved', 'expected');
      await expectRefusal(() => remove(endOf('a'), null, nobody), 'conversation_not_found');
      await expectRefusal(() => remove(endOf('a'), null, mallory), 'conversation_not_found');
    });

    it('takes it from every reader by name: no spine ends there, and HEAD cannot go there, SPEC 8.1', async () => {
      await open('a >b c >d');
      await world.ledger.deleteBranch(alice, endOf('a >b c'), null);
      for (const words of ['a >b c', 'a >b c >d']) {
        await expectRefusal(() => world.ledger.spine(alice, endOf(words), 'spine'), 'node_not_found', 'head');
        await expectRefusal(() => world.ledger.moveHead(alice, endOf(words), null), 'node_not_found', 'to');
      }
      expect((await world.ledger.spine(alice, endOf('a >b'), 'spine')).nodes).toHaveLength(2);
    });

    it('leaves a reply that comes behind it deleted too, and HEAD where it is, SPEC 2.6', async () => {
      await open('a >b c');
      world.now = 2_000;
      await world.ledger.deleteBranch(alice, endOf('a >b c'), null);
      world.now = 3_000;
      const items = spineOf('a >b c >d >e').slice(3);
      const close = closeOf(callOf('call-1', endOf('a >b c')), items);
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >b') });
      expect(await world.ledger.node(alice, endOf('a >b c >d'))).toMatchObject({ createdAt: 3_000, deletedAt: 2_000 });
      expect(await world.ledger.node(alice, endOf('a >b c >d >e'))).toMatchObject({ deletedAt: 2_000 });
      expect(await world.ledger.call(alice, 'call-1')).not.toBeNull();
    });

    it('makes the commit of a summary stale if a covered node or the frozen head is among it, SPEC 5.8', async () => {
      await open('a >b c >d e');
      const chain = idsOf('a >b c >d e');
      const stale = { outcome: 'stale', reason: expect.any(String) };
      await world.ledger.deleteBranch(alice, endOf('a >b c >d e'), null);
      expect(await world.ledger.commitSummary(commitOf('s', chain, 2))).toEqual(stale);
      await world.ledger.deleteBranch(alice, endOf('a >b'), null);
      expect(await world.ledger.commitSummary(commitOf('s', chain.slice(0, 4), 2))).toEqual(stale);
      await world.ledger.restoreBranch(alice, endOf('a >b c >d e'));
      expect(await world.ledger.commitSummary(commitOf('s', chain, 2))).toEqual({ outcome: 'committed' });
    });
  });

  describe('a tombstone', () => {
    it('is lifted from exactly the nodes that a request carries, SPEC 2.3', async () => {
      await open('a >b c >d e');
      await open('a >b c >d x');
      await world.ledger.deleteBranch(alice, endOf('a >b'), null);
      world.now = 2_000;
      const opened = await open('a >b c');
      expect(opened).toMatchObject({ known: 3, head: endOf('a >b c') });
      expect(await deleted()).toEqual([...idsOf('a >b c >d e').slice(3), endOf('a >b c >d x')]);
      expect(await conversation()).toMatchObject({ usedAt: 2_000 });
    });

    it('is lifted by a spawned turn too, which leaves HEAD, and before what it adds, SPEC 2.3, 8.3', async () => {
      await open('a >b c >d');
      await world.ledger.deleteBranch(alice, endOf('a >b'), null);
      expect(await open('a >b c new', { advanceHead: false })).toMatchObject({ known: 3, head: endOf('a') });
      expect(await deleted()).toEqual([endOf('a >b c >d')]);
    });

    it('stays when the turn is refused', async () => {
      await open('a >b c');
      await world.ledger.deleteBranch(alice, endOf('a >b'), null);
      const failing = openOf(spineOf('a >b c >d'), {
        node: () => {
          throw new RangeError('cannot build');
        },
      });
      await expect(world.ledger.openTurn(failing)).rejects.toThrow('cannot build');
      await expectRefusal(() => open('a >b c', { expectedHead: ROOT }), 'head_moved', 'expectedHead');
      expect(await deleted()).toEqual(idsOf('a >b c').slice(1));
    });

    it('is lifted from a reply that is relayed again, and HEAD moves to it', async () => {
      await open('a >b c');
      await world.ledger.deleteBranch(alice, endOf('a >b'), null);
      const close = closeOf(callOf('call-1', endOf('a')), [nodeAfter(endOf('a'), '>b')]);
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >b') });
      expect(await deleted()).toEqual([endOf('a >b c')]);
    });

    it('leaves summaries, marks and calls, which serve again once it is lifted', async () => {
      await open('a >b c >d e');
      const mark: Mark = { kind: 'latched', head: endOf('a >b c'), tokens: 1, scope: 's' };
      await world.ledger.setMark(alice, mark);
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b c >d e'), 3));
      await world.ledger.deleteBranch(alice, endOf('a >b c'), null);
      expect(await conversation()).toMatchObject({ activeSummary: 'summary_s' });
      expect(await deleted()).not.toContain('summary_s');
      expect(await open('a >b c >d e')).toMatchObject({ active: { id: 'summary_s' }, marks: [mark] });
    });
  });

  describe('restoring a branch', () => {
    it('lifts the tombstones of a node, of all behind it and of all before it; HEAD stays, SPEC 2.6', async () => {
      await open('a >b c >d e');
      await open('a >b x');
      await world.ledger.deleteBranch(alice, endOf('a >b'), null);
      expect(await world.ledger.restoreBranch(alice, endOf('a >b c'))).toEqual({ nodes: 4 });
      expect(await deleted()).toEqual([endOf('a >b x')]);
      expect(await head()).toBe(endOf('a'));
      expect(await world.ledger.restoreBranch(alice, endOf('a >b c'))).toEqual({ nodes: 0 });
      expect((await world.ledger.spine(alice, endOf('a >b c >d e'), 'spine')).nodes).toHaveLength(5);
    });

    it('is refused for what is not there and for a summary', async () => {
      await open('a >b');
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b'), 1));
      await expectRefusal(() => world.ledger.restoreBranch(alice, 'nobody'), 'node_not_found', 'node');
      await expectRefusal(() => world.ledger.restoreBranch(alice, 'summary_s'), 'node_not_found', 'node');
      await expectRefusal(() => world.ledger.restoreBranch(nobody, endOf('a')), 'conversation_not_found');
      await expectRefusal(() => world.ledger.restoreBranch(mallory, endOf('a')), 'conversation_not_found');
    });
  });

  describe('erasing a branch', () => {
    it('keeps nothing of it, and HEAD steps to its predecessor, SPEC 2.6, 8.1', async () => {
      await open('a >b x');
      await open('a >b c >d e');
      const before = await entry();
      expect(await world.ledger.eraseBranch(alice, endOf('a >b c'), endOf('a >b c >d e'))).toEqual({
        nodes: 3,
        head: endOf('a >b'),
      });
      expect(await stored()).toEqual([...idsOf('a >b x')]);
      expect(await world.ledger.node(alice, endOf('a >b c'))).toBeNull();
      const gone = spineOf('a >b c >d e').slice(2);
      const bytes = (before?.bytes ?? 0) - gone.reduce((sum, node) => sum + node.content.length, 0);
      expect(await entry()).toMatchObject({ nodes: 3, bytes });
      expect((await open('a >b c >d e')).known).toBe(2);
    });

    it('never gives a seq again, so that a reader of nodes misses none, SPEC 2.1', async () => {
      await open('a >b c');
      await world.ledger.eraseBranch(alice, endOf('a >b c'), null);
      await open('a >b x');
      expect((await world.ledger.nodes(alice, 0, 10)).map((node) => node.seq)).toEqual([1, 2, 4]);
      expect((await world.ledger.nodes(alice, 3, 10)).map((node) => node.id)).toEqual([endOf('a >b x')]);
    });

    it('takes a branch that was deleted before, too', async () => {
      await open('a >b c >d');
      await world.ledger.deleteBranch(alice, endOf('a >b c'), null);
      expect(await world.ledger.eraseBranch(alice, endOf('a >b c >d'), null)).toEqual({
        nodes: 1,
        head: endOf('a >b'),
      });
      expect(await world.ledger.eraseBranch(alice, endOf('a >b c'), null)).toEqual({ nodes: 1, head: endOf('a >b') });
      expect(await stored()).toEqual(idsOf('a >b'));
    });

    it('takes the summaries that cover one of its nodes, and no active one is named that is gone, SPEC 2.6', async () => {
      await open('a >b c >d e');
      const chain = idsOf('a >b c >d e');
      await world.ledger.commitSummary(commitOf('short', chain, 2));
      await world.ledger.commitSummary(commitOf('long', chain, 4, { expectedActive: 'summary_short' }));
      await world.ledger.eraseBranch(alice, endOf('a >b c >d'), null);
      expect(await stored()).toEqual([...idsOf('a >b c'), 'summary_short']);
      expect(await entry()).toMatchObject({ activeSummary: null, nodes: 4, summaries: 1 });
      expect((await open('a >b c >d e')).active?.id).toBe('summary_short');
      expect((await open('a >b c >d e', { policy: 'session' })).active).toBeNull();
    });

    it('leaves an active summary that covers none of its nodes', async () => {
      await open('a >b c >d e');
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b c >d e'), 2));
      await world.ledger.eraseBranch(alice, endOf('a >b c'), null);
      expect(await conversation()).toMatchObject({ activeSummary: 'summary_s' });
    });

    it('takes the marks on its nodes, the calls that read them to their end, and what only those name, SPEC 2.6', async () => {
      const instructions = ['shared', 'own', 'unnamed'].map((digest) => ({ digest, content: digest }));
      await open('a >b c', { instructions });
      const close = (id: string, words: string, digests: readonly string[], reduction: string) => {
        const call = callOf(id, endOf(words));
        const manifest = { ...call.manifest, instructions: digests, reduction };
        return world.ledger.closeTurn(
          closeOf({ ...call, manifest }, [nodeAfter(endOf(words), '>r')], {
            reduction: { digest: reduction, content: `reduced ${reduction}` },
            marks: [{ kind: 'latched', head: endOf(words), tokens: 1, scope: 's' }],
          }),
        );
      };
      await close('stays', 'a', ['shared'], 'r-stays');
      await close('goes', 'a >b c', ['shared', 'own'], 'r-goes');
      await close('goes too', 'a >b c', ['own'], 'r-stays');
      await world.ledger.eraseBranch(alice, endOf('a >b'), null);

      expect((await world.ledger.calls(alice, 10)).map((call) => call.id)).toEqual(['stays']);
      expect(await world.ledger.call(alice, 'goes')).toBeNull();
      expect((await world.ledger.callsOfReply(alice, endOf('a >r'))).map((call) => call.id)).toEqual(['stays']);
      const kept = await Promise.all(
        ['shared', 'own', 'unnamed', 'r-stays', 'r-goes'].map((digest) => world.ledger.instruction(alice, digest)),
      );
      expect(kept.map((instruction) => instruction?.digest ?? null)).toEqual([
        'shared',
        null,
        'unnamed',
        'r-stays',
        null,
      ]);
      const contents = [...(await world.ledger.nodes(alice, 0, 10)), ...kept.filter((one) => one !== null)];
      const bytes = contents.reduce((sum, { content }) => sum + content.length, 0);
      expect(await entry()).toMatchObject({ calls: 1, bytes });
      expect((await open('a >b c')).marks).toEqual([{ kind: 'latched', head: endOf('a'), tokens: 1, scope: 's' }]);
    });

    it('leaves calls in the order closed when more come later', async () => {
      await open('a >b c');
      const close = (id: string, words: string) => world.ledger.closeTurn(closeOf(callOf(id, endOf(words)), []));
      await close('1', 'a');
      await close('2', 'a >b c');
      await close('3', 'a');
      await world.ledger.eraseBranch(alice, endOf('a >b'), null);
      await close('0', 'a');
      expect((await world.ledger.calls(alice, 10)).map((call) => call.id)).toEqual(['1', '3', '0']);
      expect(await entry()).toMatchObject({ calls: 3 });
    });

    it('takes the references to its nodes', async () => {
      await open('a >b c >d');
      const to = (id: string, words: string) => ({ id, conversation: alice.id, node: endOf(words) });
      await world.ledger.refer('alice', [to('resp_1', 'a >b'), to('resp_2', 'a >b c >d')]);
      await world.ledger.eraseBranch(alice, endOf('a >b c'), null);
      expect([...(await world.ledger.resolve('alice', ['resp_1', 'resp_2'])).keys()]).toEqual(['resp_1']);
    });

    it('is refused for what is not there, a summary and another HEAD than expected', async () => {
      await open('a >b c');
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b c'), 1));
      const erase = (from: string, expected: string | null = null, key = alice) =>
        world.ledger.eraseBranch(key, from, expected);
      await expectRefusal(() => erase('nobody'), 'node_not_found', 'from');
      await expectRefusal(() => erase('summary_s'), 'node_not_found', 'from');
      await expectRefusal(() => erase(endOf('a >b'), endOf('a')), 'head_moved', 'expected');
      await expectRefusal(() => erase(endOf('a'), null, nobody), 'conversation_not_found');
      await expectRefusal(() => erase(endOf('a'), null, mallory), 'conversation_not_found');
    });

    it('makes the reply of a turn that was under way there not found', async () => {
      await open('a >b c');
      await world.ledger.eraseBranch(alice, endOf('a >b c'), null);
      const close = closeOf(callOf('call-1', endOf('a >b c')), [nodeAfter(endOf('a >b c'), '>d')]);
      await expectRefusal(() => world.ledger.closeTurn(close), 'node_not_found', 'head');
    });
  });

  describe('deleting a conversation', () => {
    it('hides it from the list and keeps all of it, until it is restored, SPEC 2.6', async () => {
      await open('a >b c');
      world.now = 2_000;
      await world.ledger.deleteConversation(alice);
      world.now = 3_000;
      await world.ledger.deleteConversation(alice);
      expect(await conversation()).toMatchObject({ deletedAt: 2_000, usedAt: 1_000, head: endOf('a >b c') });
      expect(await world.ledger.list(null, 10, null)).toEqual([]);
      expect(await stored()).toEqual(idsOf('a >b c'));
      expect(await deleted()).toEqual([]);
      await world.ledger.restoreConversation(alice);
      await world.ledger.restoreConversation(alice);
      expect(await conversation()).toMatchObject({ deletedAt: null, usedAt: 1_000 });
      expect(await world.ledger.list(null, 10, null)).toHaveLength(1);
    });

    it('ends with the next turn that carries its history, SPEC 2.3', async () => {
      await open('a >b c');
      await world.ledger.deleteConversation(alice);
      world.now = 2_000;
      expect(await open('a >b c')).toMatchObject({ known: 3 });
      expect(await conversation()).toMatchObject({ deletedAt: null, usedAt: 2_000 });
    });

    it('lets a turn under way record its reply and no summary, SPEC 2.4, 5.8', async () => {
      await open('a >b c');
      await world.ledger.deleteConversation(alice);
      const close = closeOf(callOf('call-1', endOf('a >b c')), [nodeAfter(endOf('a >b c'), '>d')]);
      expect(await world.ledger.closeTurn(close)).toEqual({ head: endOf('a >b c >d') });
      expect(await conversation()).toMatchObject({ deletedAt: 1_000 });
      expect(await world.ledger.commitSummary(commitOf('s', idsOf('a >b c'), 2))).toMatchObject({ outcome: 'stale' });
    });

    it('is refused for what is not there or another tenant’s, SPEC 1.1', async () => {
      await open('a');
      for (const key of [nobody, mallory]) {
        await expectRefusal(() => world.ledger.deleteConversation(key), 'conversation_not_found');
        await expectRefusal(() => world.ledger.restoreConversation(key), 'conversation_not_found');
      }
    });
  });

  describe('erasing a conversation', () => {
    it('keeps nothing of it and touches no other, SPEC 2.6', async () => {
      const instructions = [{ digest: 'd1', content: 'Be brief.' }];
      const other = { ...alice, id: 'c_other' };
      for (const key of [alice, other]) {
        await open('a >b c', { instructions, conversation: key });
        const call = { ...callOf('call-1', endOf('a >b c')), conversation: key.id };
        const marks: Mark[] = [{ kind: 'latched', head: endOf('a'), tokens: 1, scope: 's' }];
        const items = spineOf('a >b c >d >e').slice(3);
        await world.ledger.closeTurn(closeOf(call, items, { conversation: key, marks }));
        await world.ledger.commitSummary(commitOf('s', idsOf('a >b c'), 2, { conversation: key }));
      }
      await world.ledger.acquireLease(alice, idsOf('a >b c'), 1_000);
      const before = [await world.ledger.nodes(other, 0, 10), await world.ledger.calls(other, 10)];
      expect(await world.ledger.eraseConversation(alice, null)).toBe(true);
      expect(await conversation()).toBeNull();
      expect(await stored()).toEqual([]);
      expect(await world.ledger.calls(alice, 10)).toEqual([]);
      expect(await world.ledger.instruction(alice, 'd1')).toBeNull();
      expect(await world.ledger.oldest(null, 10)).toMatchObject([{ id: 'c_other' }]);
      expect([await world.ledger.nodes(other, 0, 10), await world.ledger.calls(other, 10)]).toEqual(before);

      expect(await open('a >b c >d >e')).toEqual({
        head: endOf('a >b c >d >e'),
        known: 0,
        active: null,
        commands: [],
        counts: new Map(),
        match: null,
        marks: [],
      });
      expect(await world.ledger.callsOfReply(alice, endOf('a >b c >d >e'))).toEqual([]);
      expect(await world.ledger.acquireLease(alice, idsOf('a >b c'), 1_000)).not.toBeNull();
    });

    it('takes a deleted one too, and only one that was not used since, if so asked', async () => {
      world.now = 5_000;
      await open('a');
      await world.ledger.deleteConversation(alice);
      expect(await world.ledger.eraseConversation(alice, 5_000)).toBe(false);
      expect(await conversation()).not.toBeNull();
      expect(await world.ledger.eraseConversation(alice, 5_001)).toBe(true);
      expect(await world.ledger.eraseConversation(alice, null)).toBe(false);
    });

    it('does nothing to what is not there or another tenant’s, SPEC 1.1', async () => {
      await open('a');
      expect(await world.ledger.eraseConversation(nobody, null)).toBe(false);
      expect(await world.ledger.eraseConversation(mallory, null)).toBe(false);
      expect(await stored()).toEqual(idsOf('a'));
    });
  });
}
