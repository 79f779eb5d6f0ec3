import type { Row } from './client.js';

const WIDTHS = [5, 12, 9, 9, 7, 26, 8] as const;

export function tableHead(): string {
  return line(['turn', 'step', 'messages', 'tokens', 'window', 'Spillway did', 'ms']);
}

/** One request: tokens as rendered (`≤`: nothing was counted, the bytes show that it fits) and their share of the window. */
export function tableLine(turn: number, row: Row, windowTokens: number): string {
  const tokens = Number(header(row, 'tokens-after'));
  const atMost = header(row, 'tokens-kind') === 'bound' ? '≤' : '';
  return line([
    String(turn),
    row.label,
    String(row.messages),
    `${atMost}${tokens}`,
    `${atMost}${Math.round((100 * tokens) / windowTokens)}%`,
    deed(row),
    row.durationMs.toFixed(0),
  ]);
}

function deed(row: Row): string {
  const action = header(row, 'action');
  return action === 'none' ? '·' : `${action}: ${header(row, 'tokens-before')} → ${header(row, 'tokens-after')} tokens`;
}

export function totals(rows: readonly Row[], turns: number, durationMs: number): string {
  const acted = rows.filter((row) => header(row, 'action') !== 'none');
  const overhead = rows
    .filter((row) => header(row, 'action') === 'none')
    .map((row) => Number(header(row, 'overhead-ms')));
  const median = overhead.toSorted((a, b) => a - b)[Math.floor(overhead.length / 2)] ?? 0;
  return (
    `${turns} turns, ${rows.length} requests, none failed, in ${(durationMs / 1000).toFixed(1)} s. ` +
    `${acted.length} of them were compacted first; on the others Spillway took ${median.toFixed(1)} ms (median).`
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
