import type { Row } from './client.js';

const WIDTHS = [5, 12, 9, 9, 7, 32, 8] as const;

export function tableHead(): string {
  return [
    line(['turn', 'step', 'messages', 'tokens', 'window', 'Spillway did', 'ms']),
    '≤ at most, by the bytes alone   – not counted: nothing depended on it   · nothing to do\n',
  ].join('\n');
}

/** One request: the tokens that were sent, and their share of the window. */
export function tableLine(turn: number, row: Row, windowTokens: number): string {
  const tokens = Number(header(row, 'tokens-after'));
  const isBound = header(row, 'tokens-kind') === 'bound';
  // A bound, of a token for every few bytes at least, says nothing once it is beyond the window.
  const figure = (text: string): string => (!isBound ? text : tokens > windowTokens ? '–' : `≤${text}`);
  return line([
    String(turn),
    row.label,
    String(row.messages),
    figure(String(tokens)),
    figure(`${Math.round((100 * tokens) / windowTokens)}%`),
    deed(row),
    row.durationMs.toFixed(0),
  ]);
}

function deed(row: Row): string {
  const action = header(row, 'action');
  // Of a refused request nothing was counted but what came of it.
  if (action === 'reactive') return `reactive: refused → ${header(row, 'tokens-after')} tokens`;
  return action === 'none' ? '·' : `${action}: ${header(row, 'tokens-before')} → ${header(row, 'tokens-after')} tokens`;
}

export function totals(rows: readonly Row[], turns: number, durationMs: number): string {
  const count = (action: string): number => rows.filter((row) => header(row, 'action') === action).length;
  const overhead = rows
    .filter((row) => header(row, 'action') === 'none')
    .map((row) => Number(header(row, 'overhead-ms')));
  const median = overhead.toSorted((a, b) => a - b)[Math.floor(overhead.length / 2)] ?? 0;
  return (
    `${turns} turns, ${rows.length} requests, none failed, in ${(durationMs / 1000).toFixed(1)} s. ` +
    `${count('auto')} were compacted first, ${count('reactive')} after a refusal; on the others Spillway took ${median.toFixed(1)} ms (median).`
  );
}

function header(row: Row, name: string): string {
  return row.headers.get(`x-spillway-${name}`) ?? '';
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, index) => cell.padEnd(WIDTHS[index] ?? 0))
    .join('  ')
    .trimEnd();
}
