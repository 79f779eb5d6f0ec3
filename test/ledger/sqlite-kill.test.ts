import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isSummary } from '../../src/core/node.js';
import { betterSqlite, openSqliteLedger } from '../../src/ledger/sqlite.js';
import { alice, endOf } from './builders.js';
import type { Announcement } from './kill-writer.js';
import { randomNumbers } from './random-numbers.js';

const rounds = Number(process.env['LEDGER_KILL_ROUNDS'] ?? 25);
const seed = Number(process.env['LEDGER_KILL_SEED'] ?? Date.now() % 1_000_000);

// The writer is bundled where it finds its packages: a compiled file starts many times faster than one through a loader.
const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));
let folder: string;
let writer: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-'));
  mkdirSync(cache, { recursive: true });
  writer = join(mkdtempSync(join(cache, 'kill-')), 'writer.mjs');
  const entry = fileURLToPath(new URL('kill-writer.ts', import.meta.url));
  await build({
    entryPoints: [entry],
    outfile: writer,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
  });
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(join(writer, '..'), { recursive: true });
});

/** What an observer of the acknowledgements knows to be in the store. */
interface Known {
  readonly nodes: ReadonlySet<string>;
  readonly head: string;
  readonly activeSummary: string | null;
}

function after(known: Known, { nodes, head, activeSummary }: Announcement): Known {
  return { nodes: new Set([...known.nodes, ...nodes]), head, activeSummary };
}

/** Runs the writer on the file and kills it after some acknowledgements, wherever it is then. */
async function writeUntilKilled(file: string, round: number, acknowledgements: number) {
  const child = spawn(process.execPath, [writer, file, String(seed + round)], { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const exited = once(child, 'exit');
  const acknowledged: Announcement[] = [];
  let pending: Announcement | null = null;
  for await (const line of createInterface({ input: child.stdout })) {
    // A last line cut short by the kill announces something that had not begun.
    if (!line.endsWith('}') && line !== '"done"') continue;
    const said: Announcement | 'done' = JSON.parse(line);
    if (said !== 'done') pending = said;
    else if (pending !== null) {
      acknowledged.push(pending);
      pending = null;
      if (acknowledged.length === acknowledgements) child.kill('SIGKILL');
    }
  }
  await exited;
  if (child.signalCode !== 'SIGKILL') throw new Error(`the writer ended by itself: ${complaint}`);
  return { acknowledged, pending };
}

it(
  `a kill loses nothing acknowledged and leaves nothing half written, SPEC 2.4, 3.5, 8.5 (${rounds} rounds, seed ${seed})`,
  { timeout: 20_000 + rounds * 5_000 },
  async () => {
    const sqlite = await betterSqlite();
    if (sqlite === null) throw new Error('better-sqlite3 is a dependency and did not load');
    const file = join(folder, 'ledger.db');
    const random = randomNumbers(seed);
    const first = endOf('first');
    let known: Known = { nodes: new Set([first]), head: first, activeSummary: null };
    let summaries = 0;

    for (let round = 0; round < rounds; round += 1) {
      const { acknowledged, pending } = await writeUntilKilled(file, round, 1 + random(60));
      known = acknowledged.reduce(after, known);

      const ledger = await openSqliteLedger({ file, durability: 'normal', busyTimeoutMs: 1_000, clock: Date.now });
      const nodes = await ledger.nodes(alice, 0, 1_000_000);
      const [entry] = await ledger.list(null, 1, null);
      const seen: Known = {
        nodes: new Set(nodes.map((node) => node.id)),
        head: entry?.head ?? '',
        activeSummary: entry?.activeSummary ?? null,
      };
      // What was under way when the kill came is there as a whole, or not at all.
      expect(pending === null ? [known] : [known, after(known, pending)]).toContainEqual(seen);

      const stored = nodes.flatMap((node) =>
        isSummary(node) ? [{ id: node.id, covers: node.metadata.covers_ids }] : [],
      );
      expect(entry).toMatchObject({ nodes: nodes.length, summaries: stored.length });
      expect(stored.at(-1)?.id ?? null).toBe(seen.activeSummary);
      for (const summary of stored) expect(summary.covers.filter((id) => !seen.nodes.has(id))).toEqual([]);
      const spine = await ledger.spine(alice, null, 'spine');
      expect(spine.nodes.at(-1)?.id).toBe(seen.head);
      await ledger.close();

      const handle = sqlite(file);
      expect(handle.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
      // Each summary has its place, and each place its summary.
      const orphans = `SELECT id FROM node WHERE depth = 0 EXCEPT SELECT id FROM summary
                     UNION ALL SELECT id FROM summary EXCEPT SELECT id FROM node WHERE depth = 0`;
      expect(handle.prepare(orphans).all()).toEqual([]);
      handle.close();
      summaries += stored.length;
      known = seen;
    }
    expect(summaries).toBeGreaterThan(0);
  },
);
