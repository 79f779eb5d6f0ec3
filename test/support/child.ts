import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export interface Child {
  readonly url: string;
  /** What it wrote to standard error so far. */
  said(): string;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
  /** Exit status and signal, once it has ended. */
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>;
}

/** `spillway serve` as a process of its own, on a free port; killed with the test at the latest. */
export async function startChild(settings: Readonly<Record<string, string>>): Promise<Child> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli.ts', 'serve'], {
    cwd: root,
    env: { PATH: process.env['PATH'], SPILLWAY_PORT: '0', ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit').then(([code, signal]) => [code, signal] as [number | null, NodeJS.Signals | null]);
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      const found = /listens on (http:\S+)\/v1/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    void exited.then(() => reject(new Error(`it ended at once: ${said}`)));
  });
  return { url, said: () => said, kill: (signal) => void child.kill(signal), exited };
}
