import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { Chat } from './support/chat.js';
import { startPair } from './support/start.js';
import { conversationsOf } from './support/stored.js';

const DAY_MS = 24 * 60 * 60_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A proxy with two conversations, and its data file. */
async function start(settings: Record<string, string>) {
  const dataDir = mkdtempSync(join(tmpdir(), 'spillway-test-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const pair = await startPair({ SPILLWAY_DATA_DIR: dataDir, ...settings });
  await new Chat(pair, { 'x-spillway-conversation': 'old' }).say('Hello');
  await new Chat(pair, { 'x-spillway-conversation': 'new' }).say('Good day');
  const database = new Database(join(dataDir, 'spillway.db'));
  onTestFinished(() => void database.close());
  return { pair, database };
}

/** The first sweep is a minute and a half after the start at the latest. */
const firstSweep = () => vi.advanceTimersByTimeAsync(90_000);
const notesOf = (pair: Awaited<ReturnType<typeof startPair>>) =>
  pair.logs.filter((line) => String(line['msg']).includes('retention'));

it('a proxy erases by itself what was last used too long ago, SPEC 2.6', async () => {
  const { pair, database } = await start({ SPILLWAY_RETENTION_DAYS: '2' });
  database.prepare("UPDATE conversation SET used_at = ? WHERE name = 'old'").run(Date.now() - 3 * DAY_MS);
  await firstSweep();
  await expect.poll(() => notesOf(pair)).toMatchObject([{ level: 'info', conversations: 1 }]);
  expect((await conversationsOf(pair)).map(({ name }) => name)).toEqual(['new']);
});

it('a store that fails is logged, and requests go on', async () => {
  const { pair, database } = await start({});
  database.exec('DROP TABLE conversation');
  await firstSweep();
  await expect.poll(() => notesOf(pair)).toMatchObject([{ level: 'error', code: 'store_unavailable' }]);
  expect((await new Chat(pair).say('Hello')).status).toBe(200);
});
