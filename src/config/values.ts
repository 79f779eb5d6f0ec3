import { z } from 'zod';
import type { DialectName } from '../dialects/dialect.js';
import { dialectNames, isDialectName } from '../http/upstreams.js';

/** The written form of a setting, read to `T`; a failure is a reason that completes "<name>: …" and quotes no value. */
export type Value<T> = z.ZodType<T, string>;

/** What an entry of an upstream list is for: one path prefix (`/groq`) or one dialect. */
export type UpstreamSelector =
  | { readonly prefix: string; readonly dialect: null }
  | { readonly prefix: null; readonly dialect: DialectName };

export type UpstreamEntry = UpstreamSelector & { readonly value: string };

/** The context window of the models whose name matches `pattern`, in which `*` stands for any characters. */
export interface WindowSetting {
  readonly pattern: string;
  readonly tokens: number;
}

type Fail = (reason: string) => void;

const reservedPrefixes: readonly string[] = ['/v1', '/spillway', '/health'];
const selectorRule = `a prefix is one path segment, not ${reservedPrefixes.join(', ')}; a dialect is one of ${dialectNames.join(', ')}`;
const bytesPerUnit = new Map([
  ['', 1],
  ['b', 1],
  ['kb', 1e3],
  ['mb', 1e6],
  ['gb', 1e9],
  ['kib', 2 ** 10],
  ['mib', 2 ** 20],
  ['gib', 2 ** 30],
]);

/** `read` may call `fail` any number of times; what it returns then is dropped. */
function written<T>(read: (text: string, fail: Fail) => T): Value<T> {
  return z
    .string()
    .transform((text, context) => read(text, (message) => context.addIssue({ code: 'custom', message })));
}

export const text: Value<string> = z.string();

export function choice<const T extends string>(...names: readonly T[]): Value<T> {
  return z.string().pipe(z.enum(names, { error: `must be one of ${names.join(', ')}` }));
}

export function wholeNumber(min: number, max: number): Value<number> {
  return written((given, fail) => {
    const value = /^\d+$/.test(given) ? Number(given) : NaN;
    if (!(value >= min && value <= max)) fail(`must be a whole number from ${min} to ${max}`);
    return value;
  });
}

export function fraction(min: number, max: number): Value<number> {
  return written((given, fail) => {
    const value = /^\d*\.?\d+$/.test(given) ? Number(given) : NaN;
    if (!(value >= min && value <= max)) fail(`must be a number from ${min} to ${max}`);
    return value;
  });
}

/** Bytes, from `1048576`, `10MB` (decimal) or `32MiB` (binary). */
export function byteSize(min: number, max: number): Value<number> {
  return written((given, fail) => {
    const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmg]?i?b)?$/i.exec(given) ?? [];
    const bytes = Math.floor(Number(digits) * (bytesPerUnit.get(unit.toLowerCase()) ?? NaN));
    if (!(bytes >= min && bytes <= max))
      fail(`must be a size from ${min} to ${max} bytes, like 33554432, 10MB or 32MiB`);
    return bytes;
  });
}

/** A credential: printable ASCII, so that it can stand in a header. */
export function secretText(minLength: number): Value<string> {
  return written((given, fail) => {
    if (!/^[\x21-\x7e]+$/.test(given)) fail('must be printable ASCII without spaces');
    else if (given.length < minLength) fail(`must have at least ${minLength} characters`);
    return given;
  });
}

export const headerName: Value<string> = written((given, fail) => {
  if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/i.test(given)) fail('must be the name of an HTTP header');
  return given.toLowerCase();
});

export const bindHost: Value<string> = written((given, fail) => {
  const host = given.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (!/^[a-z0-9.-]+$|^[0-9a-f:.]*:[0-9a-f:.]+(%\w+)?$/.test(host))
    fail('must be an IP address or a host name, without a port');
  return host;
});

/** `Host` values, lower case; one without a port stands for every port. */
export const hostList: Value<readonly string[]> = written((given, fail) =>
  entriesOf(given).map((entry, index) => {
    if (!/^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i.test(entry))
      fail(`entry ${index + 1} is not host or host:port`);
    return entry.toLowerCase();
  }),
);

/** What begins the keys of a store: no brace, which would be a hash tag of a Redis Cluster. */
export const keyPrefix: Value<string> = written((given, fail) => {
  if (!/^[\w:./-]{1,100}$/.test(given)) fail('must be at most 100 letters, digits or any of _ : . / -');
  return given;
});

/** A provider's base URL without its trailing slash. */
export const baseUrl: Value<string> = written((given, fail) => readBaseUrl(given, fail));

export const upstreamUrls: Value<readonly UpstreamEntry[]> = upstreamList('URL', readBaseUrl);

export const upstreamKeys: Value<readonly UpstreamEntry[]> = upstreamList('KEY', (value, fail) => {
  if (!/^[\x21-\x7e]+$/.test(value)) fail('must be a key of printable ASCII without spaces');
  return value;
});

export const windowList: Value<readonly WindowSetting[]> = written((given, fail) => {
  const windows = entriesOf(given).map((entry, index) => {
    const [, pattern = '', digits = ''] = /^(.*\S)\s*=\s*(\S+)$/.exec(entry) ?? [];
    const tokens = /^\d+$/.test(digits) ? Number(digits) : NaN;
    if (pattern === '') fail(`entry ${index + 1} is not pattern=tokens`);
    else if (!(tokens >= 1024 && tokens <= 1e9))
      fail(`entry ${index + 1} has no whole number of tokens from 1024 to 1000000000`);
    return { pattern, tokens };
  });
  failOnRepeats(
    windows.map((window) => window.pattern),
    fail,
  );
  return windows;
});

function readBaseUrl(given: string, fail: Fail): string {
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || !/^https?:\/\//i.test(given)) fail('must be an http or https URL');
  else if (url.username !== '' || url.password !== '') fail('must not hold credentials');
  else if (given.includes('?') || given.includes('#')) fail('must have no query and no fragment');
  return url === null ? given : url.href.replace(/\/+$/, '');
}

function upstreamList(
  what: 'URL' | 'KEY',
  read: (value: string, fail: Fail) => string,
): Value<readonly UpstreamEntry[]> {
  return written((given, fail) => {
    const entries = entriesOf(given).flatMap((entry, index): readonly UpstreamEntry[] => {
      const split = entry.indexOf('=');
      const selector = readSelector(split < 0 ? '' : entry.slice(0, split).trim());
      if (selector === null) {
        // By its place: an entry's text may be a key.
        fail(`entry ${index + 1} must be /prefix=${what} or dialect=${what}; ${selectorRule}`);
        return [];
      }
      const value = read(entry.slice(split + 1).trim(), (reason) => fail(`${selectorText(selector)} ${reason}`));
      return [{ ...selector, value }];
    });
    failOnRepeats(entries.map(selectorText), fail);
    return entries;
  });
}

function readSelector(selector: string): UpstreamSelector | null {
  if (isDialectName(selector)) return { prefix: null, dialect: selector };
  const isPrefix = /^\/[\w.~-]*[\w~-][\w.~-]*$/.test(selector) && !reservedPrefixes.includes(selector);
  return isPrefix ? { prefix: selector, dialect: null } : null;
}

export function selectorText(selector: UpstreamSelector): string {
  return selector.prefix ?? selector.dialect;
}

function entriesOf(list: string): readonly string[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

function failOnRepeats(names: readonly string[], fail: Fail): void {
  if (new Set(names).size < names.length) fail('names the same twice');
}
