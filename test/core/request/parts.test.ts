import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { estimateView } from '../../../src/core/estimate.js';
import type { Summary } from '../../../src/core/ports.js';
import { render } from '../../../src/core/render.js';
import { partsOf } from '../../../src/core/request/parts.js';
import { NO_REDUCTION } from '../../../src/core/request/reduction.js';
import type { Checkpoint } from '../../../src/core/request/reduction.js';
import { chatCompletions } from '../../../src/dialects/chat-completions.js';
import { calls, fitInput, result, spineOf, user, words } from './loop.js';

const image = { type: 'image_url', image_url: { url: 'https://example.invalid/a.png' } };
const system = (content: string) => ({ role: 'system', content });
const assistant = (content: string) => ({ role: 'assistant', content });

/** The parts of a view, and its estimate. */
function measured(wire: readonly unknown[], covered: number, told: readonly [number, number] | null) {
  const spine = spineOf(wire);
  const ruler = { ...fitInput(spine, {}).ruler, fixedTokens: 50 };
  const segment = (from: number, to: number) => ({
    first: spine[from]?.id ?? '',
    last: spine[to - 1]?.id ?? '',
    count: to - from,
  });
  const content = 'What was said.';
  const summary: Summary | null =
    covered === 0 ? null : { id: 'summary_1', ...segment(0, covered), content, tokens: null, tokenizer: null };
  const checkpoint: Checkpoint | null =
    told === null ? null : { ...segment(...told), content, tokens: ruler.summaryTokens(content) };
  const view = render(spine, summary, checkpoint === null ? NO_REDUCTION : { results: [], checkpoints: [checkpoint] });
  return { parts: partsOf(spine, view, ruler, chatCompletions), tokens: estimateView(view, ruler) };
}

describe('the parts of a request, SPEC 7.7', () => {
  it('tell instructions, summaries, media, user text, the open group and older history apart', () => {
    const { parts } = measured(
      [
        user(words(7)),
        assistant(words(9)),
        system(words(10)),
        user(words(20)),
        calls('told'),
        result('told', words(30)),
        user([{ type: 'text', text: words(5) }, image]),
        assistant(words(40)),
        system(words(11)),
        user(words(21)),
        calls('seen'),
        result('seen', [image]),
        calls('open', 'done'),
        result('done', words(60)),
      ],
      3,
      [4, 6],
    );
    const frame = 4;
    const call = frame + 8 + 2;
    expect(parts).toEqual({
      fixed: 50 + 3 + (frame + 10) + (frame + 11),
      summaries: parts.summaries,
      media: frame + 5 + 500 + (frame + 8 + 500),
      userText: frame + 20 + (frame + 21),
      openGroup: frame + 2 * (call - frame) + (frame + 8 + 60),
      history: frame + 40 + call,
    });
    expect(parts.summaries).toBeGreaterThan(40);
  });

  it('add up to the estimate of what is sent, whatever the history', () => {
    const step = fc.constantFrom(
      [user(words(3))],
      [user([image])],
      [system(words(4))],
      [assistant(words(5))],
      [calls('a'), result('a', words(6))],
      [calls('b'), result('b', [{ type: 'text', text: words(2) }, image])],
      [calls('open')],
    );
    const span = fc.tuple(fc.nat({ max: 8 }), fc.integer({ min: 1, max: 4 }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.nat({ max: 4 }), fc.option(span), (steps, first, second) => {
        const wire = steps.flat();
        const covered = Math.min(first, wire.length);
        const from = second === null ? wire.length : covered + second[0];
        const to = second === null ? from : from + second[1];
        const { parts, tokens } = measured(wire, covered, to <= wire.length && to > from ? [from, to] : null);
        expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBe(tokens);
      }),
    );
  });
});
