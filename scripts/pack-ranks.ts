/** Packs the tokenizers' ranks for the program in a folder: `pack-ranks.ts [folder]`, `dist` by default. */
import { writePackedRanks } from '../src/tokens/node-ranks.js';

const paths = await writePackedRanks(process.argv[2] ?? 'dist');
console.log(`packed ${paths.join(', ')}`);
