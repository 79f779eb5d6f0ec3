import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { openRedisLedger } from '../../src/ledger/redis.js';
import { redisOptions } from '../ledger/redis-harness.js';
import { startChild } from '../support/child.js';
import { chunkEvent, DONE, SSE_HEADERS, startProvider } from '../support/provider.js';
import { startRedis } from '../support/redis.js';
import { Caller } from './caller.js';
import { checkHead, checkStore } from './check-store.js';
import { Milestones } from './milestones.js';
import { buildProgram } from './proxies.js';
import type { Program } from './proxies.js';

const STREAMS = 20;

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

it('SIGTERM while 20 streams run on one of two proxies: all end whole and are recorded, it exits with 0, and the other goes on, SPEC 2.4', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const begun = new Milestones<'stream'>();
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const provider = await startProvider(async ({ body }, response) => {
    const isHeld = body.includes('Take your time');
    response.writeHead(200, SSE_HEADERS).write(chunkEvent({ role: 'assistant', content: 'So far' }));
    if (isHeld) {
      begun.note('stream');
      await gate;
    }
    response.end(`${chunkEvent({ content: ' and no further.' })}${chunkEvent({}, { finish_reason: 'stop' })}${DONE}`);
  });
  const { keyPrefix } = redisOptions(redis.url);
  const settings = {
    SPILLWAY_UPSTREAM_URL: provider.url,
    SPILLWAY_DISCOVER_WINDOWS: 'off',
    SPILLWAY_STORE: 'redis',
    SPILLWAY_REDIS_URL: redis.url,
    SPILLWAY_REDIS_PREFIX: keyPrefix,
    SPILLWAY_TENANT_SECRET: 'the-secret-of-both-of-these-proxies',
  };
  const [one, other] = await Promise.all([startChild(settings, [program.file]), startChild(settings, [program.file])]);
  const callerOf = (url: string) =>
    new Caller(
      () => [url],
      () => 0,
      () => undefined,
    );
  const ask = (caller: Caller, content: string) =>
    caller.ask({ messages: [{ role: 'user', content }], streams: true, headers: {} });

  const here = callerOf(one.url);
  const streams = Promise.all(Array.from({ length: STREAMS }, (_, index) => ask(here, `${index}: Take your time.`)));
  await begun.reached('stream', STREAMS);
  one.kill('SIGTERM');
  await expect.poll(() => one.said()).toContain('finishes what is running');
  await expect(fetch(`${one.url}/health`)).rejects.toThrow();
  const there = callerOf(other.url);
  expect((await ask(there, 'Hello.')).reply).toBe('So far and no further.');
  open();
  expect((await streams).map(({ reply }) => reply)).toEqual(
    Array.from({ length: STREAMS }, () => 'So far and no further.'),
  );
  expect([...here.failures]).toEqual([]);
  expect(await one.exited).toEqual([0, null]);

  const ledger = await openRedisLedger(redisOptions(redis.url, { keyPrefix }));
  onTestFinished(() => ledger.close());
  const told = [...here.told, ...there.told];
  expect(told).toHaveLength(STREAMS + 1);
  await checkStore(ledger, told, new Set());
  for (const end of told) await checkHead(ledger, { kind: 'unnamed-forks', ends: [end] }, new Set());
});
