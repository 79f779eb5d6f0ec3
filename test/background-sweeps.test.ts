import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startSweeping } from '../src/background-sweeps.js';
import type { Sweep } from '../src/proxy/retention.js';

const HOUR_MS = 60 * 60_000;
const nothing: Sweep = { conversations: 0, bytes: 0 };

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

it('sweeps soon after the start and then every hour or so, whatever becomes of a sweep', async () => {
  const swept: Sweep[] = [];
  const failures: unknown[] = [];
  let sweeps = 0;
  const stop = startSweeping({
    sweep: () =>
      ++sweeps === 2 ? Promise.reject(new Error('no store')) : Promise.resolve({ conversations: sweeps, bytes: 0 }),
    onSwept: (sweep) => void swept.push(sweep),
    onFailed: (error) => void failures.push(error),
  });
  await vi.advanceTimersByTimeAsync(29_000);
  expect(sweeps).toBe(0);
  await vi.advanceTimersByTimeAsync(61_000);
  expect(sweeps).toBe(1);
  await vi.advanceTimersByTimeAsync(0.4 * HOUR_MS);
  expect(sweeps).toBe(1);
  await vi.advanceTimersByTimeAsync(3.5 * HOUR_MS);
  expect(sweeps).toBeGreaterThanOrEqual(3);
  expect(failures).toEqual([new Error('no store')]);
  expect(swept.slice(0, 2).map(({ conversations }) => conversations)).toEqual([1, 3]);
  await stop();
});

it('stops a sweep that runs, waits for its end, and begins none after it', async () => {
  let end: () => void = () => undefined;
  let stopped: AbortSignal | null = null;
  let sweeps = 0;
  const stop = startSweeping({
    sweep: (around) => {
      sweeps += 1;
      stopped = around.stopped;
      return new Promise((resolve) => (end = () => resolve(nothing)));
    },
    onSwept: () => undefined,
    onFailed: () => undefined,
  });
  await vi.advanceTimersByTimeAsync(90_000);
  let isOver = false;
  const over = stop().then(() => (isOver = true));
  await vi.advanceTimersByTimeAsync(0);
  expect(stopped).toMatchObject({ aborted: true });
  expect(isOver).toBe(false);
  end();
  await over;
  await vi.advanceTimersByTimeAsync(10 * HOUR_MS);
  expect(sweeps).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

it('stops before the first sweep', async () => {
  const sweep = vi.fn<() => Promise<Sweep>>();
  await startSweeping({ sweep, onSwept: () => undefined, onFailed: () => undefined })();
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(sweep).not.toHaveBeenCalled();
});
