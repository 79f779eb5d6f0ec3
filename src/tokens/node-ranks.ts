import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Encoding, ENCODINGS } from './encoding.js';
import { packRanks } from './packed-ranks.js';

/**
 * Packed ranks on Node: the file that the build put beside this module's bundle, or, run from source where there is
 * none, packed on the spot from the package they come from.
 */
export async function readPackedRanks(encoding: Encoding): Promise<Uint8Array> {
  try {
    return await readFile(new URL(fileName(encoding), import.meta.url));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    return packRanks(await importRanks(encoding));
  }
}

/** Writes the packed ranks of every encoding into `folder`, which is made if need be; the paths written. */
export async function writePackedRanks(folder: string): Promise<readonly string[]> {
  await mkdir(folder, { recursive: true });
  return Promise.all(
    ENCODINGS.map(async (encoding) => {
      const path = join(folder, fileName(encoding));
      // Whole or not at all: builds may run side by side.
      const unfinished = `${path}.${randomUUID()}`;
      await writeFile(unfinished, packRanks(await importRanks(encoding)));
      await rename(unfinished, path);
      return path;
    }),
  );
}

function fileName(encoding: Encoding): string {
  return `${encoding}.ranks`;
}

async function importRanks(encoding: Encoding): Promise<string> {
  switch (encoding) {
    case 'o200k_base':
      return (await import('js-tiktoken/ranks/o200k_base')).default.bpe_ranks;
    case 'cl100k_base':
      return (await import('js-tiktoken/ranks/cl100k_base')).default.bpe_ranks;
  }
}
