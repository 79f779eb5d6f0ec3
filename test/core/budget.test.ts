import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assumedWindow,
  budgetShare,
  calibrationOf,
  isFixedOverhead,
  keepTokens,
  latchGrowthTokens,
  marginTokens,
  reserveTokens,
  roomForHistory,
  summaryCapTokens,
} from '../../src/core/budget.js';

describe('the reserve, SPEC 7.2', () => {
  it('is the explicit cap, at most what the model can put out', () => {
    expect(reserveTokens(128_000, 1_000, null)).toBe(1_000);
    expect(reserveTokens(128_000, 50_000, null)).toBe(50_000);
    expect(reserveTokens(128_000, 50_000, 4_096)).toBe(4_096);
  });

  it('without a cap is the least of capability, 16,384 and a quarter of the window', () => {
    expect(reserveTokens(128_000, null, null)).toBe(16_384);
    expect(reserveTokens(128_000, null, 4_096)).toBe(4_096);
    expect(reserveTokens(8_000, null, 4_096)).toBe(2_000);
    expect(reserveTokens(8_001, null, null)).toBe(2_000);
  });
});

it('the margin is a twentieth of the window and at least 256, SPEC 7.1', () => {
  expect(marginTokens(4_000)).toBe(256);
  expect(marginTokens(5_120)).toBe(256);
  expect(marginTokens(128_000)).toBe(6_400);
});

describe('calibration, SPEC 5.1', () => {
  it.each([
    ['no match', null, 1],
    ['more than estimated', { estimatedTokens: 1_000, measuredTokens: 1_300 }, 1.3],
    ['less than estimated', { estimatedTokens: 1_000, measuredTokens: 800 }, 0.8],
    ['the bounds themselves', { estimatedTokens: 1_000, measuredTokens: 2_000 }, 2],
    ['beyond twice', { estimatedTokens: 1_000, measuredTokens: 2_001 }, 1],
    ['below half', { estimatedTokens: 1_000, measuredTokens: 499 }, 1],
    ['zero usage, which is unknown (SPEC 9.4)', { estimatedTokens: 1_000, measuredTokens: 0 }, 1],
    ['zero estimate', { estimatedTokens: 0, measuredTokens: 10 }, 1],
  ])('of %s', (_name, match, ratio) => {
    expect(calibrationOf(match)).toBe(ratio);
  });
});

it('the budget is the calibrated estimate and the reserve over the window, SPEC 5.1', () => {
  expect(budgetShare(60_000, { windowTokens: 100_000, reserveTokens: 20_000, calibration: 1 })).toBe(0.8);
  expect(budgetShare(40_000, { windowTokens: 100_000, reserveTokens: 20_000, calibration: 1.5 })).toBe(0.8);
});

describe('room for history, SPEC 5.4', () => {
  const limits = { windowTokens: 100_000, reserveTokens: 10_000, calibration: 1 };

  it('is 80 % of the window less reserve and fixed part before a turn', () => {
    expect(roomForHistory(limits, 5_000, { trigger: 0.8 })).toBe(65_000);
  });

  it('is the window less margin, reserve and fixed part for a reactive or manual one', () => {
    expect(roomForHistory(limits, 5_000, 'window')).toBe(80_000);
  });

  it('is in tokens of the local estimate, so a calibration divides it', () => {
    expect(roomForHistory({ ...limits, calibration: 2 }, 5_000, { trigger: 0.8 })).toBe(30_000);
  });

  it('below 5 % of the window is fixed overhead', () => {
    expect(isFixedOverhead(4_999, limits)).toBe(true);
    expect(isFixedOverhead(5_000, limits)).toBe(false);
    expect(isFixedOverhead(-1, limits)).toBe(true);
  });
});

describe('the kept-token target, SPEC 5.3', () => {
  it.each([
    ['10 % of the window', 200_000, 150_000, 20_000],
    ['at least 8,000', 32_000, 20_000, 8_000],
    ['at most 40,000', 1_000_000, 800_000, 40_000],
    ['never more than half of the room', 8_000, 4_400, 2_200],
    ['nothing where there is no room', 8_000, -100, 0],
  ])('is %s', (_name, window, room, tokens) => {
    expect(keepTokens(window, room, null)).toBe(tokens);
  });

  it('is an explicit setting over all of it', () => {
    expect(keepTokens(8_000, 4_400, 5_000)).toBe(5_000);
    expect(keepTokens(1_000_000, 800_000, 100)).toBe(100);
  });
});

it.each([
  ['4,096', 128_000, 100_000, 4_096],
  ['an eighth of the window', 16_000, 12_000, 2_000],
  ['a quarter of the room', 128_000, 8_000, 2_000],
  ['one, where the room is gone', 128_000, -5, 1],
])('a summary has at most %s tokens, SPEC 5.6', (_name, window, room, tokens) => {
  expect(summaryCapTokens(window, room)).toBe(tokens);
});

it('an unknown window is taken as 0.8 of what was rejected, plus the reserve, SPEC 5.1', () => {
  expect(assumedWindow(100_000, 16_384)).toBe(96_384);
});

it.each([
  ['an eighth of a small window', 8_000, 1_000],
  ['4,000 in a middling one', 40_000, 4_000],
  ['5 % of a large one', 200_000, 10_000],
])('a latched head has to grow by %s, SPEC 5.11', (_name, window, tokens) => {
  expect(latchGrowthTokens(window)).toBe(tokens);
});

it('trigger > kept part and summary together, and kept part > 0, at every window from 4k to 2M, SPEC 5.3', () => {
  const limits = fc.record({
    windowTokens: fc.integer({ min: 4_000, max: 2_000_000 }),
    outputCap: fc.option(fc.integer({ min: 1, max: 200_000 })),
    capability: fc.option(fc.integer({ min: 1_024, max: 128_000 })),
    fixedShare: fc.double({ min: 0, max: 0.8, noNaN: true }),
    calibration: fc.double({ min: 0.5, max: 2, noNaN: true }),
    trigger: fc.double({ min: 0.3, max: 0.95, noNaN: true }),
  });
  fc.assert(
    fc.property(limits, ({ windowTokens, outputCap, capability, fixedShare, calibration, trigger }) => {
      const reserve = reserveTokens(windowTokens, outputCap, capability);
      const fixed = Math.floor(windowTokens * fixedShare);
      const known = { windowTokens, reserveTokens: reserve, calibration };
      const room = roomForHistory(known, fixed, { trigger });
      if (isFixedOverhead(room, known)) return;
      const kept = keepTokens(windowTokens, room, null);
      expect(kept).toBeGreaterThan(0);
      expect(budgetShare(fixed + kept + summaryCapTokens(windowTokens, room), known)).toBeLessThan(trigger);
    }),
    { numRuns: 2_000 },
  );
});
