import { describe, expect, it } from 'vitest';
import { activeSummary, segmentOn } from '../../src/core/summary.js';
import { spineOf, summaryOf, turn, user } from './builders.js';

const trunk = spineOf([...turn('a'), ...turn('b'), ...turn('c')]);
const ids = trunk.map((node) => node.id);
/** Shares the first two turns with the trunk. */
const branch = spineOf([...turn('a'), ...turn('b'), user('other')]).map((node) => node.id);

describe('a summary’s segment', () => {
  it('lies on a spine that holds every covered id, SPEC 4.1', () => {
    expect(segmentOn(ids, summaryOf(trunk, 4))).toEqual({ from: 0, to: 4 });
    expect(segmentOn(branch, summaryOf(trunk, 4))).toEqual({ from: 0, to: 4 });
  });

  it.each([
    ['that ends inside it', ids.slice(0, 3), summaryOf(trunk, 4)],
    ['of another branch', branch, summaryOf(trunk, 5)],
    ['on which its ends stand at another distance', ids, { ...summaryOf(trunk, 4), count: 3 }],
    ['of nothing', [], summaryOf(trunk, 4)],
  ])('does not lie on a spine %s, SPEC 4.2', (_name, spine, summary) => {
    expect(segmentOn(spine, summary)).toBeNull();
  });
});

describe('the active summary, SPEC 3.4', () => {
  const short = summaryOf(trunk, 2, 'short');
  const long = summaryOf(trunk, 4, 'long');
  const longest = summaryOf(trunk, 6, 'longest');

  it('under spine is the one with the longest segment wholly on this spine', () => {
    expect(activeSummary(ids, [longest, short, long], 'spine', 'short')).toBe(longest);
    expect(activeSummary(branch, [short, long, longest], 'spine', 'longest')).toBe(long);
    expect(activeSummary(ids.slice(0, 3), [short, long, longest], 'spine', null)).toBe(short);
    expect(activeSummary(ids.slice(0, 1), [short, long, longest], 'spine', null)).toBeNull();
  });

  it('under spine, of two with the same segment, is the one written last', () => {
    const again = { ...long, id: 'again' };
    expect(activeSummary(ids, [long, again], 'spine', null)).toBe(again);
    expect(activeSummary(ids, [again, long], 'spine', null)).toBe(long);
  });

  it('under session is the named one or none: an older one is never consulted again', () => {
    expect(activeSummary(ids, [short, long], 'session', 'short')).toBe(short);
    expect(activeSummary(branch, [short, long, longest], 'session', 'longest')).toBeNull();
    expect(activeSummary(ids, [short, long], 'session', null)).toBeNull();
  });
});
