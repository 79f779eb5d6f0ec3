import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { writePackedRanks } from '../../src/tokens/node-ranks.js';
import { startChild } from '../support/child.js';
import type { Child } from '../support/child.js';

/** The command line as one file, which starts three times faster than its sources. */
export interface Program {
  readonly file: string;
  remove(): void;
}

export async function buildProgram(): Promise<Program> {
  // Where the packages are found that are not part of it.
  const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'faults-'));
  const file = join(folder, 'cli.mjs');
  const entry = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
  await Promise.all([
    build({
      entryPoints: [entry],
      outfile: file,
      bundle: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
    }),
    writePackedRanks(folder),
  ]);
  return { file, remove: () => rmSync(folder, { recursive: true }) };
}

/** Proxies as processes of their own with the same settings; they end with the test. */
export class Proxies {
  readonly #start: () => Promise<Child>;
  #running: readonly Child[] = [];
  #all: readonly Child[] = [];

  constructor({ file }: Program, settings: Readonly<Record<string, string>>) {
    this.#start = () => startChild(settings, [file]);
  }

  /** Where those that run are, without `/v1`. */
  readonly urls = (): readonly string[] => this.#running.map(({ url }) => url);

  async start(): Promise<void> {
    const child = await this.#start();
    this.#all = [...this.#all, child];
    this.#running = [...this.#running, child];
  }

  /** Kills one that runs, wherever it is. Its address stays known, as to a client that has not noticed, until it has ended. */
  async kill(which: number): Promise<void> {
    const child = this.#running[which % this.#running.length];
    child?.kill('SIGKILL');
    await child?.exited;
    this.#running = this.#running.filter((other) => other !== child);
  }

  /** Tells all to stop; their exit statuses. */
  async stop(): Promise<readonly (number | null)[]> {
    for (const child of this.#running) child.kill('SIGTERM');
    const exits = await Promise.all(this.#running.map(({ exited }) => exited));
    this.#running = [];
    return exits.map(([status]) => status);
  }

  /** What those that have ended logged. */
  logs(): readonly Readonly<Record<string, unknown>>[] {
    return this.#all.flatMap((child) => child.logs());
  }
}

/** The ends of requests whose replies were reported not to be recorded, or not in time. */
export function gapsIn(logs: readonly Readonly<Record<string, unknown>>[]): ReadonlySet<string> {
  return new Set(logs.flatMap(({ msg, head }) => (msg === 'store gap' && typeof head === 'string' ? [head] : [])));
}
