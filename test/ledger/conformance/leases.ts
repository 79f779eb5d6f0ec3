import { describe, expect, it } from 'vitest';
import type { Lease } from '../../../src/core/ports.js';
import { alice, commitOf, endOf, idsOf } from '../builders.js';
import type { World } from './world.js';

const nobody = { ...alice, id: 'c_none' };
const mallory = { ...alice, tenant: 'mallory' };

/** The right to compact a spine (SPEC 5.11). */
export function leasesConformance(world: World): void {
  const { open, expectRefusal } = world;
  const acquire = (words: string, durationMs = 1_000) => world.ledger.acquireLease(alice, idsOf(words), durationMs);
  const granted = async (words: string, durationMs = 1_000): Promise<Lease> => {
    const lease = await acquire(words, durationMs);
    if (lease === null) throw new Error('no lease was given');
    return lease;
  };
  const commit = (id: string, lease: Lease) =>
    world.ledger.commitSummary(commitOf(id, idsOf('a >b c >d e'), 2, { lease }));
  const lost = { outcome: 'stale', reason: 'the lease was lost' };

  describe('a lease', () => {
    it('is given to one at a time for a spine, until it is released, SPEC 5.11', async () => {
      await open('a >b c');
      const lease = await granted('a >b c');
      expect(lease.head).toBe(endOf('a >b c'));
      expect(await acquire('a >b c')).toBeNull();
      expect(await acquire('a >b c >d e')).toBeNull();
      await world.ledger.releaseLease(alice, lease);
      expect(await acquire('a >b c >d e')).not.toBeNull();
    });

    it('of two who ask at once, is given to one', async () => {
      await open('a >b c');
      const leases = await Promise.all([acquire('a >b c'), acquire('a >b c'), acquire('a >b c')]);
      expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
    });

    it('stands in nobody’s way on a fork, or in another conversation, SPEC 5.11', async () => {
      await open('a >b c');
      const other = { ...alice, id: 'c_other' };
      await open('a >b c', { conversation: other });
      await granted('a >b c');
      expect(await acquire('a >b x')).not.toBeNull();
      expect(await acquire('a >b')).not.toBeNull();
      expect(await world.ledger.acquireLease(other, idsOf('a >b c'), 1_000)).not.toBeNull();
    });

    it('has a fence that grows with every lease of its conversation', async () => {
      await open('a >b c');
      const fences: number[] = [];
      for (const words of ['a >b c', 'a >b x', 'a >y']) {
        const lease = await granted(words);
        fences.push(lease.fence);
        await world.ledger.releaseLease(alice, lease);
      }
      expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b));
      expect(fences).toHaveLength(3);
    });

    it('ends with its time, and then another takes its place, SPEC 5.11', async () => {
      await open('a >b c');
      const first = await granted('a >b c', 500);
      world.now += 499;
      expect(await acquire('a >b c')).toBeNull();
      world.now += 1;
      const second = await granted('a >b c >d e');
      expect(second.fence).toBeGreaterThan(first.fence);
      expect(await world.ledger.renewLease(alice, first, 500)).toBe(false);
      await world.ledger.releaseLease(alice, first);
      expect(await acquire('a >b c >d e')).toBeNull();
    });

    it('is renewed for as long as nobody took its place, even after it ran out', async () => {
      await open('a >b c');
      const lease = await granted('a >b c', 500);
      world.now += 400;
      expect(await world.ledger.renewLease(alice, lease, 500)).toBe(true);
      world.now += 400;
      expect(await acquire('a >b c')).toBeNull();
      world.now += 400;
      expect(await world.ledger.renewLease(alice, lease, 500)).toBe(true);
      expect(await acquire('a >b c')).toBeNull();
      await world.ledger.releaseLease(alice, lease);
      expect(await world.ledger.renewLease(alice, lease, 500)).toBe(false);
    });

    it('that ran out is still there for others than those of its chain', async () => {
      await open('a >b c');
      const lease = await granted('a >b c', 500);
      world.now += 1_000;
      await granted('a >b x');
      expect(await world.ledger.renewLease(alice, lease, 500)).toBe(true);
    });

    it('changes nothing of the conversation', async () => {
      await open('a >b c');
      const before = await world.everything();
      world.now += 1_000;
      const lease = await granted('a >b c');
      await world.ledger.renewLease(alice, lease, 500);
      await world.ledger.releaseLease(alice, lease);
      expect(await world.everything()).toEqual(before);
    });

    it('of a conversation that is not there or another tenant’s is not given, renewed or released, SPEC 1.1', async () => {
      await open('a >b c');
      const lease = await granted('a >b c');
      for (const key of [nobody, mallory]) {
        await expectRefusal(() => world.ledger.acquireLease(key, idsOf('a >b x'), 1_000), 'conversation_not_found');
        expect(await world.ledger.renewLease(key, lease, 1_000)).toBe(false);
        await world.ledger.releaseLease(key, lease);
      }
      expect(await acquire('a >b c')).toBeNull();
    });

    it('without a chain or a time is refused', async () => {
      await open('a');
      await expectRefusal(() => world.ledger.acquireLease(alice, [], 1_000), 'invalid_request', 'chain');
      for (const durationMs of [0, -1, 0.5, Number.NaN]) {
        await expectRefusal(() => acquire('a', durationMs), 'invalid_request', 'durationMs');
        const lease = { head: endOf('a'), fence: 1 };
        await expectRefusal(() => world.ledger.renewLease(alice, lease, durationMs), 'invalid_request', 'durationMs');
      }
    });
  });

  describe('a summary made under a lease', () => {
    it('is committed while it lasts, and after it ran out if nobody took its place, SPEC 5.8', async () => {
      await open('a >b c >d e');
      const lease = await granted('a >b c >d e', 500);
      world.now += 10_000;
      expect(await commit('s', lease)).toEqual({ outcome: 'committed' });
      expect(await world.ledger.renewLease(alice, lease, 500)).toBe(true);
    });

    it('is stale once another took its place, so that a holder that slept writes nothing, SPEC 5.8', async () => {
      await open('a >b c >d e');
      const slept = await granted('a >b c >d e', 500);
      world.now += 500;
      const awake = await granted('a >b c >d e');
      const before = await world.everything();
      expect(await commit('s', slept)).toEqual(lost);
      expect(await world.everything()).toEqual(before);
      expect(await commit('s', awake)).toEqual({ outcome: 'committed' });
    });

    it('is stale if the other was given for a longer spine', async () => {
      await open('a >b c >d e');
      const slept = await granted('a >b c >d e', 500);
      world.now += 500;
      const awake = await granted('a >b c >d e >f g');
      await world.ledger.releaseLease(alice, awake);
      expect(await commit('s', slept)).toEqual(lost);
    });

    it('is stale once it was released, and when it never was given', async () => {
      await open('a >b c >d e');
      const lease = await granted('a >b c >d e');
      expect(await commit('s', { ...lease, fence: lease.fence + 1 })).toEqual(lost);
      await world.ledger.releaseLease(alice, lease);
      expect(await commit('s', lease)).toEqual(lost);
    });
  });
}
