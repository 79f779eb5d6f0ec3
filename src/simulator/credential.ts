const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'cookie',
]);

/** The key a request presents: `Authorization: Bearer`, or the header other providers use; null without one. */
export function credentialOf(headers: Readonly<Record<string, string>>): string | null {
  const bearer = /^Bearer\s+(\S+)$/i.exec(headers['authorization'] ?? '')?.[1];
  return bearer ?? headers['x-api-key'] ?? headers['api-key'] ?? null;
}

/** A credential as it may be shown: its last four characters, and none of one too short to hide the rest. */
export function masked(credential: string): string {
  return credential.length > 8 ? `…${credential.slice(-4)}` : '…';
}

/** Headers fit to be kept: credentials masked, everything else as received. */
export function withoutCredentials(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, CREDENTIAL_HEADERS.has(name) ? maskedHeader(value) : value]),
  );
}

function maskedHeader(value: string): string {
  const space = value.indexOf(' ');
  return space < 0 ? masked(value) : `${value.slice(0, space)} ${masked(value.slice(space + 1))}`;
}
