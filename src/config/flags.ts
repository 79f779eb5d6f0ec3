import { SpillwayError } from '../core/errors.js';

/**
 * The flags of a command line by name, each with a value: `--port 80` or `--port=80`; the last of a name counts. One that is not
 * among `known` comes along, perhaps with an empty value, for whoever knows what else it may mean. Throws `invalid_setting`
 * for a known flag without a value and for what belongs to no flag.
 */
export function readFlags(args: readonly string[], known: readonly string[]): Readonly<Record<string, string>> {
  const flags = new Map<string, string>();
  let at = 0;
  while (at < args.length) {
    const [, name, inline] = /^--?([^=-][^=]*)(?:=([\s\S]*))?$/.exec(args[at] ?? '') ?? [];
    at++;
    // Its text is not repeated: it may be a key that lost its flag.
    if (name === undefined) throw new SpillwayError('invalid_setting', `argument ${at} belongs to no flag`);
    const next = args[at];
    const takesNext = inline === undefined && next !== undefined && !next.startsWith('--');
    if (takesNext) at++;
    const value = inline ?? (takesNext ? next : '');
    if (value === '' && known.includes(name)) {
      throw new SpillwayError('invalid_setting', `--${name}: needs a value`, `--${name}`);
    }
    flags.set(name, value);
  }
  return Object.fromEntries(flags);
}
