import { describe, expect, it } from 'vitest';
import type { Catalogue } from '../../src/upstream/catalogue.js';
import { createWindows, parseWindowPatterns } from '../../src/upstream/windows.js';

const catalogue: Catalogue = (model) => (model === 'known' ? { windowTokens: 1000, outputTokens: 100 } : null);

async function window(patterns: string, model: string): Promise<number | null> {
  const limits = createWindows(parseWindowPatterns(patterns, 'SPILLWAY_WINDOWS'), async () => catalogue);
  return (await limits(model)).configured;
}

describe('createWindows', () => {
  it('tells what is configured and what the catalogue says side by side', async () => {
    const limits = createWindows([{ pattern: 'known', tokens: 50 }], async () => catalogue);
    expect(await limits('known')).toEqual({ configured: 50, catalogue: 1000, outputTokens: 100 });
  });

  it('tells the catalogue alone where nothing is configured', async () => {
    const limits = createWindows([], async () => catalogue);
    expect(await limits('known')).toEqual({ configured: null, catalogue: 1000, outputTokens: 100 });
  });

  it('says null for what nobody knows, SPEC 5.1', async () => {
    const limits = createWindows([], async () => catalogue);
    expect(await limits('unknown')).toEqual({ configured: null, catalogue: null, outputTokens: null });
  });

  it('lets the first pattern that matches win', async () => {
    expect(await window('gpt-4*=1,gpt-4o=2,*=3', 'gpt-4o')).toBe(1);
    expect(await window('gpt-4o=2,gpt-4*=1', 'gpt-4o')).toBe(2);
    expect(await window('gpt-4*=1,*=3', 'llama')).toBe(3);
  });

  it.each([
    ['a', 'a', true],
    ['a', 'ab', false],
    ['a.c', 'abc', false],
    ['*', '', true],
    ['a*', 'a', true],
    ['*a', 'ba', true],
    ['*a', 'ab', false],
    ['a*c', 'abbc', true],
    ['a*a', 'a', false],
    ['ab*bc', 'abc', false],
    ['*b*', 'abc', true],
    ['*a*b*c*', 'xaxbxc', true],
    ['*a*b*a*', 'xbxaxb', false],
    ['a**b', 'ab', true],
    ['a*b*b', 'axb', false],
  ])('matches %j with %j: %j', async (pattern, model, matches) => {
    expect(await window(`${pattern}=1`, model)).toBe(matches ? 1 : null);
  });

  it('matches a hostile name in linear time', async () => {
    expect(await window(`${'a*'.repeat(20)}b=1`, 'a'.repeat(1_000_000))).toBeNull();
  });

  it('loads the catalogue on the first call, once', async () => {
    let loads = 0;
    const limits = createWindows([], async () => {
      loads += 1;
      return catalogue;
    });
    expect(loads).toBe(0);
    await Promise.all([limits('known'), limits('known')]);
    await limits('known');
    expect(loads).toBe(1);
  });

  it('tries again after the catalogue could not be loaded', async () => {
    let loads = 0;
    const limits = createWindows([], async () => {
      loads += 1;
      if (loads === 1) throw new Error('no disk');
      return catalogue;
    });
    await expect(limits('known')).rejects.toThrow('no disk');
    expect((await limits('known')).catalogue).toBe(1000);
  });
});

describe('parseWindowPatterns', () => {
  it('reads pattern=tokens parts, spaces and empty parts aside', () => {
    expect(parseWindowPatterns(' gpt-*=128000 , a=b=5 ,, ', 'SPILLWAY_WINDOWS')).toEqual([
      { pattern: 'gpt-*', tokens: 128_000 },
      { pattern: 'a=b', tokens: 5 },
    ]);
    expect(parseWindowPatterns('', 'SPILLWAY_WINDOWS')).toEqual([]);
  });

  it.each(['gpt', '=5', 'gpt=', 'gpt=0', 'gpt=-1', 'gpt=1.5', 'gpt=128k', 'gpt=1e5', 'gpt=9999999999'])(
    'refuses %j, naming the setting and the part',
    (text) => {
      expect(() => parseWindowPatterns(`ok=1,${text}`, 'SPILLWAY_WINDOWS')).toThrow(
        expect.objectContaining({
          code: 'invalid_setting',
          field: 'SPILLWAY_WINDOWS',
          message: `SPILLWAY_WINDOWS: ${JSON.stringify(text)} is not pattern=tokens`,
        }),
      );
    },
  );
});
