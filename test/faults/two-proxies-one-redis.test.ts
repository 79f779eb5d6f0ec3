import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { openRedisLedger } from '../../src/ledger/redis.js';
import { randomNumbers } from '../ledger/random-numbers.js';
import { redisOptions } from '../ledger/redis-harness.js';
import { simulate } from '../simulator/simulate.js';
import { startRedis } from '../support/redis.js';
import { Caller } from './caller.js';
import { checkHead, checkLine, checkStore } from './check-store.js';
import { speak } from './conversations.js';
import type { Kind } from './conversations.js';
import { Milestones } from './milestones.js';
import { buildProgram, gapsIn, Proxies } from './proxies.js';
import type { Program } from './proxies.js';

const rounds = Number(process.env['FAULTS_ROUNDS'] ?? 1);
const firstSeed = Number(process.env['FAULTS_SEED'] ?? Date.now() % 1_000_000);

const WINDOW = 4_000;
const CLIENTS = 5;
const TURNS = 6;
const KINDS: readonly Kind[] = [
  ...(['in-turn', 'in-turn', 'in-turn', 'thin-in-turn', 'thin-at-once'] as const),
  ...(['forks', 'forks', 'forks', 'unnamed-forks', 'unnamed-forks'] as const),
];
const ANSWERS = KINDS.length * CLIENTS * TURNS;

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

/** Where a proxy is killed and Redis ends: when so much of a kind has happened. */
function faultsOf(random: (limit: number) => number) {
  const kinds = ['answer', 'request', 'summary'] as const;
  const kind = kinds[random(kinds.length)] ?? 'answer';
  // Some way after the start and before the end, when all is under way.
  const most = kind === 'summary' ? 20 : ANSWERS / 2;
  return {
    kill: { kind, count: 2 + random(most), which: random(2) },
    redis: {
      count: ANSWERS / 5 + random(ANSWERS / 2),
      signal: random(2) === 0 ? ('SIGKILL' as const) : ('SIGTERM' as const),
      pauseMs: random(3_500),
    },
  };
}

it.each(Array.from({ length: rounds }, (_, round) => firstSeed + round))(
  'two proxies on one Redis lose nothing acknowledged when one is killed and Redis is restarted, SPEC 2.4, 3.4, 3.5, 8.1, 8.2 (FAULTS_SEED=%i)',
  async (seed) => {
    const random = randomNumbers(seed);
    const faults = faultsOf(random);
    const redis = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    onTestFinished(() => redis.stop());
    const milestones = new Milestones<'answer' | 'request' | 'summary'>();
    const simulator = await simulate({
      keepRequests: 1,
      delivery: { pieceDelayMs: 1 },
      script: () => (milestones.note('request'), null),
      summariser: () => (milestones.note('summary'), { kind: 'slow', delayMs: 20 }),
    });
    const { keyPrefix } = redisOptions(redis.url);
    const proxies = new Proxies(program, {
      SPILLWAY_UPSTREAM_URL: `${simulator.url}/v1`,
      SPILLWAY_DISCOVER_WINDOWS: 'off',
      SPILLWAY_WINDOWS: `*=${WINDOW}`,
      SPILLWAY_STORE: 'redis',
      SPILLWAY_REDIS_URL: redis.url,
      SPILLWAY_REDIS_PREFIX: keyPrefix,
      SPILLWAY_TENANT_SECRET: 'the-secret-of-both-of-these-proxies',
    });
    await Promise.all([proxies.start(), proxies.start()]);

    const caller = new Caller(proxies.urls, random, () => milestones.note('answer'));
    const killed = milestones.reached(faults.kill.kind, faults.kill.count).then(async () => {
      await proxies.kill(faults.kill.which);
      await proxies.start();
    });
    const restarted = milestones
      .reached('answer', faults.redis.count)
      .then(() => redis.restart(faults.redis.pauseMs, faults.redis.signal));
    const spoken = await Promise.all(
      KINDS.map((kind, index) =>
        speak(kind, { caller, seed: seed + index * CLIENTS, name: `talk ${index}`, clients: CLIENTS, turns: TURNS }),
      ),
    );
    await Promise.all([killed, restarted]);
    expect(await proxies.stop()).toEqual([0, 0]);

    const gaps = gapsIn(proxies.logs());
    const ledger = await openRedisLedger(redisOptions(redis.url, { keyPrefix }));
    onTestFinished(() => ledger.close());
    expect(caller.told.length).toBeGreaterThan(ANSWERS / 2);
    await checkStore(ledger, caller.told, gaps);
    for (const one of spoken) {
      await checkHead(ledger, one, gaps);
      const here = caller.told.filter(({ conversation }) => conversation === one.ends[0]?.conversation);
      if (!one.kind.endsWith('forks')) await checkLine(ledger, here);
    }
    expect(milestones.count('summary')).toBeGreaterThan(10);
  },
  180_000,
);
