import { describe, expect, it } from 'vitest';
import { createCatalogue, loadCatalogue } from '../../src/upstream/catalogue.js';

const provider = (models: Record<string, readonly [context?: number, output?: number]>) => ({
  models: Object.fromEntries(
    Object.entries(models).map(([id, [context, output]]) => [
      id,
      { limit: { ...(context === undefined ? {} : { context }), ...(output === undefined ? {} : { output }) } },
    ]),
  ),
});

const find = createCatalogue({
  reseller: provider({ 'gpt-5': [128_000, 64_000], 'org/Model': [9_000, 900], both: [7_000], 'x-2025-01-02': [100] }),
  openai: provider({ 'gpt-5': [400_000, 128_000], 'gpt-4o': [128_000, 16_384], nothing: [0, 0] }),
  other: provider({ both: [5_000, 500], nothing: [3_000] }),
  third: { models: { both: {} } },
});

describe('createCatalogue', () => {
  it("takes the maker's word before a reseller's", () => {
    expect(find('gpt-5')).toEqual({ windowTokens: 400_000, outputTokens: 128_000 });
  });

  it('takes the smallest window where no maker lists the id', () => {
    expect(find('both')).toEqual({ windowTokens: 5_000, outputTokens: 500 });
  });

  it('takes a window of zero for unknown', () => {
    expect(find('nothing')).toEqual({ windowTokens: 3_000, outputTokens: null });
  });

  it('finds an id as it is listed before it takes anything off it', () => {
    expect(find('org/model')).toEqual({ windowTokens: 9_000, outputTokens: 900 });
    expect(find('x-2025-01-02')).toEqual({ windowTokens: 100, outputTokens: null });
  });

  it.each([
    'openai/gpt-4o',
    'gpt-4o-2024-08-06',
    'openai/gpt-4o-2024-08-06',
    'a/b/GPT-4o',
    'gpt-4o-20240806',
    'gpt-4o@20240806',
  ])('finds gpt-4o for %s', (model) => {
    expect(find(model)).toEqual({ windowTokens: 128_000, outputTokens: 16_384 });
  });

  it.each(['', 'gpt', 'gpt-4o-mini', 'gpt-4o-0613', 'gpt-4o-2024-08-06-x', 'x', '__proto__', 'constructor'])(
    'does not know %j',
    (model) => {
      expect(find(model)).toBeNull();
    },
  );
});

describe('loadCatalogue', () => {
  it('knows the models of the package', async () => {
    const known = await loadCatalogue();
    expect(known('gpt-4o')).toEqual({ windowTokens: 128_000, outputTokens: 16_384 });
    expect(known('gpt-4.1')?.windowTokens).toBe(1_047_576);
    expect(known('claude-sonnet-4-20250514')?.windowTokens).toBe(200_000);
    expect(known('no-such-model')).toBeNull();
  });
});
