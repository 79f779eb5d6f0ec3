import { timingSafeEqual } from 'hono/utils/buffer';
import { SpillwayError } from '../core/errors.js';
import { credentialOf } from '../proxy/credential.js';

export interface AccessSettings {
  /** Listens on a loopback address only. */
  readonly loopback: boolean;
  /** Null: nobody holds one. */
  readonly adminToken: string | null;
  /** `host` or `host:port`, lower case; one without a port stands for every port. */
  readonly allowedHosts: readonly string[];
}

/** What access is decided on. Header names are lower case. */
export interface Caller {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** IP address of the peer; null where the platform cannot say. */
  readonly remoteAddress: string | null;
}

/** Carries the admin token where `authorization` carries a provider's credential. */
const TOKEN_HEADER = 'x-spillway-admin-token';

const localName = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const forwardingHeaders = /^(x-forwarded-.*|forwarded|x-real-ip|via)$/;

/**
 * Lets a request to `/v1` in. On a loopback address a page of the web can reach us through a name that it makes resolve
 * there, so the name must be one of ours; elsewhere names are checked only when some are configured. Throws
 * `forbidden_host`.
 */
export function checkHost(caller: Caller, settings: AccessSettings): void {
  if (!settings.loopback && settings.allowedHosts.length === 0) return;
  const host = caller.headers['host'] ?? '';
  if (isTrustedHost(host, settings.allowedHosts)) return;
  throw new SpillwayError(
    'forbidden_host',
    `Host ${JSON.stringify(host)} is not answered here: use localhost or 127.0.0.1, or add it to SPILLWAY_ALLOWED_HOSTS.`,
    'host',
  );
}

/**
 * Keeps a page of the web, which reaches a loopback address through its visitor's browser, from what Spillway would lend
 * it: a configured key, or a conversation of others named in one of our headers. What such a page does with a credential
 * of its own it may do here as well. Pages of this machine are trusted. Throws `forbidden_host`.
 */
export function checkLoan(caller: Caller, settings: AccessSettings, lendsKey: boolean): void {
  const lends = lendsKey || Object.keys(caller.headers).some((name) => name.startsWith('x-spillway-'));
  const page = lends ? foreignPage(caller, settings) : null;
  if (page !== null && !localName.test(page)) throw foreign("a configured key or one of Spillway's headers");
}

/**
 * Lets the operator in and nobody else: a direct loopback connection under a checked name, or the admin token (SPEC 8.6).
 * Throws `unauthorized`, `forbidden_host`.
 */
export async function checkOperator(caller: Caller, settings: AccessSettings): Promise<void> {
  if (!isSafe(caller.method) && foreignPage(caller, settings) !== null) throw foreign("Spillway's API");
  if (await bearsToken(caller, settings)) return;
  if (!settings.loopback) throw unauthorized('Spillway listens beyond loopback', settings);
  checkHost(caller, settings);
  if (!isDirect(caller)) throw unauthorized('this is not a direct connection from the same machine', settings);
}

/** The headers of an operator's request that are a provider's credential: never the admin token. */
export async function providerCredential(
  caller: Caller,
  settings: AccessSettings,
): Promise<Readonly<Record<string, string>>> {
  const authorizationIsOurs = await isToken(bearerOf(caller), settings);
  const { authorization, ...others } = credentialOf(caller.headers);
  return authorization === undefined || authorizationIsOurs ? others : { authorization, ...others };
}

/** Whether a method changes nothing. */
function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

function unauthorized(why: string, { adminToken }: AccessSettings): SpillwayError {
  const token =
    adminToken === null
      ? 'once SPILLWAY_ADMIN_TOKEN sets it'
      : 'which was printed at the start unless SPILLWAY_ADMIN_TOKEN sets it';
  const how = `send the admin token, ${token}, as "authorization: Bearer <token>" or "${TOKEN_HEADER}: <token>"`;
  return new SpillwayError('unauthorized', `Only the operator may use this, and ${why}: ${how}.`, 'authorization');
}

async function bearsToken(caller: Caller, settings: AccessSettings): Promise<boolean> {
  return (await isToken(caller.headers[TOKEN_HEADER], settings)) || (await isToken(bearerOf(caller), settings));
}

/** In constant time: how long it takes tells nothing of the token. */
async function isToken(given: string | undefined, { adminToken }: AccessSettings): Promise<boolean> {
  return adminToken !== null && given !== undefined && (await timingSafeEqual(given, adminToken));
}

function bearerOf(caller: Caller): string | undefined {
  return /^bearer +(\S+)$/i.exec(caller.headers['authorization'] ?? '')?.[1];
}

/** No proxy stands between, as far as headers tell. */
function isDirect({ headers, remoteAddress }: Caller): boolean {
  if (remoteAddress === null || !/^(::1$|(::ffff:)?127\.)/i.test(remoteAddress)) return false;
  return !Object.keys(headers).some((name) => forwardingHeaders.test(name));
}

function isTrustedHost(host: string, allowed: readonly string[]): boolean {
  return localName.test(host) || isAllowed(host.toLowerCase(), allowed);
}

function isAllowed(host: string, allowed: readonly string[]): boolean {
  return allowed.includes(host) || allowed.includes(host.replace(/:\d{1,5}$/, ''));
}

/** The host of the page that sent this, empty if it has none; null if no page did, or one of ours or of an allowed host. */
function foreignPage({ headers }: Caller, { allowedHosts }: AccessSettings): string | null {
  const { origin, 'sec-fetch-site': site } = headers;
  if (origin === undefined) return site === undefined || site === 'same-origin' || site === 'none' ? null : '';
  const host = URL.canParse(origin) ? new URL(origin).host : '';
  const isOurs = host !== '' && (host === headers['host']?.toLowerCase() || isAllowed(host, allowedHosts));
  return isOurs ? null : host;
}

function foreign(lent: string): SpillwayError {
  const message = `A page of another site may not use ${lent}; SPILLWAY_ALLOWED_HOSTS can name its host.`;
  return new SpillwayError('forbidden_host', message, 'origin');
}
