import { describe, expect, it } from 'vitest';
import { SUMMARY_HEADINGS } from '../../../src/core/compaction/headings.js';
import { rejectionOf, savesEnough } from '../../../src/core/compaction/validate.js';
import type { SummaryResponse } from '../../../src/core/ports.js';

type Answer = Extract<SummaryResponse, { kind: 'text' }>;

const good = SUMMARY_HEADINGS.map((heading) => `${heading}\nNone.`).join('\n');

function answer(part: Partial<Answer>): Answer {
  return {
    kind: 'text',
    text: good,
    stopped: true,
    stopReason: 'stop',
    calledTool: false,
    reasoningOnly: false,
    usage: null,
    ...part,
  };
}

const judge = (part: Partial<Answer>, tokens = 10): string | null => rejectionOf(answer(part), tokens, 100);

describe('a summary’s text is refused, SPEC 5.7', () => {
  it.each<readonly [string, Partial<Answer>, string]>([
    ['empty', { text: '' }, 'empty'],
    ['white space', { text: ' \n\t\u00a0\u2003' }, 'empty'],
    ['cut by length', { stopped: false, stopReason: 'length' }, 'stopped_early'],
    ['stopped by a filter', { stopped: false, stopReason: 'content_filter' }, 'stopped_early'],
    ['an error’s text under a stop reason of its own', { stopped: false, stopReason: 'model_length' }, 'stopped_early'],
    ['broken off without a stop reason', { stopped: false, stopReason: null }, 'stopped_early'],
    ['a tool call, whatever stands beside it', { calledTool: true }, 'tool_call'],
    ['text that begins as a tool call', { text: `<tool_call>{"name":"x"}</tool_call>\n${good}` }, 'tool_call'],
    ['text that begins as a function call', { text: `\n <function=look>\n${good}` }, 'tool_call'],
    ['text that begins as an invocation', { text: `<invoke name="look">\n${good}` }, 'tool_call'],
    ['text that begins as JSON of a call', { text: `{ "name": "look", "arguments": {} }\n${good}` }, 'tool_call'],
    ['text that begins with a template’s mark', { text: `[TOOL_CALLS][{}]\n${good}` }, 'tool_call'],
    ['reasoning instead of text', { text: '', reasoningOnly: true }, 'reasoning_only'],
    ['the chat going on', { text: 'Sure, let us go on!' }, 'missing_headings'],
    ['a refusal', { text: 'There is no conversation to summarise.' }, 'missing_headings'],
    ['headings in another order', { text: SUMMARY_HEADINGS.toReversed().join('\nNone.\n') }, 'missing_headings'],
    [
      'headings inside a line',
      { text: SUMMARY_HEADINGS.map((heading) => `on ${heading}`).join('\n') },
      'missing_headings',
    ],
  ])('%s', (_name, part, reason) => {
    expect(judge(part)).toBe(reason);
  });

  it.each(SUMMARY_HEADINGS)('without the heading "%s"', (heading) => {
    expect(judge({ text: good.replace(heading, '') })).toBe('missing_headings');
  });

  it('over its cap, and not at it', () => {
    expect(judge({}, 101)).toBe('over_cap');
    expect(judge({}, 100)).toBeNull();
  });

  it('not for speaking of tools, or for white space around its headings', () => {
    expect(judge({ text: good.replace('None.', 'Ran <tool_call> twice; result {"name": "x"}.') })).toBeNull();
    expect(judge({ text: `\n${good.replaceAll('\n', '  \r\n')}\n` })).toBeNull();
  });
});

describe('a summary has to save enough, SPEC 5.7', () => {
  it.each([
    ['a tenth less', 1_000, 900, 0.1, true],
    ['less than the least gain', 1_000, 901, 0.1, false],
    ['as large as what it replaces', 1_000, 1_000, 0, false],
    ['smaller by one where no gain is asked for', 1_000, 999, 0, true],
    ['larger', 661, 1_752, 0.1, false],
    ['of nothing', 0, 0, 0, false],
  ])('%s', (_name, replaced, summary, gain, enough) => {
    expect(savesEnough(replaced, summary, gain)).toBe(enough);
  });
});
