import { SpillwayError } from '../core/errors.js';

/** `.` and `..` between slashes of any spelling, as a server that decodes the path once would see them. */
const DOT_SEGMENT = /(?:\/|\\|%2f|%5c)(?:\.|%2e){1,2}(?=\/|\\|%2f|%5c|$)/i;

/** What a URL parser drops, turns into a slash, or takes for the path's end. */
const NOT_IN_A_PATH = /[\0-\x20\x7f\\#?]/;

/**
 * Where a client's request goes. `baseUrl` is what a client of that provider would set as its base URL: with a path, it
 * stands for the client's leading `/v1`; without one, the whole path is appended. Path and query keep their characters.
 * Rejects a path that could leave the base path with `invalid_request`.
 */
export function requestUrl(baseUrl: string, path: string, query: string): string {
  if (DOT_SEGMENT.test(path) || NOT_IN_A_PATH.test(path)) {
    throw new SpillwayError(
      'invalid_request',
      'the path holds a dot segment or a character that paths do not have',
      'path',
    );
  }
  const base = new URL(baseUrl);
  const basePath = base.pathname.replace(/\/+$/, '');
  const rest = basePath === '' ? path : path.replace(/^\/v1(?=\/|$)/, '');
  const joinedQuery =
    base.search !== '' && query.startsWith('?') ? `${base.search}&${query.slice(1)}` : base.search + query;
  return `${base.origin}${basePath}${rest}${joinedQuery}`;
}
