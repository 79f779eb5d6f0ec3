import { expect, describe, it } from 'vitest';
import { ROOT } from '../../../src/core/node.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter } from '../builders.js';
import type { World } from './world.js';

/** Moving HEAD, reading, and what another tenant sees. */
export function readingConformance(world: World): void {
  const { open, head, refusal, expectRefusal } = world;

  describe('moving HEAD', () => {
    it('goes where it is told, on any branch, SPEC 8.1', async () => {
      await open('a >b c');
      await open('a >x y');
      await world.ledger.moveHead(alice, endOf('a >b'), null);
      expect(await head()).toBe(endOf('a >b'));
      await world.ledger.moveHead(alice, endOf('a >x y'), endOf('a >b'));
      expect(await head()).toBe(endOf('a >x y'));
    });

    it('is refused for an unknown node, another HEAD than expected and an unknown conversation, SPEC 8.1', async () => {
      await open('a >b c');
      await expectRefusal(() => world.ledger.moveHead(alice, 'nobody', null), 'node_not_found', 'to');
      await expectRefusal(() => world.ledger.moveHead(alice, ROOT, null), 'node_not_found', 'to');
      await expectRefusal(() => world.ledger.moveHead(alice, endOf('a'), endOf('a >b')), 'head_moved', 'expected');
      await expectRefusal(
        () => world.ledger.moveHead({ ...alice, id: 'c_none' }, endOf('a'), null),
        'conversation_not_found',
      );
    });
  });

  describe('reading', () => {
    it('walks a spine from any node, or from HEAD, first node first, SPEC 2.1', async () => {
      await open('a >b c');
      await open('a >b x');
      const ids = async (from: string | null) =>
        (await world.ledger.spine(alice, from, 'spine')).nodes.map((node) => node.id);
      expect(await ids(null)).toEqual(idsOf('a >b x'));
      expect(await ids(endOf('a >b c'))).toEqual(idsOf('a >b c'));
      expect(await ids(endOf('a'))).toEqual(idsOf('a'));
      expect(await ids(ROOT)).toEqual([]);
      expect((await world.ledger.spine(alice, null, 'spine')).conversation).toEqual(
        await world.ledger.conversation(alice.id, null),
      );
      await expectRefusal(() => world.ledger.spine(alice, 'nobody', 'spine'), 'node_not_found', 'head');
      await expectRefusal(
        () => world.ledger.spine({ ...alice, id: 'c_none' }, null, 'spine'),
        'conversation_not_found',
      );
    });

    it('pages through nodes in the order written', async () => {
      await open('a >b c');
      await open('a >b x');
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b x'), 2));
      const first = await world.ledger.nodes(alice, 0, 3);
      expect(first.map((node) => node.id)).toEqual(idsOf('a >b c'));
      const rest = await world.ledger.nodes(alice, first.at(-1)?.seq ?? 0, 3);
      expect(rest.map((node) => node.id)).toEqual([endOf('a >b x'), 'summary_s']);
      expect(await world.ledger.nodes(alice, rest.at(-1)?.seq ?? 0, 3)).toEqual([]);
      await expectRefusal(() => world.ledger.nodes(alice, 0, 0), 'invalid_request', 'limit');
      await expectRefusal(() => world.ledger.calls(alice, Number.NaN), 'invalid_request', 'limit');
      await expectRefusal(() => world.ledger.list(null, 1.5, null), 'invalid_request', 'limit');
    });

    it('knows nothing of a conversation that is not there', async () => {
      expect(await world.ledger.conversation(alice.id, null)).toBeNull();
      expect(await world.ledger.nodes(alice, 0, 10)).toEqual([]);
      expect(await world.ledger.node(alice, endOf('a'))).toBeNull();
      expect(await world.ledger.call(alice, 'call-1')).toBeNull();
      expect(await world.ledger.calls(alice, 10)).toEqual([]);
      expect(await world.ledger.callsOfReply(alice, 'r')).toEqual([]);
      expect(await world.ledger.instruction(alice, 'd')).toBeNull();
      expect(await world.ledger.list(null, 10, null)).toEqual([]);
    });
  });

  describe('tenants', () => {
    const mallory = { ...alice, tenant: 'mallory' };

    it("never read another's conversation, SPEC 1.1", async () => {
      await open('a', { instructions: [{ digest: 'd1', content: 'secret' }] });
      await world.ledger.closeTurn(closeOf(callOf('call-1', endOf('a')), [nodeAfter(endOf('a'), '>b')]));
      expect(await world.ledger.conversation(alice.id, 'mallory')).toBeNull();
      expect(await world.ledger.nodes(mallory, 0, 10)).toEqual([]);
      expect(await world.ledger.node(mallory, endOf('a'))).toBeNull();
      expect(await world.ledger.call(mallory, 'call-1')).toBeNull();
      expect(await world.ledger.calls(mallory, 10)).toEqual([]);
      expect(await world.ledger.callsOfReply(mallory, endOf('a >b'))).toEqual([]);
      expect(await world.ledger.instruction(mallory, 'd1')).toBeNull();
      expect(await world.ledger.list('mallory', 10, null)).toEqual([]);
      expect(await refusal(world.ledger.spine(mallory, null, 'spine'))).toMatchObject({
        code: 'conversation_not_found',
      });
    });

    it("never write into another's conversation, SPEC 1.1", async () => {
      await open('a >b');
      await expectRefusal(() => open('a >b c', { conversation: mallory }), 'conversation_not_found');
      await expectRefusal(
        () => world.ledger.closeTurn(closeOf(callOf('1', endOf('a >b')), [], { conversation: mallory })),
        'conversation_not_found',
      );
      await expectRefusal(
        () => world.ledger.commitSummary(commitOf('s', idsOf('a >b'), 1, { conversation: mallory })),
        'conversation_not_found',
      );
      await expectRefusal(() => world.ledger.moveHead(mallory, endOf('a'), null), 'conversation_not_found');
      await expectRefusal(
        () => world.ledger.setMark(mallory, { kind: 'latched', head: endOf('a'), tokens: 1, scope: 's' }),
        'conversation_not_found',
      );
    });

    it('meet in the same nodes only inside one conversation', async () => {
      await open('a >b');
      const bob = { ...alice, tenant: 'bob', id: 'c_bob' };
      expect((await open('a >b c', { conversation: bob })).known).toBe(0);
      expect(await world.ledger.nodes(alice, 0, 10)).toHaveLength(2);
    });
  });
}
