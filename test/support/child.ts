import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export interface Child {
  readonly url: string;
  /** What it wrote to standard error so far. */
  said(): string;
  /** Its log lines so far, parsed; of one that has exited, all. */
  logs(): readonly Readonly<Record<string, unknown>>[];
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
  /** Exit status and signal, once it has ended. */
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>;
}

/** How Node is told to run the command line from its sources. */
const SOURCES: readonly string[] = ['--import', 'tsx', 'src/cli.ts'];

/** `spillway serve` as a process of its own, on a free port; killed with the test at the latest. */
export async function startChild(
  settings: Readonly<Record<string, string>>,
  program: readonly string[] = SOURCES,
): Promise<Child> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const child = spawn(process.execPath, [...program, 'serve'], {
    cwd: root,
    env: { PATH: process.env['PATH'], SPILLWAY_PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  // By then all that it wrote was read.
  const exited = once(child, 'close').then(
    ([code, signal]) => [code, signal] as [number | null, NodeJS.Signals | null],
  );
  let logged = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (logged += text));
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      const found = /listens on (http:\S+)\/v1/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    void exited.then(() => reject(new Error(`it ended at once: ${said}`)));
  });
  const lines = (): readonly string[] =>
    logged
      .slice(0, logged.lastIndexOf('\n') + 1)
      .split('\n')
      .slice(0, -1);
  const logs = () => lines().map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  return { url, said: () => said, logs, kill: (signal) => void child.kill(signal), exited };
}
