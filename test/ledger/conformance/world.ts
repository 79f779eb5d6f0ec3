import { afterEach, beforeEach, expect } from 'vitest';
import { SpillwayError } from '../../../src/core/errors.js';
import type { Clock, Directory, Ledger, OpenedTurn, OpenTurn } from '../../../src/core/ports.js';
import { alice, openOf, spineOf } from '../builders.js';

export interface LedgerHarness {
  readonly ledger: Ledger & Directory;
  /** Closes the ledger and opens the same store again; absent where nothing outlives it. */
  readonly reopen?: () => Promise<Ledger & Directory>;
  /** Releases everything, the ledger included. */
  dispose(): Promise<void>;
}

/** Makes an empty store, whose times are all of this clock. */
export type MakeHarness = (clock: Clock) => Promise<LedgerHarness>;

/** An empty store for each test of the `describe` it is made in, a clock that stands until it is set, and ways to ask both. */
export interface World {
  ledger: Ledger & Directory;
  now: number;
  /** Absent where nothing outlives the driver. */
  readonly reopen: (() => Promise<void>) | undefined;
  /** Opens a turn of alice's; words as in `spineOf`. */
  open(words: string, changes?: Partial<OpenTurn>): Promise<OpenedTurn>;
  head(): Promise<string | undefined>;
  everything(): Promise<unknown>;
  refusal(work: Promise<unknown>): Promise<{ readonly code: string; readonly field: string | null }>;
  /** The work is refused, and nothing of it was written. */
  expectRefusal(work: () => Promise<unknown>, code: string, field?: string): Promise<void>;
}

export function ledgerWorld(makeHarness: MakeHarness): World {
  let harness: LedgerHarness;
  let ledger: Ledger & Directory;

  beforeEach(async () => {
    world.now = 1_000;
    harness = await makeHarness(() => world.now);
    ({ ledger } = harness);
  });
  afterEach(() => harness.dispose());

  const world: World = {
    get ledger() {
      return ledger;
    },
    now: 1_000,
    get reopen() {
      const { reopen } = harness;
      return reopen && (async () => void (ledger = await reopen()));
    },
    open: (words, changes = {}) => ledger.openTurn(openOf(spineOf(words), changes)),
    head: async () => (await ledger.conversation(alice.id, alice.tenant))?.head,
    everything: async () => ({
      conversation: await ledger.conversation(alice.id, null),
      conversations: await ledger.list(null, 100, null),
      kept: await ledger.oldest(null, 100),
      nodes: await ledger.nodes(alice, 0, 1_000),
      calls: await ledger.calls(alice, 1_000),
    }),
    refusal: async (work) => {
      const error: unknown = await work.then(
        () => 'nothing was refused',
        (reason: unknown) => reason,
      );
      if (!(error instanceof SpillwayError)) throw new Error('not refused with a SpillwayError', { cause: error });
      return { code: error.code, field: error.field };
    },
    expectRefusal: async (work, code, field) => {
      const before = await world.everything();
      expect(await world.refusal(work())).toEqual({ code, field: field ?? expect.anything() });
      expect(await world.everything()).toEqual(before);
    },
  };
  return world;
}
