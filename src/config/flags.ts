import { SpillwayError } from '../core/errors.js';

/**
 * The flags of a command line by name, each with a value: `--port 80` or `--port=80`; the last of a name counts. One that is not
 * among `known` comes along, perhaps with an empty value, for whoever knows what else it may mean. Throws `invalid_setting`
 * for a known flag without a value and for what belongs to no flag.
 */
export function readFlags(args: readonly string[], known: readonly string[]): Readonly<Record<string, string>> {
  const flags = new Map<string, string>();
  for (const { name, value, at } of argumentsIn(args)) {
    // Its text is not repeated: it may be a key that lost its flag.
    if (name === null) throw new SpillwayError('invalid_setting', `argument ${at} belongs to no flag`);
    if (known.includes(name)) requireValue(name, value);
    flags.set(name, value);
  }
  return Object.fromEntries(flags);
}

/**
 * Takes the values of these flags, which may stand there more than once, out of a command line. `rest` is what is left of it.
 * Throws `invalid_setting` for one without a value.
 */
export function takeFlags(
  args: readonly string[],
  names: readonly string[],
): { readonly taken: ReadonlyMap<string, readonly string[]>; readonly rest: readonly string[] } {
  const taken = new Map<string, readonly string[]>();
  const rest: string[] = [];
  for (const { name, value, words } of argumentsIn(args)) {
    if (name === null || !names.includes(name)) rest.push(...words);
    else taken.set(name, [...(taken.get(name) ?? []), requireValue(name, value)]);
  }
  return { taken, rest };
}

interface Argument {
  /** Null for what belongs to no flag. */
  readonly name: string | null;
  readonly value: string;
  /** As they were given, and the number of the first. */
  readonly words: readonly string[];
  readonly at: number;
}

function* argumentsIn(args: readonly string[]): Generator<Argument> {
  let at = 0;
  while (at < args.length) {
    const from = at++;
    const [, name, inline] = /^--?([^=-][^=]*)(?:=([\s\S]*))?$/.exec(args[from] ?? '') ?? [];
    const next = args[at];
    const takesNext = name !== undefined && inline === undefined && next !== undefined && !next.startsWith('--');
    if (takesNext) at++;
    yield {
      name: name ?? null,
      value: inline ?? (takesNext ? next : ''),
      words: args.slice(from, at),
      at: from + 1,
    };
  }
}

function requireValue(name: string, value: string): string {
  if (value !== '') return value;
  throw new SpillwayError('invalid_setting', `--${name}: needs a value`, `--${name}`);
}
