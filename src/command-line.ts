import packageJson from '../package.json' with { type: 'json' };
import { readConfig, type Config } from './config.js';
import { readFlags } from './config/flags.js';
import { settingFlags, settingsHelpText } from './config/settings.js';
import { SpillwayError } from './core/errors.js';
import { EXPORT_HELP, exportCommand } from './export.js';
import { IMPORT_HELP, importCommand } from './import.js';
import { startSpillway } from './node.js';
import { simulate, SIMULATE_HELP } from './simulate.js';
import type { Surroundings } from './surroundings.js';

const SERVE_HELP = `Settings of serve, each as a flag or an environment variable; the flag wins:

${settingsHelpText()}`;

const HELP = `Spillway: a proxy that keeps long conversations with a model going when they outgrow its context window.

Usage:
  spillway serve [--setting value …]     start the proxy
  spillway export [--option value …]     write stored conversations to standard output, to keep or to move them
  spillway import FILE [--setting value …]   take them over into a store
  spillway simulate [--option value …]   start a provider that is none, to try things on
  spillway [command] --help | --version

Point an OpenAI client's base URL at http://127.0.0.1:8484/v1 and keep its key: it goes through to the provider.

${SERVE_HELP}
${EXPORT_HELP}
${IMPORT_HELP}
${SIMULATE_HELP}`;

/** Runs a command line to its end. Resolves to the exit status: 0, 1 for a failure, 2 for wrong usage or settings. */
export async function commandLine(args: readonly string[], around: Surroundings): Promise<number> {
  try {
    return await run(args, around);
  } catch (error) {
    around.note(`spillway: ${explain(error)}`);
    return error instanceof SpillwayError && error.code === 'invalid_setting' ? 2 : 1;
  }
}

async function run([command, ...rest]: readonly string[], around: Surroundings): Promise<number> {
  const wantsHelp = rest.some((arg) => arg === '--help' || arg === '-h');
  switch (command) {
    case 'serve':
      return wantsHelp ? answer(SERVE_HELP, around) : serve(rest, around);
    case 'export':
      return wantsHelp ? answer(EXPORT_HELP, around) : exportCommand(rest, around);
    case 'import':
      return wantsHelp ? answer(IMPORT_HELP, around) : importCommand(rest, around);
    case 'simulate':
      return wantsHelp ? answer(SIMULATE_HELP, around) : simulate(rest, around);
    case '--version':
    case '-v':
      return answer(packageJson.version, around);
    case undefined:
    case '--help':
    case '-h':
    case 'help':
      return answer(HELP, around);
    default:
      throw new SpillwayError(
        'invalid_setting',
        `there is no command ${JSON.stringify(command)}. Try spillway --help.`,
      );
  }
}

async function serve(args: readonly string[], { env, note, untilStopped }: Surroundings): Promise<number> {
  const config = readConfig(env, readFlags(args, settingFlags()));
  const spillway = await startSpillway(config);
  for (const line of startLines(config, spillway.url)) note(line);
  if (config.adminToken === null && spillway.adminToken !== null) {
    note(`Admin token for ${spillway.url}/spillway/v1 (SPILLWAY_ADMIN_TOKEN chooses one): ${spillway.adminToken}`);
  }
  await untilStopped();
  note(
    `Spillway finishes what is running, for ${config.drainSeconds} seconds at most, then stops. Once more to stop at once.`,
  );
  const hurry = new AbortController();
  void untilStopped().then(() => hurry.abort());
  await spillway.close(hurry.signal);
  return 0;
}

function placeOf({ store, dataDir, redis }: Config): string {
  switch (store) {
    case 'memory':
      return 'in memory, until it ends';
    case 'sqlite':
      return `in ${dataDir}`;
    case 'redis':
      return `in Redis at ${redis?.hosts.map(({ host, port }) => `${host}:${port}`).join(', ') ?? ''}`;
  }
}

function startLines(config: Config, url: string): readonly string[] {
  const { upstreams, mode, windows } = config;
  const place = placeOf(config);
  return [
    `Spillway ${packageJson.version} listens on ${url}/v1 and forwards to ${upstreams.main.baseUrl}`,
    ...(mode === 'compact' ? [] : [`Mode: ${mode}`]),
    ...(mode === 'no-store' ? [] : [`Conversations are kept ${place}`]),
    ...(windows.length === 0
      ? []
      : [`Windows: ${windows.map(({ pattern, tokens }) => `${pattern}=${tokens}`).join(', ')}`]),
  ];
}

function answer(text: string, { say }: Surroundings): number {
  say(text);
  return 0;
}

function explain(error: unknown): string {
  if (error instanceof SpillwayError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
