import { seededRandom } from '../../src/simulator/seeded.js';

/** What a coding agent's tool call brings back. */
export interface ToolOutput {
  readonly tool: string;
  readonly arguments: string;
  readonly text: string;
  /** A word that stands in this text alone, at its start. */
  readonly mark: string;
}

const SMALLEST = 200;
const LARGEST = 60_000;

/** How large the outputs are: most of them small, or every size as often as any other. */
export type Sizes = 'mostly-small' | 'uniform';

/**
 * The outputs of an agent's calls: logs, code and listings of 0.2 to 60 kB. The same seed gives the same ones; the smallest and the
 * largest are always among them. `reads`: the share of them that is code, about four characters a token; the rest is denser.
 */
export function toolOutputs(
  count: number,
  seed: number,
  { sizes = 'mostly-small', reads = 1 / 3 }: { readonly sizes?: Sizes; readonly reads?: number } = {},
): readonly ToolOutput[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, index) => {
    const drawn = random();
    const share = index === 5 ? 0 : index === 17 ? 1 : drawn;
    const length = Math.round(
      sizes === 'uniform' ? SMALLEST + (LARGEST - SMALLEST) * share : SMALLEST * (LARGEST / SMALLEST) ** (share ** 2),
    );
    const [tool, write] = kindOf(random(), reads);
    const mark = `mark-${seed}-${index}-${Math.floor(random() * 1e9).toString(36)}`;
    let text = `# ${mark}\n`;
    while (text.length < length) text += write(random);
    return {
      tool,
      arguments: JSON.stringify({ path: `src/part-${index % 40}/file-${index}.ts`, run: index }),
      text: text.slice(0, length),
      mark,
    };
  });
}

const WORDS = [
  'parser',
  'index',
  'session',
  'buffer',
  'socket',
  'cursor',
  'window',
  'record',
  'ledger',
  'queue',
  'branch',
  'token',
  'offset',
  'header',
  'stream',
] as const;

const pick = (random: () => number): string => WORDS[Math.floor(random() * WORDS.length)] ?? 'part';
const number = (random: () => number, below: number): number => Math.floor(random() * below);

function logLine(random: () => number): string {
  const level = random() < 0.1 ? 'ERROR' : random() < 0.3 ? 'WARN ' : 'INFO ';
  const time = `2026-03-${String(1 + number(random, 28)).padStart(2, '0')}T10:${10 + number(random, 49)}:07.${100 + number(random, 899)}Z`;
  return `${time} ${level} [${pick(random)}-${number(random, 64)}] ${pick(random)} ${number(random, 90_000)} took ${number(random, 900)} ms, "${pick(random)}" => ${pick(random)}\n`;
}

function codeLine(random: () => number): string {
  const name = `${pick(random)}${pick(random).replace(/^./, (letter) => letter.toUpperCase())}`;
  return `${'  '.repeat(number(random, 4))}const ${name} = ${pick(random)}.map(({ ${pick(random)} }) => ${pick(random)} + ${number(random, 999)}); // ${pick(random)} of ${pick(random)}\n`;
}

function listingLine(random: () => number): string {
  return `./src/${pick(random)}/${pick(random)}-${number(random, 400)}.ts:${number(random, 2_000)}:${number(random, 80)}\t${number(random, 99_999)} bytes\n`;
}

type Kind = readonly [tool: string, writeLine: (random: () => number) => string];

function kindOf(drawn: number, reads: number): Kind {
  if (drawn < reads) return ['read_file', codeLine];
  return drawn < (1 + reads) / 2 ? ['run_command', logLine] : ['search_files', listingLine];
}
