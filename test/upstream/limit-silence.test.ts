import { describe, expect, it, vi } from 'vitest';
import { limitSilence } from '../../src/upstream/limit-silence.js';
import type { SendUpstream, UpstreamRequest } from '../../src/upstream/upstream.js';

const request: UpstreamRequest = {
  method: 'GET',
  url: 'https://provider.test/v1/models',
  headers: {},
  body: null,
  signal: new AbortController().signal,
};
const timedOut = { code: 'upstream_timeout', message: 'provider.test sent nothing for 1000 ms' };

/** Resolves when the signal aborts, with its reason, as `fetch` rejects. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

/** Three pieces, 900 ms before each, and then nothing. */
async function* threePieces(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (const piece of [1, 2, 3]) {
    await new Promise((resolve) => setTimeout(resolve, 900));
    yield Uint8Array.of(piece);
  }
  await aborted(signal);
}

describe('limitSilence', () => {
  it('ends a request without an answer after that time, and no earlier', async () => {
    vi.useFakeTimers();
    const send = limitSilence(({ signal }) => aborted(signal), 1_000);
    const answer = send(request).catch((error: unknown) => error);
    let settled = false;
    void answer.then(() => (settled = true));
    await vi.advanceTimersByTimeAsync(999);
    expect(settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await answer).toMatchObject(timedOut);
    vi.useRealTimers();
  });

  it('passes on what its request was aborted with, and its own failures', async () => {
    const leave = new AbortController();
    const answer = limitSilence(({ signal }) => aborted(signal), 1_000)({ ...request, signal: leave.signal });
    leave.abort(new Error('left'));
    await expect(answer).rejects.toThrow('left');
    await expect(limitSilence(() => Promise.reject(new Error('broken')), 1_000)(request)).rejects.toThrow('broken');
  });

  it('ends the body when its reader leaves', async () => {
    let ended = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield Uint8Array.of(1);
      } finally {
        ended = true;
      }
    }
    const response = await limitSilence(async () => ({ status: 200, headers: [], body: endless() }), 1_000)(request);
    for await (const _ of response.body) break;
    expect(ended).toBe(true);
  });

  it('allows it anew for every piece of the body, and ends one that stops', async () => {
    vi.useFakeTimers();
    const sent: SendUpstream = async ({ signal }) => ({ status: 200, headers: [], body: threePieces(signal) });
    const response = await limitSilence(sent, 1_000)(request);
    const seen: number[] = [];
    const reading = (async () => {
      for await (const chunk of response.body) seen.push(...chunk);
    })().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(2_700);
    expect(seen).toEqual([1, 2, 3]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await reading).toMatchObject(timedOut);
    vi.useRealTimers();
  });
});
