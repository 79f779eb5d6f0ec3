import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/worker/log.js';

describe('the log of a Worker', () => {
  it('writes JSON lines with the members that they have on Node', () => {
    const lines: string[] = [];
    createLog('info', (line) => lines.push(line)).info({ status: 200 }, 'request');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { level: 'info', time: expect.any(Number), status: 200, msg: 'request' },
    ]);
  });

  it.each([
    ['trace', ['info', 'error']],
    ['info', ['info', 'error']],
    ['warn', ['error']],
    ['error', ['error']],
    ['fatal', []],
    ['silent', []],
  ] as const)('writes nothing below %s', (least, levels) => {
    const lines: string[] = [];
    const log = createLog(least, (line) => lines.push(line));
    log.info({}, 'a');
    log.error({}, 'b');
    expect(lines.map((line) => (JSON.parse(line) as { level: string }).level)).toEqual(levels);
  });
});
