import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildPrograms } from './build.js';
import { createConversations, type Scenario } from './conversation.js';
import { openLoad, type Seen } from './load.js';
import { startServer, type MeasuredServer } from './measured-server.js';
import { median, quantile, rounded } from './statistics.js';
import type { Table } from './table.js';

/** Code is compiled while it runs: a proxy once at the start, and a little again for what each scenario brings. */
const FIRST_WARM_UP_MS = 5_000;
const WARM_UP_MS = 500;
const ROUNDS = 5;
const ROUND_MS = 650;

/** A window of a million tokens: the bytes alone show that a request fits. One of 200,000: the largest has to be counted. */
const LARGE_WINDOW = 'gpt-4.1';
const ORDINARY_WINDOW = 'o3';

const short = { messageChars: 300, turnChars: 100, stream: false, model: LARGE_WINDOW };
const scenarios: readonly Scenario[] = [
  { ...short, name: '2 kB', messages: 4, turns: 6 },
  { ...short, name: '50 kB', messages: 90, messageChars: 500, turns: 40 },
  { ...short, name: '400 kB', messages: 190, messageChars: 2_000, turns: 150 },
  { ...short, name: '400 kB, counted', messages: 190, messageChars: 2_000, turns: 150, model: ORDINARY_WINDOW },
  { ...short, name: 'stream of 200', messages: 4, turns: 6, stream: true },
];
const connectionCounts = [1, 16];

const targets = ['direct', 'pass-through', 'spillway'] as const;
type Target = (typeof targets)[number];

interface Round extends Seen {
  readonly cpuMs: number;
}

export interface OverheadOptions {
  /** Only scenarios whose name contains this; empty for all. */
  readonly only: string;
  /** Where node is to write a profile of Spillway's processor time; null for none. */
  readonly profileFolder: string | null;
}

/**
 * Spillway, with its default settings and a SQLite store, beside a bare pass-through and beside no proxy at all: the same
 * requests to the same upstream, in turns of less than a second, so that whatever else the machine does meets all three.
 */
export async function measureOverhead(options: OverheadOptions): Promise<readonly Table[]> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-bench-'));
  const started: MeasuredServer[] = [];
  try {
    const servers = await startServers(folder, options.profileFolder, started);
    const rows: Table['rows'][number][] = [];
    let conversation = 0;
    const nextConversation = (): number => ++conversation;
    const chosen = scenarios.filter(({ name }) => name.includes(options.only));
    for (const scenario of chosen.slice(0, 1)) {
      for (const target of targets) await runFor(FIRST_WARM_UP_MS, servers[target], scenario, 16, nextConversation);
    }
    for (const scenario of chosen) {
      for (const connections of connectionCounts) {
        rows.push(...rowsOf(scenario, connections, await measure(servers, scenario, connections, nextConversation)));
      }
    }
    return [
      {
        title: 'Overhead of the proxy',
        note:
          'Latency, requests a second and processor time as ratios, medians of interleaved rounds; added ms beside the bare ' +
          'pass-through. Client, proxy and upstream share the machine: the times hold for it alone, the ratios travel.',
        rows,
      },
    ];
  } finally {
    await Promise.all(started.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

async function startServers(
  folder: string,
  profileFolder: string | null,
  started: MeasuredServer[],
): Promise<Readonly<Record<Target, MeasuredServer>>> {
  const programs = await buildPrograms();
  const start = async (file: string, args: string[], nodeFlags: string[], env = {}): Promise<MeasuredServer> => {
    const server = await startServer({ file, args, env, nodeFlags: [programs.probeFlag, ...nodeFlags] });
    started.push(server);
    return server;
  };
  const direct = await start(programs.upstream, [], []);
  const passThrough = await start(programs.passThrough, [direct.url], []);
  const profileFlags = profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`];
  const spillway = await start(programs.spillway, ['serve'], profileFlags, {
    SPILLWAY_UPSTREAM_URL: direct.url,
    SPILLWAY_PORT: '0',
    SPILLWAY_DATA_DIR: folder,
  });
  return { direct, 'pass-through': passThrough, spillway };
}

async function measure(
  servers: Readonly<Record<Target, MeasuredServer>>,
  scenario: Scenario,
  connections: number,
  nextConversation: () => number,
): Promise<Readonly<Record<Target, readonly Round[]>>> {
  const rounds: Record<Target, Round[]> = { direct: [], 'pass-through': [], spillway: [] };
  for (const target of targets) await runFor(WARM_UP_MS, servers[target], scenario, connections, nextConversation);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const target of targets) {
      rounds[target].push(await runFor(ROUND_MS, servers[target], scenario, connections, nextConversation));
    }
  }
  return rounds;
}

async function runFor(
  durationMs: number,
  { url, cpuMs }: MeasuredServer,
  scenario: Scenario,
  connections: number,
  nextConversation: () => number,
): Promise<Round> {
  const conversations = createConversations(scenario);
  const load = await openLoad({ url, scenario, conversations, connections, nextConversation });
  try {
    const before = await cpuMs();
    const seen = await load.run(durationMs);
    return { ...seen, cpuMs: (await cpuMs()) - before };
  } finally {
    await load.close();
  }
}

function rowsOf(
  scenario: Scenario,
  connections: number,
  rounds: Readonly<Record<Target, readonly Round[]>>,
): Table['rows'] {
  /** Spillway's figure by the other's, round by round: what disturbs a round disturbs both. */
  const ratio = (other: Target, figure: (round: Round) => number): number =>
    rounded(median(rounds.spillway.map((round, index) => figure(round) / figure(rounds[other][index] ?? round))));
  const added = (times: 'firstMs' | 'wholeMs', share: number): number => {
    const [ours = 0, theirs = 0] = (['spillway', 'pass-through'] as const).map((target) =>
      quantile(
        rounds[target].flatMap((round) => round[times]),
        share,
      ),
    );
    return rounded(ours - theirs);
  };
  const row = (request: string, times: 'firstMs' | 'wholeMs'): Table['rows'][number] => ({
    request,
    connections,
    'latency / direct': ratio('direct', (round) => median(round[times])),
    'latency / bare': ratio('pass-through', (round) => median(round[times])),
    'p99 / bare': ratio('pass-through', (round) => quantile(round[times], 0.99)),
    'added ms': added(times, 0.5),
    'added p99 ms': added(times, 0.99),
    'req/s / direct': ratio('direct', (round) => round.requests / round.durationMs),
    'req/s / bare': ratio('pass-through', (round) => round.requests / round.durationMs),
    'CPU / bare': ratio('pass-through', (round) => round.cpuMs / round.requests),
    'CPU ms': rounded(median(rounds.spillway.map((round) => round.cpuMs / round.requests))),
  });
  return scenario.stream
    ? [row(`${scenario.name}, first byte`, 'firstMs'), row(scenario.name, 'wholeMs')]
    : [row(scenario.name, 'wholeMs')];
}
