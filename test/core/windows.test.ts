import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_COUNTS, type Overflow } from '../../src/core/overflow/verdict.js';
import {
  believe,
  narrower,
  widened,
  windowFrom,
  type LearnedWindow,
  type WindowOpinions,
} from '../../src/core/windows.js';

const nothing: WindowOpinions = { configured: null, learned: null, discovered: null, catalogue: null };
const stated = (changes: Partial<Overflow> = {}): Overflow => ({
  ...NO_COUNTS,
  kind: 'context',
  reason: 'rule',
  limit: 8_192,
  limitTrust: 'window',
  used: 9_000,
  ...changes,
});
const learned = (changes: Partial<LearnedWindow> = {}): LearnedWindow => ({
  tenant: 't',
  upstream: 'u',
  model: 'm',
  tokens: 8_192,
  source: 'stated',
  rule: 'rule',
  learnedAt: 10,
  expiresAt: 100,
  ...changes,
});

const tokens = fc.oneof(fc.nat(5_000), fc.nat(2_000_000), fc.double({ noNaN: false }));
const maybe = fc.option(tokens);
const overflow: fc.Arbitrary<Overflow> = fc.record({
  kind: fc.constantFrom('context', 'fit', 'bytes'),
  reason: fc.constant('rule'),
  limit: maybe,
  limitTrust: fc.constantFrom('window', 'input', 'tier', 'other', null),
  used: maybe,
  usedInput: maybe,
  usedOutput: maybe,
  usedIsFloor: fc.boolean(),
  excess: maybe,
});
const window = fc.record({ tokens: fc.integer({ min: 1_024, max: 2_000_000 }), expiresAt: fc.nat(200) }).map(learned);

describe('what is believed', () => {
  it.each([
    [{ configured: 1, learned: 2, discovered: 3, catalogue: 4 }, 1, 'configured'],
    [{ learned: 2, discovered: 3, catalogue: 4 }, 2, 'learned'],
    [{ discovered: 3, catalogue: 4 }, 3, 'discovered'],
    [{ catalogue: 4 }, 4, 'catalogue'],
    [{}, null, 'unknown'],
  ] as const)('of %j is %s: %s, SPEC 6.5', (opinions, expected, source) => {
    expect(believe({ ...nothing, ...opinions })).toEqual({ tokens: expected, source });
  });
});

describe('what an overflow teaches', () => {
  it('is the window it states, below the stated use or else the estimate, SPEC 6.5', () => {
    expect(windowFrom(stated(), null, null)).toBe(8_192);
    expect(windowFrom(stated({ used: null }), 8_193, null)).toBe(8_192);
    expect(windowFrom(stated({ used: null }), 8_192, null)).toBeNull();
    expect(windowFrom(stated({ used: null }), null, null)).toBeNull();
    expect(windowFrom(stated({ used: 8_192 }), 9_000, null)).toBeNull();
  });

  it.each(['input', 'tier', 'other', null] as const)('is nothing where the limit is another: %s', (limitTrust) => {
    expect(windowFrom(stated({ limitTrust }), 9_000, null)).toBeNull();
  });

  it('is nothing for a cap on bytes', () => {
    expect(windowFrom(stated({ kind: 'bytes' }), 9_000, null)).toBeNull();
  });

  it('is nothing that no window can be, and at most twice what the catalogue says', () => {
    expect(windowFrom(stated({ limit: 1_023 }), null, null)).toBeNull();
    expect(windowFrom(stated({ limit: 1_024 }), null, null)).toBe(1_024);
    expect(windowFrom(stated(), null, 4_096)).toBe(8_192);
    expect(windowFrom(stated(), null, 4_095)).toBeNull();
  });

  it('is, whatever was stated, a plausible window smaller than what was refused', () => {
    fc.assert(
      fc.property(overflow, maybe, fc.option(fc.nat(2_000_000)), (seen, estimate, catalogue) => {
        const found = windowFrom(seen, estimate, catalogue);
        if (found === null) return;
        expect(seen.limitTrust).toBe('window');
        expect(Number.isSafeInteger(found) && found >= 1_024).toBe(true);
        expect(found).toBeLessThan(seen.used ?? estimate ?? 0);
        if (catalogue !== null) expect(found).toBeLessThanOrEqual(2 * catalogue);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a learned window', () => {
  it('gives way to a smaller one, to a newer one alike, and to any once it expired, SPEC 6.5', () => {
    fc.assert(
      fc.property(window, window, fc.nat(200), (known, fresh, now) => {
        const kept = narrower(known, fresh, now);
        const holds = known.expiresAt > now;
        expect(kept).toBe(holds && known.tokens < fresh.tokens ? known : fresh);
        expect(narrower(null, fresh, now)).toBe(fresh);
      }),
    );
  });

  it('is raised to what went through and never lowered, and its expiry stays, SPEC 6.5', () => {
    fc.assert(
      fc.property(window, fc.nat(3_000_000), (known, used) => {
        const raised = widened(known, used, 50);
        expect(raised.tokens).toBe(Math.max(known.tokens, used));
        expect(raised.expiresAt).toBe(known.expiresAt);
        if (used <= known.tokens) expect(raised).toBe(known);
        else expect(raised).toMatchObject({ source: 'success', learnedAt: 50, rule: 'rule' });
      }),
    );
  });
});
