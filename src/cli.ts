#!/usr/bin/env node
import { parseArgs } from 'node:util';
import packageJson from '../package.json' with { type: 'json' };
import { readConfig } from './config.js';
import { settingsHelp, settingsHelpText } from './config/settings.js';
import { SpillwayError } from './core/errors.js';
import { startSpillway } from './node.js';
import { simulate, SIMULATE_HELP } from './simulate.js';

const HELP = `Spillway: a proxy that keeps long conversations with a model going when they outgrow its context window.

Usage:
  spillway serve [--setting value …]     start the proxy
  spillway simulate [--option value …]   start a provider that is none, to try things on
  spillway --help | --version

Point an OpenAI client's base URL at http://127.0.0.1:8484/v1 and keep its key: it goes through to the provider.

Settings of serve, each as a flag or an environment variable; the flag wins:

${settingsHelpText()}
${SIMULATE_HELP}`;

/** Runs the command line; resolves to the exit status once the program is done. */
async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  switch (command) {
    case 'serve':
      return rest.includes('--help') ? say(HELP) : serve(rest);
    case 'simulate':
      return rest.includes('--help') ? say(SIMULATE_HELP) : simulate(rest, untilStopped);
    case '--version':
    case '-v':
      return say(packageJson.version);
    case undefined:
    case '--help':
    case '-h':
    case 'help':
      return say(HELP);
    default:
      process.stderr.write(`There is no command ${JSON.stringify(command)}. Try spillway --help.\n`);
      return 2;
  }
}

async function serve(args: readonly string[]): Promise<number> {
  const flags = [...settingsHelp().values()].flatMap((setting) => setting.flag ?? []);
  const { values } = parseArgs({
    args: [...args],
    options: Object.fromEntries(flags.map((flag) => [flag, { type: 'string' } as const])),
  });
  const config = readConfig(process.env, values);
  const spillway = await startSpillway(config);
  const route = config.upstreams.main.baseUrl;
  process.stderr.write(`Spillway listens on ${spillway.url}/v1 and forwards to ${route}\n`);
  if (config.adminToken === null && spillway.adminToken !== null) {
    process.stderr.write(
      `Admin token for ${spillway.url}/spillway/v1 (set SPILLWAY_ADMIN_TOKEN to choose one): ${spillway.adminToken}\n`,
    );
  }
  await untilStopped();
  process.stderr.write('Spillway finishes what is running, then stops. Once more to stop at once.\n');
  await spillway.close();
  return 0;
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process as usual. */
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

function say(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function explain(error: unknown): string {
  if (error instanceof SpillwayError) return error.message;
  if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
    return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  (error: unknown) => {
    process.stderr.write(`spillway: ${explain(error)}\n`);
    process.exitCode = 1;
  },
);
