import { describe, expect, it } from 'vitest';
import { graphText } from '../../scripts/demo/graph-text.js';
import { tableHead, tableLine } from '../../scripts/demo/table.js';

/** The cells of a row in a table for a window of 1,000 tokens. */
function cells(headers: Readonly<Record<string, string>>): readonly string[] {
  const named = Object.entries(headers).map(([name, value]): [string, string] => [`x-spillway-${name}`, value]);
  const row = { label: 'chat', messages: 2, headers: new Headers(named), durationMs: 7 };
  return tableLine(1, row, 1000).split(/ {2,}/).slice(3);
}

describe('a row of the demo', () => {
  it('shows a bound as one, and only while it is within the window', () => {
    const at = (tokens: string) => cells({ action: 'none', 'tokens-kind': 'bound', 'tokens-after': tokens });
    expect(at('900')).toEqual(['≤900', '≤90%', '·', '7']);
    expect(at('1001')).toEqual(['–', '–', '·', '7']);
    for (const mark of ['≤', '–', '·']) expect(tableHead()).toContain(mark);
  });

  it('shows what was done, ahead or after a refusal', () => {
    const after = { 'tokens-kind': 'estimate', 'tokens-before': '900', 'tokens-after': '300' };
    expect(cells({ ...after, action: 'auto' })).toEqual(['300', '30%', 'auto: 900 → 300 tokens', '7']);
    expect(cells({ ...after, action: 'reactive' })).toEqual(['300', '30%', 'reactive: refused → 300 tokens', '7']);
  });
});

it('the graph of the demo tells a first reply from the one that was asked for again', () => {
  const node = (id: string, predecessor: string, role: string) => ({ id, predecessor, role, metadata: {} });
  const nodes = [node('aaaaaa', 'ROOT', 'user'), node('bbbbbb', 'aaaaaa', 'llm'), node('cccccc', 'aaaaaa', 'llm')];
  const [, ...lines] = graphText(nodes, 'cccccc').split('\n');
  expect(lines).toEqual([
    '● 1 messages  aaaaaa … aaaaaa (user)',
    '  ● 1 messages  bbbbbb … bbbbbb (llm), the first reply',
    '  ● 1 messages  cccccc … cccccc (llm), the regenerated reply  ◀ HEAD',
  ]);
});
