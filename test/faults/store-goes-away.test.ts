import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../src/config.js';
import { openLedger } from '../../src/open-ledger.js';
import { padding } from '../support/chat.js';
import type { WireMessage } from '../support/chat.js';
import { startRedis } from '../support/redis.js';
import { startPair } from '../support/start.js';
import { Caller } from './caller.js';
import type { Answer } from './caller.js';
import { checkHead, checkStore } from './check-store.js';
import { Milestones } from './milestones.js';
import { gapsIn } from './proxies.js';

const CONVERSATIONS = 20;

/** A store of its own, and how it goes and comes back. */
interface Outage {
  readonly settings: Readonly<Record<string, string>>;
  begin(): void;
  end(): Promise<void>;
}

async function redis(signal: 'SIGSTOP' | 'SIGKILL'): Promise<Outage> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  return {
    settings: { SPILLWAY_STORE: 'redis', SPILLWAY_REDIS_URL: server.url },
    begin: () => server.signal(signal),
    async end() {
      if (signal === 'SIGSTOP') server.signal('SIGCONT');
      else await server.restart();
    },
  };
}

async function heldFile(): Promise<Outage> {
  const dataDir = mkdtempSync(join(tmpdir(), 'spillway-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  let other: Database.Database | null = null;
  return {
    settings: { SPILLWAY_DATA_DIR: dataDir },
    begin() {
      other = new Database(join(dataDir, 'spillway.db'));
      other.exec('BEGIN IMMEDIATE');
    },
    async end() {
      other?.close();
    },
  };
}

it.each([
  ['a Redis that stands still and goes on', () => redis('SIGSTOP')],
  ['a Redis that is killed and comes back empty', () => redis('SIGKILL')],
  ['a SQLite file that another process holds and leaves', heldFile],
])(
  '%s under load: traffic keeps flowing, the gap is reported, and the next request of each conversation fills it, SPEC 2.4',
  async (_, makeOutage) => {
    const outage = await makeOutage();
    const arrivals = new Milestones<'request'>();
    let gate: Promise<void> = Promise.resolve();
    const script = () => (arrivals.note('request'), gate.then(() => null));
    const pair = await startPair({ ...outage.settings }, { script });
    const caller = new Caller(
      () => [pair.spillway.url],
      () => 0,
      () => undefined,
    );
    const histories: (readonly WireMessage[])[] = Array.from({ length: CONVERSATIONS }, () => []);
    /** Every conversation's next turn, all at once, each sent once. */
    const sayAll = (what: string): Promise<readonly Answer[]> =>
      Promise.all(
        histories.map(async (history, index) => {
          const messages = [...history, { role: 'user', content: padding(`${index} ${what}`, 50) }];
          const headers = { 'x-spillway-conversation': `talk ${index}` };
          const answer = await caller.ask({ messages, streams: index % 2 === 0, headers });
          histories[index] = [...messages, { role: 'assistant', content: answer.reply }];
          return answer;
        }),
      );

    await sayAll('before');
    // It goes while every turn waits for its reply.
    let open = (): void => undefined;
    gate = new Promise((resolve) => (open = resolve));
    const during = sayAll('as it goes');
    await arrivals.reached('request', 2 * CONVERSATIONS);
    outage.begin();
    open();
    const cut = await during;
    expect(gapsIn(pair.logs)).toEqual(new Set(cut.map(({ told }) => told?.head)));
    expect(gapsIn(pair.logs).size).toBe(CONVERSATIONS);
    // The header of a stream is sent before.
    expect(cut.map(({ isStored }) => isStored)).toEqual(histories.map((_history, index) => index % 2 === 0));

    for (const what of ['while it is away', 'still away']) {
      const answers = await sayAll(what);
      expect(answers.filter(({ told, isStored }) => told !== null || isStored)).toEqual([]);
    }
    expect(pair.logs.filter(({ store }) => store === 'unavailable')).toHaveLength(2 * CONVERSATIONS);

    await outage.end();
    const probe = { messages: [{ role: 'user', content: 'Is it back?' }], streams: false, headers: {} };
    await caller.askUntilStored(probe);
    const after = await sayAll('when it is back');
    expect(after.filter(({ told }) => told === null)).toEqual([]);
    expect([...caller.failures]).toEqual([]);

    const ledger = await openLedger(readConfig(outage.settings));
    onTestFinished(() => ledger.close());
    const filled = after.flatMap(({ told }) => told ?? []);
    await checkStore(ledger, filled, new Set());
    for (const told of filled) {
      expect(told.request.messages).toHaveLength(9);
      await checkHead(ledger, { kind: 'in-turn', ends: [told] }, new Set());
    }
  },
  90_000,
);
