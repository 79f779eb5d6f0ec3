import { SpillwayError } from '../core/errors.js';

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

/** How to reach a Redis; what is secret in it never reaches a message or a log. */
export interface RedisAddress {
  readonly tls: boolean;
  readonly username: string | null;
  readonly password: string | null;
  /** One Redis, the masters of a Cluster to ask first, or the Sentinels. */
  readonly hosts: readonly RedisHost[];
  readonly kind:
    | { readonly name: 'single'; readonly database: number }
    | { readonly name: 'cluster' }
    | {
        readonly name: 'sentinel';
        readonly master: string;
        readonly database: number;
        /** Null: the Sentinels ask for none. */
        readonly sentinelPassword: string | null;
      };
}

const SCHEME = /^redis(s?)(?:-(sentinel|cluster))?:\/\//i;
const FORMS =
  'redis://[user:password@]host[:port][/database], redis-cluster://…@host:port,host:port or ' +
  'redis-sentinel://…@host:port,host:port/master-name[/database]; rediss… for TLS';
const PORTS = { single: 6379, cluster: 6379, sentinel: 26_379 } as const;

/**
 * Reads a Redis URL: `redis://`, `redis-cluster://` or `redis-sentinel://`, with `rediss` for TLS. User and password are
 * percent-encoded; Sentinels that want a password of their own have it as `?sentinelPassword=`. Throws `invalid_setting`
 * without a word of the URL.
 */
export function redisAddress(url: string): RedisAddress {
  const [scheme, secure, form] = SCHEME.exec(url) ?? [];
  if (scheme === undefined) throw wrong(`must be ${FORMS}`);
  const { authority, path, query } = split(url.slice(scheme.length));
  const at = authority.lastIndexOf('@');
  const credentials = at < 0 ? '' : authority.slice(0, at);
  const colon = credentials.indexOf(':');
  const name = form === undefined ? 'single' : form.toLowerCase() === 'cluster' ? 'cluster' : 'sentinel';
  return {
    tls: secure !== '',
    username: orNull(decoded(colon < 0 ? credentials : credentials.slice(0, colon))),
    password: colon < 0 ? null : orNull(decoded(credentials.slice(colon + 1))),
    hosts: hostsOf(authority.slice(at + 1), name),
    kind: kindOf(name, path, query),
  };
}

function split(rest: string): { readonly authority: string; readonly path: readonly string[]; readonly query: string } {
  const [beforeQuery = '', query = ''] = rest.split('?', 2);
  const slash = beforeQuery.indexOf('/', beforeQuery.lastIndexOf('@') + 1);
  const authority = slash < 0 ? beforeQuery : beforeQuery.slice(0, slash);
  const path = slash < 0 ? [] : beforeQuery.slice(slash + 1).split('/');
  return { authority, path: path.filter((part) => part !== '').map(decoded), query };
}

function hostsOf(list: string, name: RedisAddress['kind']['name']): readonly RedisHost[] {
  const hosts = list.split(',').map((entry, index): RedisHost => {
    const [, bracketed, plain, digits] = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i.exec(entry) ?? [];
    const port = digits === undefined ? PORTS[name] : Number(digits);
    const host = bracketed ?? plain;
    if (host === undefined || port < 1 || port > 65_535)
      throw wrong(`must name its host ${index + 1} as host or host:port`);
    return { host, port };
  });
  if (name === 'single' && hosts.length > 1) {
    throw wrong('names several hosts: redis-cluster:// or redis-sentinel:// says what they are');
  }
  return hosts;
}

function kindOf(name: RedisAddress['kind']['name'], path: readonly string[], query: string): RedisAddress['kind'] {
  const parameters = [...new URLSearchParams(query)];
  const sentinelPassword = parameters.find(([key]) => key === 'sentinelPassword')?.[1] ?? null;
  if (parameters.length > (name === 'sentinel' && sentinelPassword !== null ? 1 : 0)) {
    throw wrong('has a query; only ?sentinelPassword= after redis-sentinel:// is known');
  }
  switch (name) {
    case 'single':
      return { name, database: databaseOf(path) };
    case 'cluster':
      // A Cluster has one database.
      if (databaseOf(path) !== 0) throw wrong('names a database, which a Redis Cluster does not have');
      return { name };
    case 'sentinel': {
      const [master, ...rest] = path;
      if (master === undefined)
        throw wrong('must end in the name of the master: redis-sentinel://host:port/master-name');
      return { name, master, database: databaseOf(rest), sentinelPassword };
    }
  }
}

function databaseOf([number, ...more]: readonly string[]): number {
  if (number === undefined) return 0;
  if (!/^\d{1,4}$/.test(number) || more.length > 0) throw wrong('must end in the number of a database, if in anything');
  return Number(number);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong('has a % that begins no percent-encoded character; a password must be percent-encoded');
  }
}

function orNull(text: string): string | null {
  return text === '' ? null : text;
}

function wrong(reason: string): SpillwayError {
  return new SpillwayError('invalid_setting', reason, 'url');
}
