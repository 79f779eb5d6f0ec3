import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const START_MS = 20_000;
const STOP_MS = 10_000;

/** A server in a process of its own. */
export interface MeasuredServer {
  /** Base URL, `/v1` included. */
  readonly url: string;
  /** Milliseconds of processor time, user and system, since its start. */
  cpuMs(): Promise<number>;
  stop(): Promise<void>;
}

export interface ServerProgram {
  /** The built file, its arguments and what is added to its environment. */
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Flags of node. */
  readonly nodeFlags: readonly string[];
}

/** Starts a program that says on standard error where it `listens on`; rejects if it does not within 20 s. */
export async function startServer({ file, args, env, nodeFlags }: ServerProgram): Promise<MeasuredServer> {
  const child = fork(file, args, {
    execArgv: [...nodeFlags],
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const said: string[] = [];
  const url = new Promise<string>((resolve, reject) => {
    const fail = (): void => reject(new Error(`${file} does not listen:\n${said.join('\n')}`));
    if (child.stderr === null) return fail();
    createInterface(child.stderr).on('line', (line) => {
      said.push(line);
      const found = /listens on (http:\S+)/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', fail);
    setTimeout(fail, START_MS).unref();
  });
  return {
    url: await url,
    async cpuMs() {
      const told = new Promise((resolve) => child.once('message', resolve));
      child.send('cpu');
      return Number(await told);
    },
    async stop() {
      if (child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await exited;
      clearTimeout(timer);
    },
  };
}
