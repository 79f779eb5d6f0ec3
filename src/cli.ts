#!/usr/bin/env node
import { commandLine } from './command-line.js';

/** Resolves at the next SIGTERM or SIGINT. One that nobody waits for ends the process as usual. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      process.off('SIGTERM', stop);
      process.off('SIGINT', stop);
      resolve();
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });
}

// Whoever reads the log may leave; the proxy goes on.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);

process.exitCode = await commandLine(process.argv.slice(2), {
  env: process.env,
  say: (text) => void process.stdout.write(`${text}\n`),
  write: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error == null ? resolve() : reject(error)));
    }),
  input: () => process.stdin,
  note: (text) => void process.stderr.write(`${text}\n`),
  untilStopped,
});
