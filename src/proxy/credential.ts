import { CREDENTIAL_PARAMETERS } from './tenant.js';

const CREDENTIAL_HEADERS = [
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'openai-organization',
  'openai-project',
] as const;

/** Of a client's headers, what says who pays: all of them that goes along with a request of Spillway's own. */
export function credentialOf(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const given = CREDENTIAL_HEADERS.flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  // Anthropic takes the token of a signed-in person only beside its feature's name.
  const features = (headers['anthropic-beta'] ?? '').split(',').filter((name) => name.trim().startsWith('oauth-'));
  const signedIn = features.length === 0 ? [] : [['anthropic-beta', features.join(',').trim()] as const];
  return Object.fromEntries([...given, ...signedIn]);
}

/** A query (with its `?`, or empty) without the keys in it, for a request that another key pays for. The rest keeps its characters. */
export function withoutCredential(query: string): string {
  const isKey = (parameter: string): boolean =>
    CREDENTIAL_PARAMETERS.some((name) => new URLSearchParams(parameter).has(name));
  const kept = query
    .slice(1)
    .split('&')
    .filter((parameter) => !isKey(parameter));
  return kept.join('&') === '' ? '' : `?${kept.join('&')}`;
}
