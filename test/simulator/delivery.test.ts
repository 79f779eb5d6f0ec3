import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { noAnswer, say } from '../../src/simulator/reply-plan.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import { eventsOf, jsonOf, postChat, simulate } from './simulate.js';

const TEXT = 'Grüße aus Kyōto: 你好, 👩‍👩‍👧, and a long enough rest to come in many pieces.';
const body = (stream: boolean) => ({ model: 'm', messages: [{ role: 'user', content: 'Hello' }], stream });

/** The body in the chunks it was sent in, as far as it came, and whether its end came. */
function chunksOf(simulator: Simulator, stream = true): Promise<{ chunks: readonly Buffer[]; complete: boolean }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      `${simulator.url}/v1/chat/completions`,
      { method: 'POST', headers: { authorization: 'Bearer key' } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', () => {});
        response.on('close', () => resolve({ chunks, complete: response.complete }));
      },
    );
    sent.on('error', reject);
    sent.end(JSON.stringify(body(stream)));
  });
}

const textOf = (stream: string) =>
  eventsOf(stream)
    .map(({ choices }) => choices[0]?.delta.content ?? '')
    .join('');

describe('a reply is sent', () => {
  test('as one write an event, or split at any byte, with the same bytes in the end', async () => {
    const whole = await chunksOf(await simulate({ script: () => say(TEXT) }));
    expect(
      whole.chunks.every((chunk) => chunk.toString().startsWith('data: ') && chunk.toString().endsWith('\n\n')),
    ).toBe(true);
    expect(textOf(Buffer.concat(whole.chunks).toString())).toBe(TEXT);
    for (const splitBytes of [1, 2, 3, 7]) {
      const simulator = await simulate({ script: () => say(TEXT, { splitBytes }) });
      const { chunks } = await chunksOf(simulator);
      expect(Math.max(...chunks.map((chunk) => chunk.length))).toBe(splitBytes);
      expect(chunks.some((chunk) => chunk.toString().includes('\uFFFD'))).toBe(true);
      expect(textOf(Buffer.concat(chunks).toString())).toBe(TEXT);
    }
  });

  test('with waits before the status and between pieces, the plan before the setting', async () => {
    const simulator = await simulate({
      delivery: { pieceDelayMs: 1, headerDelayMs: 60_000 },
      script: () => say(TEXT, { headerDelayMs: 1 }),
    });
    const { chunks, complete } = await chunksOf(simulator);
    expect([complete, textOf(Buffer.concat(chunks).toString())]).toEqual([true, TEXT]);
  });

  test('by nobody before a script has settled', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const simulator = await simulate({ script: () => held.then(() => say('Hi')) });
    const pending = postChat(simulator, body(false));
    expect(await simulator.waitFor(({ state }) => state === 'answering')).toMatchObject({ status: null });
    release();
    expect((await jsonOf(await pending)).choices[0].message.content).toBe('Hi');
  });
});

describe('a reply breaks off', () => {
  test('before the status line', async () => {
    const simulator = await simulate({ script: () => noAnswer('close') });
    await expect(postChat(simulator, body(true))).rejects.toThrow('fetch failed');
    expect(await simulator.waitFor(({ endedAt }) => endedAt !== null)).toMatchObject({ state: 'cut' });
  });

  test.each([0, 1, 4])('after the headers and %i pieces', async (after) => {
    const simulator = await simulate({ script: () => say(TEXT, { cut: { after, how: 'close' } }) });
    const { chunks, complete } = await chunksOf(simulator);
    expect([chunks.length, complete]).toEqual([after, false]);
  });

  test('in the middle of a whole body, at the latest before its last piece', async () => {
    const simulator = await simulate({ script: () => say(TEXT, { cut: { after: 99, how: 'close' } }) });
    const { chunks, complete } = await chunksOf(simulator, false);
    expect([chunks.length, complete]).toEqual([1, false]);
    expect(() => JSON.parse(chunks.join(''))).toThrow(SyntaxError);
  });

  test('with an error of the provider, after some content', async () => {
    const refusal = { kind: 'refusal' as const, status: 500, body: { error: { message: 'overloaded' } } };
    const simulator = await simulate({ script: () => ({ ...say(TEXT), failure: { afterPieces: 3, refusal } }) });
    const events = eventsOf(await (await postChat(simulator, body(true))).text());
    expect(events).toHaveLength(4);
    expect(events[3]).toEqual({ error: { message: 'overloaded' } });
    expect((await postChat(simulator, body(false))).status).toBe(500);
  });

  test.each(['nothing', 2] as const)(
    'into silence after %s until the client leaves, which is recorded',
    async (after) => {
      const simulator = await simulate({ script: () => say(TEXT, { cut: { after, how: 'stall' } }) });
      const leaving = new AbortController();
      const pending = postChat(simulator, body(true), { signal: leaving.signal }).then((response) => response.text());
      const record = await simulator.waitFor(({ status }) => status === 200);
      expect(record).toMatchObject({ state: 'answering', endedAt: null });
      leaving.abort();
      await expect(pending).rejects.toThrow('aborted');
      await simulator.waitFor(({ state }) => state === 'aborted');
      expect(record.endedAt).toBeGreaterThanOrEqual(record.arrivedAt);
    },
  );

  test('when the simulator is closed, which then refuses connections', async () => {
    const simulator = await simulate({ script: () => noAnswer('stall') });
    const closed = simulator.waitFor(({ status }) => status === 200).then(() => simulator.close());
    const [broken] = await Promise.allSettled([postChat(simulator, body(true)), closed]);
    expect(broken.status).toBe('rejected');
    await expect(postChat(simulator, body(true))).rejects.toThrow('fetch failed');
  });
});

test('a script that throws is a 500 and the next request is served', async () => {
  let calls = 0;
  const simulator = await simulate({
    script: () => {
      calls += 1;
      if (calls === 1) throw new Error('a mistake in the script');
      return null;
    },
  });
  const failed = await postChat(simulator, body(false));
  expect([failed.status, (await jsonOf(failed)).error.message]).toEqual([
    500,
    'simulator: Error: a mistake in the script',
  ]);
  expect(await simulator.waitFor(({ endedAt }) => endedAt !== null)).toMatchObject({ state: 'answered', status: 500 });
  expect((await postChat(simulator, body(false))).status).toBe(200);
});
