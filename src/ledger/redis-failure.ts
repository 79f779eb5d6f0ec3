import { SpillwayError } from '../core/errors.js';

/** Failures that may be over in a moment: a restart, a failover, slots on their way to another node. */
const PASSING =
  /^(LOADING|READONLY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|MOVED|ASK|BUSY|NOREPLICAS)\b|^Connection is closed|isn't writeable|Cluster isn't ready|Reached the max retries|Too many Cluster redirections|^Failed to refresh slots|^All sentinels are unreachable/;

/** Failures that no waiting mends. */
const LASTING = /^(NOAUTH|WRONGPASS|NOPERM|ERR|CROSSSLOT|WRONGTYPE|NOPROTO)\b/;

const EXPLANATIONS: readonly (readonly [RegExp, string])[] = [
  [/^(NOAUTH|WRONGPASS)|invalid password|without any password/, 'it refuses the user or the password'],
  [/^NOPERM/, 'its access rules forbid a command that is needed'],
  [/cluster support disabled/, 'it is no Redis Cluster: the URL must begin with redis:// or redis-sentinel://'],
  [/^(MOVED|ASK|TRYAGAIN)|Too many Cluster redirections/, 'a part of it is moving to another node'],
  [/^READONLY/, 'it is a replica, which takes no writes'],
  [/^LOADING/, 'it is still loading its data'],
  [/^OOM/, 'its memory is full'],
  [/^MISCONF/, 'it cannot save its data and takes no writes'],
  [/^(CLUSTERDOWN|MASTERDOWN)/, 'a part of it is down'],
  [/^(ERR|CROSSSLOT|WRONGTYPE|NOPROTO)/, 'it refuses what is asked of it'],
  [/sentinel/i, 'no Sentinel names a master that answers'],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ECONNRESET|EPIPE|ETIMEDOUT|CERT|TLS|SSL/,
    'it cannot be reached',
  ],
];

/** What is behind an error: of a Cluster that nobody answers for, what one of its nodes said. */
export function reasonOf(error: unknown): unknown {
  return error instanceof Error && 'lastNodeError' in error && error.lastNodeError instanceof Error
    ? error.lastNodeError
    : error;
}

export function isPassing(error: unknown): boolean {
  return PASSING.test(messageOf(error));
}

/** Whether Redis itself answered so, and would answer others: it is not away. */
export function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' && !isPassing(error);
}

export function isLasting(error: unknown): boolean {
  return LASTING.test(messageOf(error));
}

/**
 * The one error that leaves a Redis driver. Errors of the client carry the command with all its arguments, and some of the
 * server repeat them, so that only a code and our own words go on; `earlier` is what the connection last complained of.
 */
export function redisUnavailable(error: unknown, earlier: unknown = null): SpillwayError {
  if (error instanceof SpillwayError) return error;
  const known = [error, earlier].find((candidate) => explanationOf(candidate) !== undefined) ?? error;
  const code = codeOf(known);
  const explanation = explanationOf(known) ?? 'it does not answer';
  return new SpillwayError(
    'store_unavailable',
    `Redis cannot be used: ${explanation}${code === '' ? '' : ` (${code})`}.`,
  );
}

function explanationOf(error: unknown): string | undefined {
  const text = `${messageOf(error)} ${codeOf(error)}`;
  return EXPLANATIONS.find(([pattern]) => pattern.test(text))?.[1];
}

/** The code of a system error, or the word in capitals with which every error of Redis begins. */
function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return /^[A-Z]{3,}\b|\b(?:ECONNREFUSED|ETIMEDOUT|ENOTFOUND)\b/.exec(messageOf(error))?.[0] ?? '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}
