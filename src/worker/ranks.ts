import type { Encoding } from '../tokens/encoding.js';

/** Packed ranks in a Worker: modules of bytes beside the script, made by its build and read when they are first wanted. */
export async function readPackedRanks(encoding: Encoding): Promise<Uint8Array> {
  switch (encoding) {
    case 'o200k_base':
      return new Uint8Array((await import('../../.wrangler/ranks/o200k_base.ranks')).default);
    case 'cl100k_base':
      return new Uint8Array((await import('../../.wrangler/ranks/cl100k_base.ranks')).default);
  }
}
