import { createHash } from 'node:crypto';
import { SpillwayError, type ErrorCode } from '../core/errors.js';
import type { RedisConnection } from './redis-connection.js';
import { listAt, textAt } from './redis-reply.js';

export type Argument = string | number | Buffer;

/** Named values of a script: an absent one, or null, is nil there. */
export type Fields = Readonly<Record<string, Argument | null>>;

export interface RedisScript {
  readonly lua: string;
  readonly sha: string;
}

/**
 * What every script begins with. `ask` holds the named values as text; `rest` is where the unnamed ones begin in ARGV. A
 * script answers with a list whose first element says what it is.
 */
const PRELUDE = String.raw`
local ask = {}
local rest = 2 + 2 * tonumber(ARGV[1])
for at = 2, rest - 2, 2 do ask[ARGV[at]] = ARGV[at + 1] end

local function refused(code, field)
  return {'refused', code, field or ''}
end
`;

/** A script: what it shares with others, and its body, which answers by `return`. */
export function script(...parts: readonly string[]): RedisScript {
  const lua = [PRELUDE, ...parts].join('\n');
  return { lua, sha: createHash('sha1').update(lua).digest('hex') };
}

/** Runs a script in one round trip; a Redis that does not know it is sent its text. Throws what the script refused. */
export async function runScript(
  connection: RedisConnection,
  { lua, sha }: RedisScript,
  keys: readonly string[],
  fields: Fields,
  values: readonly Argument[] = [],
): Promise<readonly unknown[]> {
  const named = Object.entries(fields).flatMap(([name, value]) => (value === null ? [] : [name, value]));
  // One list and not so many arguments of a function, of which a long history has more than the stack holds.
  const args = [keys.length, ...keys, named.length / 2, ...named, ...values];
  const reply = await connection.send((client) =>
    client.call('evalsha', [sha, ...args]).catch((error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return client.call('eval', [lua, ...args]);
    }),
  );
  const answer = listAt([reply], 0);
  if (answer[0] === 'refused') throw refusal(textAt(answer, 1), textAt(answer, 2));
  return answer;
}

function refusal(code: string, field: string): SpillwayError {
  const known = REFUSALS.find(([name]) => name === code);
  if (known === undefined) return new SpillwayError('store_unavailable', 'The store holds something unexpected.');
  const [name, message] = known;
  return new SpillwayError(name, field === '' ? message : message.replace('%', field), field === '' ? null : field);
}

const REFUSALS: readonly (readonly [ErrorCode, string])[] = [
  ['conversation_not_found', 'There is no such conversation.'],
  ['conversation_exists', 'There is a conversation with this id already.'],
  ['node_not_found', 'There is no such node in the conversation.'],
  ['head_moved', 'HEAD is not where it was expected.'],
  ['store_unavailable', 'The conversation is being imported.'],
  ['invalid_request', '"%" does not fit what is stored.'],
];
