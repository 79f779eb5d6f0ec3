import { inspect } from 'node:util';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../src/config.js';
import { openStore } from '../src/open-ledger.js';
import { Chat } from './support/chat.js';
import { startRedis, until } from './support/redis.js';
import { startPair } from './support/start.js';
import type { StartedPair } from './support/start.js';

const server = await startRedis();
afterAll(() => server.stop());

const onRedis = (changes: Record<string, string> = {}) => ({
  SPILLWAY_STORE: 'redis',
  SPILLWAY_REDIS_URL: server.url,
  SPILLWAY_REDIS_TIMEOUT_MS: '1000',
  ...changes,
});

async function nodesIn(pair: StartedPair, id: string): Promise<number> {
  return ((await pair.api(`/conversations/${id}/nodes?limit=1000`)) as { data: unknown[] }).data.length;
}

it('traffic goes on while Redis is away, says so, and the next turn fills the gap from the client’s own history, SPEC 2.4', async () => {
  const pair = await startPair(onRedis({ SPILLWAY_REDIS_PREFIX: 'gap:' }));
  const chat = new Chat(pair);
  const first = await chat.say('one');
  const id = first.spillway['conversation'] ?? '';
  expect(first.spillway).not.toHaveProperty('store');

  const restarted = server.restart(1_000);
  await until(async () => (await chat.say('while it is away')).spillway['store'] === 'unavailable');
  await restarted;
  await until(async () => (await chat.say('when it is back')).spillway['store'] === undefined);
  // Nothing was on disk: all of it comes from the client.
  expect(await nodesIn(pair, id)).toBe(chat.messages.length);
  expect(pair.logText()).not.toContain('while it is away');
});

it('a conversation outlives the proxy, and another proxy on the same Redis goes on with it', async () => {
  const shared = onRedis({ SPILLWAY_REDIS_PREFIX: 'two:', SPILLWAY_TENANT_SECRET: 'x'.repeat(32) });
  const one = await startPair(shared);
  const another = await startPair(shared);
  const named = { 'x-spillway-conversation': 'shared' };
  const chat = new Chat(one, named);
  const seen = await chat.say('one');
  const onward = new Chat(another, named);
  onward.messages = chat.messages;
  expect((await onward.say('two')).spillway['conversation']).toBe(seen.spillway['conversation']);
  await one.restart();
  expect(await nodesIn(one, seen.spillway['conversation'] ?? '')).toBe(4);
});

it('the first turn of a conversation, too, keeps thin clients of another proxy from its place while it runs, SPEC 1.6', async () => {
  let end: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (end = resolve));
  const shared = onRedis({ SPILLWAY_REDIS_PREFIX: 'thin:', SPILLWAY_TENANT_SECRET: 'x'.repeat(32) });
  const one = await startPair(shared, { script: () => held.then(() => null) });
  const another = await startPair(shared);
  const thin = { 'x-spillway-conversation': 'shared', 'x-spillway-append': 'true' };
  const saying = (content: string) => ({ model: 'any', messages: [{ role: 'user', content }] });
  const running = one.post(saying('One'), thin);
  await one.simulator.waitFor(() => true);
  const refused = await another.post(saying('Two'), thin);
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ error: { code: 'turn_in_progress' } });
  end();
  expect((await running).status).toBe(200);
  expect((await another.post(saying('Two'), thin)).status).toBe(200);
});

it('a Redis that refuses the password ends the start with the setting’s name, and shows no password', async () => {
  const locked = await startRedis({ args: ['--requirepass', 'sesame'] });
  onTestFinished(() => locked.stop());
  const config = readConfig(onRedis({ SPILLWAY_REDIS_URL: `redis://:hunter2@127.0.0.1:${locked.port}` }));
  const refused: unknown = await openStore(config).catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: 'store_unavailable',
    field: 'SPILLWAY_REDIS_URL',
    message: expect.stringMatching(/^SPILLWAY_REDIS_URL: .*refuses the user or the password/),
  });
  expect(inspect(refused, { depth: 10 })).not.toMatch(/hunter2|sesame/);
});
