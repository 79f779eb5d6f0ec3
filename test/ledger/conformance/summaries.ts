import { expect, describe, it } from 'vitest';
import { ROOT, type NewNode } from '../../../src/core/node.js';
import { alice, callOf, closeOf, commitOf, idsOf, nodeAfter, openOf, summaryNode } from '../builders.js';
import type { World } from './world.js';

/** Committing a summary. */
export function summariesConformance(world: World): void {
  const { open, head, everything, expectRefusal } = world;

  const stored = async () => ({
    nodes: await world.ledger.nodes(alice, 0, 100),
    conversations: await world.ledger.list(null, 10, null),
  });

  describe('committing a summary', () => {
    const chain = idsOf('a >b c >d e');

    it('writes one node and the pointer, and moves no HEAD, SPEC 3.1, 3.5, 8.5', async () => {
      await open('a >b c >d e');
      const before = await stored();
      world.now = 4_000;
      const commit = commitOf('s', chain, 4);
      expect(await world.ledger.commitSummary(commit)).toEqual({ outcome: 'committed' });
      const after = await stored();
      expect(after.nodes).toEqual([
        ...before.nodes,
        { ...commit.node, conversation: alice.id, seq: 6, createdAt: 4_000, deletedAt: null },
      ]);
      expect(after.conversations).toEqual(
        before.conversations.map((entry) => ({
          ...entry,
          activeSummary: 'summary_s',
          nodes: 6,
          summaries: 1,
          bytes: entry.bytes + commit.node.content.length,
        })),
      );
      expect(await head()).toBe(chain[4]);
      const active = {
        id: 'summary_s',
        first: chain[0],
        last: chain[3],
        count: 4,
        content: commit.node.content,
        tokens: 40,
        tokenizer: 'o200k_base',
      };
      expect((await open('a >b c >d e')).active).toEqual(active);
      expect((await world.ledger.spine(alice, null, 'spine')).active).toEqual(active);
    });

    it('is active only where its whole segment lies on the spine, SPEC 4.2', async () => {
      await open('a >b c >d e');
      await world.ledger.commitSummary(commitOf('s', chain, 4));
      for (const policy of ['spine', 'session'] as const) {
        expect((await open('a >b c >d e >f', { policy })).active?.id).toBe('summary_s');
        expect((await open('a >b c >d x', { policy })).active?.id).toBe('summary_s');
        expect((await open('a >b c', { policy })).active).toBeNull();
        expect((await open('a >b x >y z', { policy })).active).toBeNull();
        expect((await world.ledger.spine(alice, chain[2] ?? '', policy)).active).toBeNull();
      }
    });

    it('under spine, the longest on this spine is active and branches do not undo each other, SPEC 3.4', async () => {
      await open('a >b c >d e');
      await world.ledger.commitSummary(commitOf('one', chain, 2));
      await world.ledger.commitSummary(commitOf('two', chain, 4, { expectedActive: 'summary_one' }));
      await open('a >b x >y z');
      const other = idsOf('a >b x >y z');
      expect((await open('a >b x >y z')).active?.id).toBe('summary_one');
      await world.ledger.commitSummary(commitOf('three', other, 3, { expectedActive: 'summary_one' }));
      expect((await open('a >b c >d e')).active?.id).toBe('summary_two');
      expect((await open('a >b x >y z')).active?.id).toBe('summary_three');
      expect(await world.ledger.conversation(alice.id, null)).toMatchObject({ activeSummary: 'summary_three' });
    });

    it('under session, one is named and older ones are never consulted again, SPEC 3.4', async () => {
      await open('a >b c >d e');
      await world.ledger.commitSummary(commitOf('one', chain, 4, { policy: 'session' }));
      await open('a >b x >y z');
      const other = idsOf('a >b x >y z');
      expect(await world.ledger.commitSummary(commitOf('two', other, 3, { policy: 'session' }))).toEqual({
        outcome: 'committed',
      });
      expect((await open('a >b x >y z', { policy: 'session' })).active?.id).toBe('summary_two');
      expect((await open('a >b c >d e', { policy: 'session' })).active).toBeNull();
      expect((await open('a >b c >d e', { policy: 'spine' })).active?.id).toBe('summary_one');
    });

    it('of two that cover alike, the one written last is active under spine, SPEC 3.4', async () => {
      await open('a >b c >d e');
      await world.ledger.commitSummary(commitOf('zzz', chain, 2));
      await world.ledger.commitSummary(commitOf('aaa', chain, 2, { expectedActive: 'summary_zzz' }));
      expect((await open('a >b c >d e')).active?.id).toBe('summary_aaa');
    });

    it('of two racing on one spine, one wins and the other is stale, SPEC 5.8', async () => {
      await open('a >b c >d e');
      const outcomes = await Promise.all([
        world.ledger.commitSummary(commitOf('one', chain, 2)),
        world.ledger.commitSummary(commitOf('two', chain, 4)),
      ]);
      expect(outcomes.map((result) => result.outcome).toSorted()).toEqual(['committed', 'stale']);
      expect(
        (await world.ledger.nodes(alice, 0, 10)).filter((node) => node.role === 'llm' && node.name !== null),
      ).toHaveLength(1);
    });

    it('is stale, and writes nothing, when what it stands on changed, SPEC 5.8', async () => {
      await open('a >b c >d e');
      await world.ledger.commitSummary(commitOf('one', chain, 2));
      const stale = async (...args: Parameters<typeof commitOf>) => {
        const before = await everything();
        expect(await world.ledger.commitSummary(commitOf(...args))).toEqual({
          outcome: 'stale',
          reason: expect.any(String),
        });
        expect(await everything()).toEqual(before);
      };
      const expectedActive = 'summary_one';
      await stale('two', chain, 4);
      await stale('two', chain, 4, { expectedActive: 'summary_other' });
      await stale('two', [...chain.slice(0, 3), 'nobody', 'none'], 4, { expectedActive });
      await stale('two', [...chain, 'nobody'], 4, { expectedActive });
      await stale('one', chain, 4, { expectedActive });
      await stale('two', ['summary_one', ...chain.slice(1)], 4);
      const covering = (covered: readonly string[]) => ({ expectedActive, node: summaryNode('two', covered) });
      await stale('two', chain, 4, covering(chain.slice(1, 4)));
      await stale('two', chain, 4, covering([chain[0] ?? '', chain[2] ?? '']));
      await stale('two', chain, 4, covering([...chain, 'beyond']));
      const mixed = [chain[0] ?? '', idsOf('x >b')[1] ?? '', ...chain.slice(2)];
      await open('x >b');
      await stale('two', mixed, 2);
      expect(await world.ledger.commitSummary(commitOf('two', chain, 4, { expectedActive }))).toEqual({
        outcome: 'committed',
      });
    });

    it('manual: HEAD may have advanced but must still descend through the segment, SPEC 5.8', async () => {
      await open('a >b c >d e >f g');
      const commit = commitOf('s', chain, 4, { headMustDescend: true });
      await world.ledger.moveHead(alice, chain[2] ?? '', null);
      expect(await world.ledger.commitSummary(commit)).toMatchObject({ outcome: 'stale' });
      await open('a >b c x >y z');
      expect(await world.ledger.commitSummary(commit)).toMatchObject({ outcome: 'stale' });
      expect(
        await world.ledger.commitSummary({
          ...commit,
          headMustDescend: false,
          chain: chain.slice(0, 4),
          node: summaryNode('auto', chain.slice(0, 1)),
        }),
      ).toEqual({ outcome: 'committed' });
      await world.ledger.moveHead(alice, chain[3] ?? '', null);
      expect(await world.ledger.commitSummary({ ...commit, expectedActive: 'summary_auto' })).toEqual({
        outcome: 'committed',
      });
      expect(await head()).toBe(chain[3]);
    });

    it('refuses a node that is no summary node, SPEC 3.1', async () => {
      await open('a >b c >d e');
      const commit = commitOf('s', chain, 2);
      const withNode = (changes: Partial<NewNode>) => () =>
        world.ledger.commitSummary({ ...commit, node: { ...commit.node, ...changes, metadata: commit.node.metadata } });
      await expectRefusal(withNode({ id: 's' }), 'invalid_request', 'node.id');
      await expectRefusal(withNode({ role: 'user' }), 'invalid_request', 'node.role');
      await expectRefusal(withNode({ name: null }), 'invalid_request', 'node.name');
      await expectRefusal(withNode({ content: 'text' }), 'invalid_request', 'node.content');
      await expectRefusal(withNode({ predecessor: chain[0] ?? '' }), 'invalid_request', 'node.predecessor');
      await expectRefusal(withNode({ tokenizer: null }), 'invalid_request', 'node.tokens');
      await expectRefusal(
        () => world.ledger.commitSummary(commitOf('s', chain, 0)),
        'invalid_request',
        'node.metadata.covers_ids',
      );
      await expectRefusal(() => world.ledger.commitSummary(commitOf('s', [], 0)), 'invalid_request', 'chain');
      const miscounted = { ...commit.node, metadata: { ...commit.node.metadata, covered_count: 5 } };
      await expectRefusal(
        () => world.ledger.commitSummary({ ...commit, node: miscounted }),
        'invalid_request',
        'node.metadata.covered_count',
      );
      await expectRefusal(
        () => world.ledger.commitSummary({ ...commit, conversation: { ...alice, id: 'c_none' } }),
        'conversation_not_found',
      );
    });

    it('never stands in a chain, is never HEAD and is no reply, SPEC 3.2, 8.1', async () => {
      await open('a >b c >d e');
      await world.ledger.commitSummary(commitOf('s', chain, 2));
      const { node } = commitOf('s', chain, 2);
      await expectRefusal(() => world.ledger.openTurn(openOf([node])), 'invalid_request', 'chain');
      await expectRefusal(() => world.ledger.moveHead(alice, node.id, null), 'node_not_found', 'to');
      await expectRefusal(() => world.ledger.spine(alice, node.id, 'spine'), 'node_not_found', 'head');
      await expectRefusal(
        () => world.ledger.closeTurn(closeOf(null, [{ ...nodeAfter(ROOT, 'x'), id: node.id }])),
        'node_not_found',
        'head',
      );
      await expectRefusal(
        () => world.ledger.closeTurn(closeOf(callOf('1', node.id), [nodeAfter(node.id, '>x')])),
        'node_not_found',
        'head',
      );
    });
  });
}
