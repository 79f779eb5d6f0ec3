import { readFlags } from './config/flags.js';
import { nearest } from './config/nearest.js';
import { SpillwayError } from './core/errors.js';
import { listenFailure } from './listen-failure.js';
import { OVERFLOW_FORMS } from './simulator/overflow-forms.js';
import type { OverflowForm } from './simulator/reply-plan.js';
import { startSimulator } from './simulator/simulator.js';
import type { Surroundings } from './surroundings.js';
import { createCounterLoader } from './tokens/counter.js';
import { readPackedRanks } from './tokens/node-ranks.js';
import { parseWindowPatterns } from './upstream/windows.js';

export const SIMULATE_HELP = `Options of simulate, a server that behaves like a provider and is none. It speaks chat completions, responses and
Anthropic's messages:

  --host address       (default 127.0.0.1)
  --port number        (default 8485)
  --windows list       pattern=tokens,… with * for any characters (default *=8000)
  --overflow name      how larger requests are answered (default: as the provider of each format does); list prints the names
  --delay milliseconds between two pieces of a streamed reply (default 0)

It takes any key.
`;

const DEFAULTS = { host: '127.0.0.1', port: '8485', windows: '*=8000', overflow: '', delay: '0' };

/** Runs `spillway simulate` until it is stopped. Resolves to the exit status. */
export async function simulate(args: readonly string[], around: Omit<Surroundings, 'env'>): Promise<number> {
  const values = { ...DEFAULTS, ...knownFlags(args) };
  if (values.overflow === 'list') {
    around.say(Object.keys(OVERFLOW_FORMS).join('\n'));
    return 0;
  }
  const { host } = values;
  const port = wholeNumber('--port', values.port, 65_535);
  const overflow = values.overflow === '' ? undefined : overflowForm(values.overflow);
  const pieceDelayMs = wholeNumber('--delay', values.delay, 60_000);
  const windows = parseWindowPatterns(values.windows, '--windows');
  const simulator = await startSimulator({
    counter: await createCounterLoader(readPackedRanks)('o200k_base'),
    host,
    port,
    windows: Object.fromEntries(windows.map(({ pattern, tokens }) => [pattern, tokens])),
    overflow,
    delivery: { pieceDelayMs },
  }).catch((error: unknown) => {
    throw listenFailure(error, { host, port, hostSetting: '--host', portSetting: '--port' });
  });
  around.note(`A provider simulator, not a provider, listens on ${simulator.url}/v1 with windows ${values.windows}`);
  await around.untilStopped();
  await simulator.close();
  return 0;
}

function knownFlags(args: readonly string[]): Readonly<Record<string, string>> {
  const known = Object.keys(DEFAULTS);
  const flags = readFlags(args, known);
  const unknown = Object.keys(flags).find((name) => !known.includes(name));
  if (unknown === undefined) return flags;
  throw new SpillwayError(
    'invalid_setting',
    `--${unknown}: is no flag; did you mean --${nearest(unknown, known)}? spillway simulate --help lists all`,
    `--${unknown}`,
  );
}

function overflowForm(name: string): OverflowForm {
  const form = Object.hasOwn(OVERFLOW_FORMS, name) ? OVERFLOW_FORMS[name] : undefined;
  if (form !== undefined) return form;
  const guess = nearest(name, Object.keys(OVERFLOW_FORMS));
  throw new SpillwayError(
    'invalid_setting',
    `--overflow: ${JSON.stringify(name)} is no name; did you mean ${guess}? --overflow list prints all`,
    '--overflow',
  );
}

function wholeNumber(name: string, text: string, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= max) return value;
  throw new SpillwayError(
    'invalid_setting',
    `${name}: must be a whole number up to ${max} (got ${JSON.stringify(text)})`,
    name,
  );
}
