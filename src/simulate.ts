import { parseArgs } from 'node:util';
import { SpillwayError } from './core/errors.js';
import { OVERFLOW_FORMS } from './simulator/overflow-forms.js';
import type { OverflowForm } from './simulator/reply-plan.js';
import { startSimulator } from './simulator/simulator.js';
import { createCounterLoader } from './tokens/counter.js';
import { readPackedRanks } from './tokens/node-ranks.js';
import { parseWindowPatterns } from './upstream/windows.js';

export const SIMULATE_HELP = `Options of simulate, a server that behaves like an OpenAI-compatible provider and is none:

  --host address       (default 127.0.0.1)
  --port number        (default 8485)
  --windows list       pattern=tokens,… with * for any characters (default *=8000)
  --overflow name      how larger requests are answered (default openai), one of
${columns(Object.keys(OVERFLOW_FORMS))}
  --delay milliseconds between two pieces of a streamed reply (default 0)
`;

/** Runs `spillway simulate` until `untilStopped` resolves. Resolves to the exit status. */
export async function simulate(args: readonly string[], untilStopped: () => Promise<void>): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8485' },
      windows: { type: 'string', default: '*=8000' },
      overflow: { type: 'string', default: 'openai' },
      delay: { type: 'string', default: '0' },
    },
  });
  const windows = parseWindowPatterns(values.windows, '--windows');
  const simulator = await startSimulator({
    counter: await createCounterLoader(readPackedRanks)('o200k_base'),
    host: values.host,
    port: wholeNumber('--port', values.port, 65_535),
    windows: Object.fromEntries(windows.map(({ pattern, tokens }) => [pattern, tokens])),
    overflow: overflowForm(values.overflow),
    delivery: { pieceDelayMs: wholeNumber('--delay', values.delay, 60_000) },
  });
  process.stderr.write(
    `A provider simulator, not a provider, listens on ${simulator.url}/v1 with windows ${values.windows}\n`,
  );
  await untilStopped();
  await simulator.close();
  return 0;
}

function overflowForm(name: string): OverflowForm {
  const form = Object.hasOwn(OVERFLOW_FORMS, name) ? OVERFLOW_FORMS[name] : undefined;
  if (form !== undefined) return form;
  const known = Object.keys(OVERFLOW_FORMS).join(', ');
  throw new SpillwayError(
    'invalid_setting',
    `--overflow: must be one of ${known} (got ${JSON.stringify(name)})`,
    '--overflow',
  );
}

/** Names in lines of a terminal's width, below the text of their option. */
function columns(names: readonly string[]): string {
  return names
    .join(' ')
    .replace(/(.{1,56})(?: |$)/g, '                       $1\n')
    .trimEnd();
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
