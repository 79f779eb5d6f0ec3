/** A digest that only the holder of the server's secret can make; 32 characters of base64url. */
export type Sign = (text: string) => string;

export interface TenantSettings {
  /** Everybody is `local`: on loopback unless told otherwise, elsewhere when told so (SPEC 1.1). */
  readonly single: boolean;
  /** Header that names the end user behind a shared credential, or null. */
  readonly userHeader: string | null;
  readonly sign: Sign;
}

const CREDENTIAL_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** Where some providers' clients put their key in the address. */
export const CREDENTIAL_PARAMETERS = ['key', 'api_key', 'api-key'] as const;

/**
 * The tenant a request belongs to (SPEC 1.1), by its headers and its query. Nothing of the credential can be read from it. Null
 * where it says nothing of who sent it: whoever sends nothing either would read what it left.
 */
export function tenantOf(
  headers: Readonly<Record<string, string>>,
  query: string,
  settings: TenantSettings,
): string | null {
  const user = settings.userHeader === null ? null : (headers[settings.userHeader] ?? '') || null;
  if (settings.single && user === null) return 'local';
  const credentials = settings.single ? [] : presentedIn(headers, query);
  if (user === null && credentials.every((credential) => isEmpty(credential))) return null;
  return `t_${settings.sign(JSON.stringify(['tenant', credentials, user])).slice(0, 22)}`;
}

function presentedIn(headers: Readonly<Record<string, string>>, query: string): readonly (string | null)[] {
  const parameters = new URLSearchParams(query);
  return [
    ...CREDENTIAL_HEADERS.map((name) => headers[name] ?? null),
    ...CREDENTIAL_PARAMETERS.map((name) => parameters.get(name)),
  ];
}

/** A scheme without a credential, as clients send it whose key is empty, is none. */
function isEmpty(credential: string | null): boolean {
  return credential === null || /^(?:bearer|basic)?\s*$/i.test(credential);
}
