import { describe, expect, it } from 'vitest';
import type { SendUpstream, UpstreamRequest } from '../../src/upstream/upstream.js';
import { holding, holdingSend } from '../../src/worker/holding.js';

/** Whether everything that was held has settled, once everything that can run has run. */
async function allSettled(held: readonly Promise<unknown>[]): Promise<boolean> {
  let settled = false;
  void Promise.all(held).then(() => (settled = true));
  await new Promise((resolve) => setTimeout(resolve, 0));
  return settled;
}

describe('what a request asks of the outside', () => {
  it('holds it until it is answered, and fails nothing by failing', async () => {
    const held: Promise<unknown>[] = [];
    let answer: (value: string) => void = () => undefined;
    const port = holding(
      {
        ask: (question: string) => new Promise<string>((resolve) => (answer = (value) => resolve(question + value))),
        fail: () => Promise.reject(new Error('broken')),
      },
      (work) => held.push(work),
    );
    const asked = port.ask('a');
    expect(await allSettled(held)).toBe(false);
    answer('b');
    expect(await asked).toBe('ab');
    expect(await allSettled(held)).toBe(true);
    await expect(port.fail()).rejects.toThrow('broken');
    expect(await allSettled(held)).toBe(true);
  });

  it.each(['read to its end', 'left', 'broken', 'refused'])('of an upstream, until the answer is %s', async (end) => {
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Uint8Array.of(1);
      if (end === 'broken') throw new Error('broken');
    }
    const answers: SendUpstream = async () => {
      if (end === 'refused') throw new Error('refused');
      return { status: 200, headers: [], body: body() };
    };
    const held: Promise<unknown>[] = [];
    const send = holdingSend(answers, (work) => held.push(work));
    const { signal } = new AbortController();
    const request: UpstreamRequest = { method: 'GET', url: 'https://provider.test/', headers: {}, body: null, signal };
    const seen: number[] = [];
    const read = async (): Promise<void> => {
      const response = await send(request);
      expect(await allSettled(held)).toBe(false);
      for await (const chunk of response.body) {
        seen.push(...chunk);
        if (end === 'left') break;
      }
    };
    await read().catch((error: unknown) => expect(error).toEqual(new Error(end)));
    expect(seen).toEqual(end === 'refused' ? [] : [1]);
    expect(await allSettled(held)).toBe(true);
  });
});
