/**
 * Counting tokens: ours beside js-tiktoken, in the same run on the same texts, and ours alone on what would stall the
 * other. Ends by itself in well under a minute: `npx tsx bench/tokens.ts`. Ratios carry over to other machines, times
 * do not.
 */
import { readFileSync } from 'node:fs';
import { Tiktoken } from 'js-tiktoken/lite';
import o200k from 'js-tiktoken/ranks/o200k_base';
import { BpeEncoder } from '../src/tokens/bpe-encoder.js';
import { readPackedRanks } from '../src/tokens/node-ranks.js';
import { rounded } from './statistics.js';
import type { Table } from './table.js';

const ROUNDS = 3;
const TEXT_CHARS = 200_000;

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const filled = (text: string, chars: number): string => text.repeat(Math.ceil(chars / text.length)).slice(0, chars);

const prose =
  'The committee met again on Thursday, after the floods had gone down and the road to the harbour was open. Nobody ' +
  'expected an answer that evening; what they wanted was to hear, plainly, why the second warning had not been ' +
  'passed on. "It was late," said the engineer, "and we believed the first one had been enough." Outside it rained. ';
const chinese = '自然语言处理是人工智能的一个重要方向，它研究人与计算机之间用自然语言进行有效通信的各种理论和方法。';

const ordinary = {
  prose: filled(prose, TEXT_CHARS),
  code: filled(read('../src/tokens/merger.ts') + read('../src/tokens/piece-splitter.ts'), TEXT_CHARS),
  JSON: filled(read('../package-lock.json'), TEXT_CHARS),
  Chinese: filled(chinese, TEXT_CHARS / 2),
};
/** As long as js-tiktoken can take within seconds. */
const hostile = {
  'one letter': 'a'.repeat(2_000),
  spaces: ' '.repeat(2_000),
  'Chinese without punctuation': filled(chinese.replaceAll(/[，。]/g, ''), 600),
};
const megabyte = {
  'one letter': 'a'.repeat(1 << 20),
  spaces: ' '.repeat(1 << 20),
  'Chinese without punctuation': filled(chinese.replaceAll(/[，。]/g, ''), (1 << 20) / 3),
  base64: filled(Buffer.from(chinese + prose).toString('base64'), 1 << 20),
};

/** Counting tokens: ours beside js-tiktoken on the same texts, and ours alone on what would stall the other. */
export async function measureTokens(): Promise<readonly Table[]> {
  const packed = await readPackedRanks('o200k_base');
  const ours = new BpeEncoder('o200k_base', packed);
  const theirs = new Tiktoken(o200k);

  function compare(texts: Readonly<Record<string, string>>): Table['rows'] {
    return Object.entries(texts).map(([name, text]) => {
      const megabytes = Buffer.byteLength(text) / 1e6;
      const oursMs = leastMs(() => ours.count(text), ROUNDS);
      const theirsMs = leastMs(() => theirs.encode(text, [], []), ROUNDS);
      return {
        text: name,
        'ours MB/s': rounded(megabytes / (oursMs / 1e3)),
        'js-tiktoken MB/s': rounded(megabytes / (theirsMs / 1e3)),
        ratio: rounded(theirsMs / oursMs),
      };
    });
  }

  function alone(texts: Readonly<Record<string, string>>): Table['rows'] {
    return Object.entries(texts).map(([name, text]) => {
      const stepsBefore = ours.steps;
      const ms = leastMs(() => ours.count(text), 1);
      return {
        text: name,
        ms: rounded(ms),
        'steps a byte': rounded((ours.steps - stepsBefore) / Buffer.byteLength(text)),
      };
    });
  }

  const oursMs = leastMs(() => new BpeEncoder('o200k_base', packed), ROUNDS);
  const theirsMs = leastMs(() => new Tiktoken(o200k), 1);
  return [
    {
      title: 'Loading o200k_base',
      note: 'The least time of some rounds, here and below.',
      rows: [{ 'ours ms': rounded(oursMs), 'js-tiktoken ms': rounded(theirsMs), ratio: rounded(theirsMs / oursMs) }],
    },
    { title: 'Counting ordinary text', note: 'The ratio is how much faster ours is.', rows: compare(ordinary) },
    { title: 'Counting hostile text', note: 'A few kilobytes, more would stall js-tiktoken.', rows: compare(hostile) },
    { title: 'Counting a hostile megabyte', note: 'Ours alone.', rows: alone(megabyte) },
  ];
}

/** The least milliseconds of some rounds. */
function leastMs(work: () => unknown, rounds: number): number {
  const times = Array.from({ length: rounds }, () => {
    const startedAt = performance.now();
    work();
    return performance.now() - startedAt;
  });
  return Math.min(...times);
}
