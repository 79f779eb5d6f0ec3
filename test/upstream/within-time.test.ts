import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { withinTime } from '../../src/upstream/within-time.js';

setFlagsFromString('--expose-gc');
const collectGarbage: unknown = runInNewContext('gc');

/** Ends when its signal does, and holds nothing else: as a request does that nobody answers. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}

describe('work within a time', () => {
  it('ends with a TimeoutError when the time is over, whatever was collected meanwhile', async () => {
    const never = new AbortController().signal;
    const work = withinTime(300, never, untilAborted);
    const collecting = setInterval(() => typeof collectGarbage === 'function' && collectGarbage(), 10);
    await expect(work).rejects.toMatchObject({ name: 'TimeoutError' });
    clearInterval(collecting);
  });

  it('ends with the reason of the outer signal, before or while it runs', async () => {
    const outer = new AbortController();
    const work = withinTime(60_000, outer.signal, untilAborted);
    outer.abort(new Error('the client left'));
    await expect(work).rejects.toThrow('the client left');
    const seen = withinTime(60_000, outer.signal, async (signal) => String(signal.reason));
    expect(await seen).toBe('Error: the client left');
  });

  it('passes on what the work resolves to', async () => {
    expect(await withinTime(60_000, new AbortController().signal, async () => 'done')).toBe('done');
  });
});
