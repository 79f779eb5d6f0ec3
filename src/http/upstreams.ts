import type { DialectName } from '../dialects/dialect.js';
import type { UpstreamRoute } from '../proxy/request.js';

/** Every upstream that is configured, by what selects it. */
export interface Upstreams {
  /** Serves what nothing more special does. */
  readonly main: UpstreamRoute;
  readonly byPrefix: ReadonlyMap<string, UpstreamRoute>;
  readonly byDialect: ReadonlyMap<DialectName, UpstreamRoute>;
}

/** Where a request under an API root goes. */
export interface Target {
  /** Begins with `/v1/`; percent-encoding as it came. */
  readonly path: string;
  readonly dialect: DialectName | null;
  readonly upstream: UpstreamRoute;
}

/** The path of each dialect; what lies below one (`/v1/responses/{id}`) belongs to the same provider. */
const dialectPaths: Readonly<Record<DialectName, string>> = {
  'chat-completions': '/v1/chat/completions',
  responses: '/v1/responses',
  'anthropic-messages': '/v1/messages',
};

/** Where a dialect is spoken beside its own path: a request to compact what it carries. */
const besidePaths: Readonly<Partial<Record<DialectName, string>>> = { responses: '/v1/responses/compact' };

export const dialectNames: readonly DialectName[] = Object.keys(dialectPaths).filter(isDialectName);

export function isDialectName(name: string): name is DialectName {
  return Object.hasOwn(dialectPaths, name);
}

/**
 * Null if the path is under no API root: `/v1/…`, or `/<prefix>/v1/…` for a configured prefix. A prefix decides alone;
 * without one the dialect's own upstream serves the dialect's paths, and the main one the rest. The rest of a client that
 * speaks Anthropic's API (its models, its files) goes where its messages go, so that its key reaches no other provider.
 */
export function targetOf(
  method: string,
  pathname: string,
  headers: Readonly<Record<string, string>>,
  upstreams: Upstreams,
): Target | null {
  const prefix = pathname.startsWith('/v1/') ? '' : pathname.slice(0, Math.max(0, pathname.indexOf('/', 1)));
  const prefixed = upstreams.byPrefix.get(prefix);
  const path = pathname.slice(prefix.length);
  if (!path.startsWith('/v1/') || (prefix !== '' && prefixed === undefined)) return null;

  const owner = dialectNames.find((name) => path === dialectPaths[name] || path.startsWith(`${dialectPaths[name]}/`));
  const family = owner ?? (headers['anthropic-version'] === undefined ? null : 'anthropic-messages');
  const upstream = prefixed ?? (family === null ? undefined : upstreams.byDialect.get(family)) ?? upstreams.main;
  const isSpoken = owner !== undefined && (path === dialectPaths[owner] || path === besidePaths[owner]);
  const dialect = isSpoken && method === 'POST' ? owner : null;
  return { path, dialect, upstream };
}
