import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SUMMARY_HEADINGS } from '../../../src/core/compaction/headings.js';
import { conversationTask } from '../../../src/core/compaction/prompt.js';
import { createPurse } from '../../../src/core/compaction/purse.js';
import { summarise } from '../../../src/core/compaction/summarise.js';
import type { Passage, SummariseInput } from '../../../src/core/compaction/summarise.js';
import type { SummaryRequest, SummaryResponse } from '../../../src/core/ports.js';

/** A record with every heading and `note` in it. */
const recordOf = (note: string): string => SUMMARY_HEADINGS.map((heading) => `${heading}\n${note}`).join('\n');

function text(part: Partial<Extract<SummaryResponse, { kind: 'text' }>> = {}): SummaryResponse {
  return {
    kind: 'text',
    text: recordOf('None.'),
    stopped: true,
    stopReason: 'stop',
    calledTool: false,
    reasoningOnly: false,
    usage: null,
    ...part,
  };
}

/** One token a character, so that sizes can be read off. */
const count = (said: string): number => said.length;

/** Passages of whole turns, one each. */
const turns = (...texts: readonly string[]): readonly Passage[] =>
  texts.map((said, index) => ({ text: said, tokens: said.length, covered: index + 1 }));

interface Run {
  readonly passages: readonly Passage[];
  readonly answers?: readonly SummaryResponse[];
  readonly input?: Partial<SummariseInput>;
  readonly calls?: number;
}

/** Answers are used up one a call; after them, a good record that names the number of the call. */
async function run({ passages, answers = [], input = {}, calls = 32 }: Run) {
  const asked: SummaryRequest[] = [];
  const outcome = await summarise(
    { task: conversationTask(null), previous: null, passages, capTokens: 1_000, inputTokens: 2_000, ...input },
    {
      ask(request) {
        asked.push(request);
        return Promise.resolve(answers[asked.length - 1] ?? text({ text: recordOf(`call ${asked.length}`) }));
      },
      purse: createPurse({ calls, durationMs: 60_000 }, () => 0),
      uniqueId: () => 'f3nc3',
      count,
    },
  );
  return { ...outcome, asked, heard: asked.map((request) => conversationIn(request.input)) };
}

function conversationIn(input: string): string {
  return /<conversation f3nc3>\n([\s\S]*)\n<\/conversation f3nc3>/.exec(input)?.[1] ?? '';
}

describe('a history that fits', () => {
  it('is one call, with the earlier record and the user’s wish, SPEC 5.6', async () => {
    const { record, stop, asked } = await run({
      passages: turns('[user] a', '[user] b'),
      input: { previous: 'Earlier.', task: conversationTask('the numbers') },
    });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.input).toMatch(/Earlier\.[\s\S]*\[user\] a\n\[user\] b[\s\S]*the numbers/);
    expect(asked[0]?.maxOutputTokens).toBe(1_000);
    expect(record).toEqual({ content: `[Previous conversation summary]\n${recordOf('call 1')}`, covered: 2 });
    expect(stop).toBeNull();
  });
});

describe('a long history goes in chunks, SPEC 5.6', () => {
  it('of whole turns, each with the record so far', async () => {
    const [a, b, c] = ['a'.repeat(900), 'b'.repeat(900), 'c'.repeat(900)] as const;
    const { record, asked, heard } = await run({ passages: turns(a, b, c), input: { inputTokens: 2_100 } });
    expect(heard).toEqual([`${a}\n${b}`, c]);
    expect(asked[0]?.input).not.toContain('earlier-record');
    expect(asked[1]?.input).toContain(recordOf('call 1'));
    expect(record?.content).toContain(recordOf('call 2'));
    expect(record?.covered).toBe(3);
  });

  it('one message larger than a call is split, whatever its size, and nothing of it is lost', async () => {
    const huge = Array.from({ length: 900 }, (_, index) => `line ${index} 📥`).join('\n');
    const { record, stop, heard } = await run({ passages: turns('before', huge, 'after') });
    expect(stop).toBeNull();
    expect(record?.covered).toBe(3);
    expect(heard.length).toBeGreaterThan(5);
    for (let index = 0; index < 900; index++) expect(heard.join('')).toContain(`line ${index} 📥`);
    expect(heard.every((part) => part.length <= 2_000)).toBe(true);
  });

  it('a piece behind the first still says whose words they are', async () => {
    const huge = `[result of c1] ${'words of a page '.repeat(300)}`;
    const { heard } = await run({ passages: turns(huge) });
    expect(heard.length).toBeGreaterThan(2);
    for (const part of heard.slice(1)) expect(part).toMatch(/^\[result of c1\b/);
  });

  it('an overflow halves the chunk, down to the limit it states, and loses nothing', async () => {
    const parts = Array.from({ length: 12 }, (_, index) => `${index}`.padEnd(150, 'x'));
    const overflow: SummaryResponse = { kind: 'overflow', limitTokens: null };
    const first = await run({ passages: turns(...parts), answers: [overflow] });
    expect(first.heard[0]?.length).toBeGreaterThan(1_500);
    expect(first.heard[1]?.length).toBeLessThanOrEqual(1_000);
    expect(first.heard.slice(1).join('\n')).toBe(parts.join('\n'));
    expect(first.record?.covered).toBe(12);
    const stated = await run({ passages: turns(...parts), answers: [{ kind: 'overflow', limitTokens: 1_200 }] });
    expect(stated.heard[1]?.length).toBeLessThanOrEqual(600);
  });

  it('overflows without end are a typed failure and end at the smallest chunk', async () => {
    const answers = Array.from({ length: 32 }, (): SummaryResponse => ({ kind: 'overflow', limitTokens: null }));
    const { record, stop, asked } = await run({ passages: turns('x'.repeat(1_500)), answers });
    expect(record).toBeNull();
    expect(stop).toEqual({ outcome: 'failed', reason: 'summariser_window_too_small' });
    expect(asked.length).toBeLessThan(5);
  });

  it('the chunks hold exactly the history, in order, at any size', async () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '📥'), minLength: 1, maxLength: 1_200 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(word, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 700, max: 2_000 }),
        async (texts, inputTokens) => {
          const { heard, record } = await run({
            passages: turns(...texts),
            input: { inputTokens },
            answers: Array.from({ length: 32 }, () => text()),
          });
          expect(record?.covered).toBe(texts.length);
          const letters = (said: string): string => said.replaceAll('\n', '');
          expect(letters(heard.join(''))).toBe(letters(texts.join('')));
        },
      ),
    );
  });
});

describe('a text that is refused', () => {
  it('gets one more try', async () => {
    const { record, asked } = await run({ passages: turns('[user] a'), answers: [text({ text: '' })] });
    expect(asked).toHaveLength(2);
    expect(record?.content).toContain('call 2');
  });

  it('is rejected with its reason the second time, and no third is asked for', async () => {
    const cut = text({ stopped: false, stopReason: 'length' });
    const { record, stop, asked } = await run({ passages: turns('[user] a'), answers: [cut, text({ text: 'no' })] });
    expect(record).toBeNull();
    expect(stop).toEqual({ outcome: 'rejected', reason: 'missing_headings' });
    expect(asked).toHaveLength(2);
  });

  it('over the cap is not cut to it', async () => {
    const long = text({ text: recordOf('x'.repeat(1_000)) });
    const { record, stop } = await run({ passages: turns('[user] a'), answers: [long, long] });
    expect(record).toBeNull();
    expect(stop).toEqual({ outcome: 'rejected', reason: 'over_cap' });
  });
});

describe('what was reached is not lost, SPEC 5.6', () => {
  const three = turns('a'.repeat(1_500), 'b'.repeat(1_500), 'c'.repeat(1_500));

  it.each<readonly [string, Partial<Run>, string]>([
    ['the purse is empty', { calls: 2 }, 'purse_empty'],
    [
      'a call fails',
      { answers: [text(), text(), { kind: 'failed', reason: 'summariser_status_500' }] },
      'summariser_status_500',
    ],
    ['a text is refused twice', { answers: [text(), text(), text({ text: '' }), text({ text: '' })] }, 'empty'],
  ])('when %s the record of the whole turns before stays usable', async (_name, how, reason) => {
    const { record, stop } = await run({ passages: three, ...how });
    expect(record?.covered).toBe(2);
    expect(stop?.reason).toBe(reason);
  });

  it('a record that ends inside a turn covers only the turns before it', async () => {
    const long: readonly Passage[] = [
      { text: 'a'.repeat(100), tokens: 100, covered: 1 },
      { text: 'b'.repeat(1_500), tokens: 1_500, covered: null },
      { text: 'c'.repeat(1_500), tokens: 1_500, covered: 3 },
    ];
    const { record } = await run({ passages: long, calls: 2, input: { inputTokens: 1_800 } });
    expect(record?.covered).toBe(1);
  });

  it('before the first whole turn there is none', async () => {
    const failed = await run({ passages: three, answers: [{ kind: 'failed', reason: 'summariser_status_401' }] });
    expect(failed).toMatchObject({ record: null, stop: { outcome: 'failed', reason: 'summariser_status_401' } });
    const poor = await run({ passages: three, calls: 0 });
    expect(poor).toMatchObject({ record: null, stop: { outcome: 'failed', reason: 'purse_empty' }, asked: [] });
  });
});

describe('credentials', () => {
  const secret = ['sk', 'live', 'abcdefghijklmnopqrstuvwxyz'].join('-');

  it('reach no summary call and no record, whoever let them in', async () => {
    const { record, asked } = await run({
      passages: turns(`[result of c1] API_KEY=${secret}`),
      input: { previous: `Earlier: ${secret}` },
      answers: [text({ text: recordOf(`the key is ${secret}`) })],
    });
    expect(JSON.stringify(asked)).not.toContain(secret);
    expect(JSON.stringify(asked)).toContain('API_KEY=[redacted]');
    expect(record?.content).not.toContain(secret);
    expect(record?.content).toContain('the key is [redacted]');
  });
});
