import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENCODINGS } from '../../src/tokens/encoding.js';
import { readPackedRanks, writePackedRanks } from '../../src/tokens/node-ranks.js';
import { packRanks } from '../../src/tokens/packed-ranks.js';
import { PUBLISHED } from './ranks.js';

describe('packed ranks on Node', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spillway-ranks-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('are packed on the spot when the program runs from source', async () => {
    for (const encoding of ENCODINGS) {
      const ranks = await readPackedRanks(encoding);
      expect(Buffer.compare(ranks, packRanks(PUBLISHED[encoding].bpe_ranks))).toBe(0);
    }
  });

  it('are written for every encoding, and read from beside the bundle when the program is built', async () => {
    expect(await writePackedRanks(folder)).toEqual(ENCODINGS.map((encoding) => join(folder, `${encoding}.ranks`)));
    for (const encoding of ENCODINGS) {
      expect(Buffer.compare(await readFile(join(folder, `${encoding}.ranks`)), await readPackedRanks(encoding))).toBe(
        0,
      );
    }
    await build({
      entryPoints: [join(import.meta.dirname, '../../src/tokens/node-ranks.ts')],
      outfile: join(folder, 'program.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      external: ['js-tiktoken'],
      logLevel: 'error',
    });
    await writeFile(join(folder, 'o200k_base.ranks'), 'what lies beside the bundle');
    const program: { readPackedRanks: typeof readPackedRanks } = await import(join(folder, 'program.mjs'));
    expect(Buffer.from(await program.readPackedRanks('o200k_base')).toString()).toBe('what lies beside the bundle');
  });
});
