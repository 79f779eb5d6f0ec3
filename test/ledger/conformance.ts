import { describe, expect, it } from 'vitest';
import type { Mark } from '../../src/core/ports.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, usageOf } from './builders.js';
import { closingConformance } from './conformance/closing.js';
import { deletionConformance } from './conformance/deletion.js';
import { directoryConformance } from './conformance/directory.js';
import { leasesConformance } from './conformance/leases.js';
import { openingConformance } from './conformance/opening.js';
import { readingConformance } from './conformance/reading.js';
import { summariesConformance } from './conformance/summaries.js';
import { transferConformance } from './conformance/transfer.js';
import { ledgerWorld, type MakeHarness } from './conformance/world.js';
import { agreesWithTheReference, MODEL_RUNS } from './model.js';

export type { LedgerHarness, MakeHarness } from './conformance/world.js';

/** What every driver of the two ports must do (SPEC 2.7). */
export function ledgerConformance(name: string, makeHarness: MakeHarness): void {
  describe(`${name} ledger`, () => {
    const world = ledgerWorld(makeHarness);
    const { open, everything } = world;

    openingConformance(world);
    closingConformance(world);
    summariesConformance(world);
    readingConformance(world);
    directoryConformance(world);
    deletionConformance(world);
    leasesConformance(world);
    transferConformance(world, makeHarness);

    it('is as it was after a restart, HEAD and tombstones included, SPEC 8.5', async ({ skip }) => {
      const { reopen } = world;
      if (reopen === undefined) return skip('nothing outlives this driver');
      await open('a >b c >d e', { instructions: [{ digest: 'd1', content: 'Be brief.' }] });
      const call = callOf('call-1', endOf('a >b c >d e'), { estimatedTokens: 10, usage: usageOf(12) });
      const marks: Mark[] = [{ kind: 'overflowed', head: endOf('a >b c'), tokens: 5, scope: 's' }];
      await world.ledger.closeTurn(closeOf(call, [nodeAfter(endOf('a >b c >d e'), '>f')], { marks }));
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b c >d e >f'), 2));
      await open('a >b c >d x', { advanceHead: false });
      await world.ledger.deleteBranch(alice, endOf('a >b c >d x'), null);
      const lease = await world.ledger.acquireLease(alice, idsOf('a >b c >d x'), 1_000);
      const before = await everything();
      const opened = await open('a >b c >d e >f');
      await reopen();
      expect(await everything()).toEqual(before);
      expect(await open('a >b c >d e >f')).toEqual(opened);
      expect(opened).toMatchObject({ active: { id: 'summary_s' }, match: { measuredTokens: 12 }, marks });
      expect(await world.ledger.instruction(alice, 'd1')).toEqual({ digest: 'd1', content: 'Be brief.' });
      expect(lease !== null && (await world.ledger.renewLease(alice, lease, 1_000))).toBe(true);
    });

    it(
      'answers every sequence of commands as the reference does',
      { timeout: Math.max(60_000, MODEL_RUNS * 1_200) },
      async ({ skip }) => {
        if (world.ledger instanceof MemoryLedger) return skip('this driver is the reference');
        await agreesWithTheReference(makeHarness);
      },
    );
  });
}
