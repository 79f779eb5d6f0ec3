export type HeaderPair = readonly [name: string, value: string];

export interface RequestHeaderOptions {
  /** The route's own key, sent in place of the client's credential; null passes the client's on. */
  readonly apiKey: string | null;
  /** The reply will be read, so it has to come unencoded. */
  readonly readsReply: boolean;
  /** The body is no longer the client's bytes. */
  readonly rewritten: boolean;
}

/** Of one connection, not of the message (RFC 9110 7.6.1); with every `proxy-*` and what `connection` names. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Our own server's business with the client: it has named the host and answered `100 Continue` itself. */
const OURS = new Set(['host', 'expect']);

const DESCRIBES_BYTES = new Set(['content-length', 'content-encoding', 'content-md5', 'content-digest']);

const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** The headers that go upstream. Names are lower case; `x-spillway-*` are for us and never leave. */
export function requestHeaders(
  headers: Readonly<Record<string, string>>,
  options: RequestHeaderOptions,
): Record<string, string> {
  const stays = endToEnd(headers['connection'] ?? '');
  const sent = Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => stays(name) && !OURS.has(name) && !(options.rewritten && DESCRIBES_BYTES.has(name)),
    ),
  );
  return {
    ...sent,
    ...(options.readsReply ? { 'accept-encoding': 'identity' } : {}),
    ...(options.apiKey === null ? {} : credentials(headers, options.apiKey)),
  };
}

/** The headers that go to the client, in order. Those of a Spillway behind this one would be taken for ours: dropped. */
export function responseHeaders(
  headers: readonly HeaderPair[],
  options: { readonly rewritten: boolean },
): readonly HeaderPair[] {
  const connection = headers.filter(([name]) => name === 'connection').map(([, value]) => value);
  const stays = endToEnd(connection.join(','));
  return headers.filter(([name]) => stays(name) && !(options.rewritten && DESCRIBES_BYTES.has(name)));
}

/** A request to change protocols, such as a websocket handshake: not proxied. */
export function isUpgrade(headers: Readonly<Record<string, string>>): boolean {
  return headers['upgrade'] !== undefined && listed(headers['connection'] ?? '').includes('upgrade');
}

function endToEnd(connection: string): (name: string) => boolean {
  const named = new Set(listed(connection));
  return (name) =>
    !HOP_BY_HOP.has(name) && !named.has(name) && !name.startsWith('proxy-') && !name.startsWith('x-spillway-');
}

function listed(value: string): readonly string[] {
  return value.split(',').map((token) => token.trim().toLowerCase());
}

/** The key in every place where the client put one, so that none of its own goes along. */
function credentials(headers: Readonly<Record<string, string>>, apiKey: string): Record<string, string> {
  const given = KEY_HEADERS.filter((name) => headers[name] !== undefined);
  const places =
    given.length > 0 ? given : [headers['anthropic-version'] === undefined ? 'authorization' : 'x-api-key'];
  return Object.fromEntries(places.map((name) => [name, name === 'authorization' ? `Bearer ${apiKey}` : apiKey]));
}
