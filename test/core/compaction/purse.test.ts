import { describe, expect, it } from 'vitest';
import { createPurse } from '../../../src/core/compaction/purse.js';

describe('the purse of one client request, SPEC 5.6', () => {
  it('gives out so many calls and no more', () => {
    const purse = createPurse({ calls: 2, durationMs: 1_000 }, () => 0);
    expect([purse.take(), purse.take(), purse.take()]).toEqual([true, true, false]);
    expect(purse).toMatchObject({ callsMade: 2, callsLeft: 0 });
  });

  it('gives out none once its time is over', () => {
    let now = 5_000;
    const purse = createPurse({ calls: 32, durationMs: 1_000 }, () => now);
    expect(purse.remainingMs()).toBe(1_000);
    now = 5_999;
    expect(purse.take()).toBe(true);
    now = 6_000;
    expect(purse.take()).toBe(false);
    expect(purse.callsMade).toBe(1);
  });

  it('never has less than no time left', () => {
    let now = 0;
    const purse = createPurse({ calls: 1, durationMs: 10 }, () => now);
    expect(purse.remainingMs()).toBe(10);
    now = 1_000;
    expect(purse.remainingMs()).toBe(0);
  });

  it('spends no time before its first use: a provider may take long to answer', () => {
    let now = 0;
    const purse = createPurse({ calls: 2, durationMs: 1_000 }, () => now);
    now = 50_000;
    expect(purse.take()).toBe(true);
    expect(purse.remainingMs()).toBe(1_000);
    now = 50_999;
    expect(purse.remainingMs()).toBe(1);
    now = 51_000;
    expect(purse.take()).toBe(false);
  });
});
