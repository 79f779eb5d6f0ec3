import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { betterSqlite, openSqliteLedger } from '../../src/ledger/sqlite.js';
import { randomNumbers } from '../ledger/random-numbers.js';
import { simulate } from '../simulator/simulate.js';
import { Caller } from './caller.js';
import { checkHead, checkStore } from './check-store.js';
import { speak } from './conversations.js';
import type { Kind } from './conversations.js';
import { Milestones } from './milestones.js';
import { buildProgram, gapsIn, Proxies } from './proxies.js';
import type { Program } from './proxies.js';

const rounds = Number(process.env['FAULTS_KILLS'] ?? 8);
const seed = Number(process.env['FAULTS_SEED'] ?? Date.now() % 1_000_000);

const KINDS: readonly Kind[] = ['in-turn', 'thin-in-turn', 'forks', 'unnamed-forks'];

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

it(
  `a proxy on a SQLite file, killed ${rounds} times under load, has everything acknowledged, SPEC 2.4, 3.5, 8.1 (FAULTS_SEED=${seed})`,
  async () => {
    const random = randomNumbers(seed);
    const dataDir = mkdtempSync(join(tmpdir(), 'spillway-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const milestones = new Milestones<'answer' | 'request'>();
    const simulator = await simulate({
      keepRequests: 1,
      delivery: { pieceDelayMs: 1 },
      script: () => (milestones.note('request'), null),
    });
    const proxies = new Proxies(program, {
      SPILLWAY_UPSTREAM_URL: `${simulator.url}/v1`,
      SPILLWAY_DISCOVER_WINDOWS: 'off',
      SPILLWAY_WINDOWS: '*=4000',
      SPILLWAY_DATA_DIR: dataDir,
    });
    const caller = new Caller(proxies.urls, random, () => milestones.note('answer'));
    let isOver = false;
    const endless = async (kind: Kind, place: number) => {
      for (let talk = 0; ; talk++) {
        const name = `talk ${place}-${talk}`;
        const spoken = await speak(kind, { caller, seed: seed + random(1_000), name, clients: 3, turns: 5 });
        if (isOver) return spoken;
      }
    };
    await proxies.start();
    const speaking = Promise.all(KINDS.map(endless));

    let checked = 0;
    for (let round = 0; round < rounds; round++) {
      const kind = random(2) === 0 ? 'answer' : 'request';
      await milestones.reached(kind, milestones.count(kind) + 1 + random(25));
      await proxies.kill(0);
      const told = caller.told.slice(checked);
      checked = caller.told.length;
      await withLedger(dataDir, (ledger) => checkStore(ledger, told, gapsIn(proxies.logs())));
      await checkIntegrity(dataDir);
      await proxies.start();
    }
    isOver = true;
    const spoken = await speaking;
    expect(await proxies.stop()).toEqual([0]);
    const gaps = gapsIn(proxies.logs());
    await withLedger(dataDir, async (ledger) => {
      await checkStore(ledger, caller.told, gaps);
      for (const one of spoken) await checkHead(ledger, one, gaps);
    });
  },
  60_000 + rounds * 10_000,
);

async function withLedger(
  dataDir: string,
  look: (ledger: Awaited<ReturnType<typeof openSqliteLedger>>) => Promise<void>,
) {
  const file = join(dataDir, 'spillway.db');
  const ledger = await openSqliteLedger({ file, durability: 'normal', busyTimeoutMs: 1_000, clock: Date.now });
  await look(ledger);
  await ledger.close();
}

async function checkIntegrity(dataDir: string): Promise<void> {
  const sqlite = await betterSqlite();
  if (sqlite === null) throw new Error('better-sqlite3 is a dependency and did not load');
  const handle = sqlite(join(dataDir, 'spillway.db'));
  expect(handle.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  handle.close();
}
