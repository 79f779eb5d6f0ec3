import { beforeEach, describe, expect, it } from 'vitest';
import type { ConversationKey, Directory } from '../../src/core/ports.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { sweep, type RetentionDeps, type RetentionLimits } from '../../src/proxy/retention.js';
import { alice, openOf, spineOf } from '../ledger/builders.js';

const DAY_MS = 24 * 60 * 60_000;
const HOUR_MS = 60 * 60_000;
const START = 1_000 * DAY_MS;

let now: number;
let ledger: MemoryLedger;
let erased: string[];
let pauses: number;

beforeEach(() => {
  now = START;
  ledger = new MemoryLedger(() => now);
  erased = [];
  pauses = 0;
});

/** Uses a conversation at a time, with a message of so many bytes. */
async function use(id: string, at: number, bytes = 100, tenant = 'alice'): Promise<void> {
  now = at;
  const content = 'x'.repeat(bytes);
  await ledger.openTurn(openOf(spineOf(id, { content }), { conversation: { ...alice, tenant, id } }));
}

/** Another message after the first. */
async function useAgain(id: string, at: number): Promise<void> {
  now = at;
  await ledger.openTurn(openOf(spineOf([id, 'more']), { conversation: { ...alice, id } }));
}

function sweepAt(at: number, limits: Partial<RetentionLimits>, around: Partial<RetentionDeps> = {}) {
  now = at;
  const deps: RetentionDeps = {
    ledger,
    directory: ledger,
    limits: { keepMs: null, tenantBytes: null, ...limits },
    onErased: ({ id }: ConversationKey) => void erased.push(id),
    pause: () => Promise.resolve(void pauses++),
    stopped: new AbortController().signal,
    ...around,
  };
  return sweep(deps, at);
}

const left = async (): Promise<readonly string[]> => (await ledger.oldest(null, 1_000)).map((entry) => entry.id);

describe('by age (SPEC 2.6)', () => {
  const limits = { keepMs: 30 * DAY_MS };

  it('what was used longer ago than the limit goes, of every tenant, deleted or not; nothing else does', async () => {
    await use('c_old', START - 31 * DAY_MS);
    await use('c_old_too', START - 40 * DAY_MS, 100, 'bob');
    await use('c_at_the_limit', START - 30 * DAY_MS);
    await use('c_deleted_of_late', START - DAY_MS);
    await use('c_deleted_and_old', START - 31 * DAY_MS);
    for (const id of ['c_deleted_of_late', 'c_deleted_and_old'])
      await ledger.deleteConversation({ tenant: 'alice', id });
    expect(await sweepAt(START, limits)).toEqual({ conversations: 3, bytes: 300 });
    expect(erased).toEqual(['c_old_too', 'c_deleted_and_old', 'c_old']);
    expect(await left()).toEqual(['c_at_the_limit', 'c_deleted_of_late']);
  });

  it('is off without a limit', async () => {
    await use('c_old', 0);
    expect(await sweepAt(START, {})).toEqual({ conversations: 0, bytes: 0 });
    expect(await left()).toEqual(['c_old']);
  });

  it('goes on past a batch, and requests come in between any two', async () => {
    for (let index = 0; index < 65; index++) await use(`c_${index}`, index);
    expect(await sweepAt(START, limits)).toMatchObject({ conversations: 65 });
    expect(pauses).toBe(65);
    expect(await left()).toEqual([]);
  });

  it('one that is used while others are erased stays', async () => {
    for (const id of ['c_1', 'c_2', 'c_3']) await use(id, Number(id.slice(2)));
    const pause = () => useAgain('c_2', START);
    await sweepAt(START, limits, { pause });
    expect(erased).toEqual(['c_1', 'c_3']);
    expect(await left()).toEqual(['c_2']);
  });

  it('two processes may sweep one store at once', async () => {
    for (let index = 0; index < 30; index++) await use(`c_${index}`, index);
    const both = await Promise.all([sweepAt(START, limits), sweepAt(START, limits)]);
    expect(both[0].conversations + both[1].conversations).toBe(30);
    expect(new Set(erased).size).toBe(30);
    expect(await left()).toEqual([]);
  });

  it('ends at a list that lags and names what is gone', async () => {
    await use('c_old', 0);
    const entries = await ledger.oldest(null, 10);
    const directory: Pick<Directory, 'oldest' | 'tenants'> = {
      oldest: () => Promise.resolve(entries),
      tenants: () => ledger.tenants(),
    };
    expect(await sweepAt(START, limits, { directory })).toMatchObject({ conversations: 1 });
  });

  it('stops before its next conversation', async () => {
    for (let index = 0; index < 5; index++) await use(`c_${index}`, index);
    const stop = new AbortController();
    await sweepAt(START, limits, {
      stopped: stop.signal,
      onErased: ({ id }) => {
        erased.push(id);
        if (erased.length === 2) stop.abort();
      },
    });
    expect(erased).toEqual(['c_0', 'c_1']);
  });
});

describe('by size', () => {
  it('the conversations of a tenant used longest ago go until it keeps no more than it may', async () => {
    for (const [index, bytes] of [400, 300, 200, 100].entries())
      await use(`c_${index}`, START - (10 - index) * HOUR_MS, bytes);
    await use('c_of_bob', START - 100 * HOUR_MS, 550, 'bob');
    expect(await sweepAt(START, { tenantBytes: 600 })).toEqual({ conversations: 1, bytes: 400 });
    expect(erased).toEqual(['c_0']);
    expect(await sweepAt(START, { tenantBytes: 599 })).toEqual({ conversations: 1, bytes: 300 });
    expect(await left()).toEqual(['c_of_bob', 'c_2', 'c_3']);
  });

  it('never takes one that was used within the hour, whatever its size', async () => {
    await use('c_large_and_new', START - HOUR_MS, 5_000);
    await use('c_new', START);
    await use('c_old', START - HOUR_MS - 1, 10);
    expect(await sweepAt(START, { tenantBytes: 50 })).toMatchObject({ conversations: 1 });
    expect(erased).toEqual(['c_old']);
  });

  it('takes none that was used since the list was read', async () => {
    await use('c_old', START - 2 * HOUR_MS, 500);
    const directory: Pick<Directory, 'oldest' | 'tenants'> = {
      tenants: () => ledger.tenants(),
      async oldest(tenant, limit) {
        const entries = await ledger.oldest(tenant, limit);
        await useAgain('c_old', START);
        return entries;
      },
    };
    expect(await sweepAt(START, { tenantBytes: 50 }, { directory })).toMatchObject({ conversations: 0 });
    expect(await left()).toEqual(['c_old']);
  });
});

it('a store that fails ends the sweep, and what was erased stays erased', async () => {
  await use('c_1', 1);
  await use('c_2', 2);
  const failing: RetentionDeps['ledger'] = {
    eraseConversation: (key, since) =>
      key.id === 'c_2' ? Promise.reject(new Error('gone')) : ledger.eraseConversation(key, since),
  };
  await expect(sweepAt(START, { keepMs: 1 }, { ledger: failing })).rejects.toThrow('gone');
  expect(await left()).toEqual(['c_2']);
});
