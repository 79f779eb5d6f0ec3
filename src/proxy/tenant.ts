/** A digest that only the holder of the server's secret can make; 32 characters of base64url. */
export type Sign = (text: string) => string;

export interface TenantSettings {
  /** Bound to loopback and not told otherwise: everybody is `local` (SPEC 1.1). */
  readonly single: boolean;
  /** Header that names the end user behind a shared credential, or null. */
  readonly userHeader: string | null;
  readonly sign: Sign;
}

const CREDENTIAL_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** Where some providers' clients put their key in the address. */
const CREDENTIAL_PARAMETERS = ['key', 'api_key', 'api-key'] as const;

/** The tenant a request belongs to (SPEC 1.1), by its headers and its query. Nothing of the credential can be read from it. */
export function tenantOf(headers: Readonly<Record<string, string>>, query: string, settings: TenantSettings): string {
  const user = settings.userHeader === null ? undefined : headers[settings.userHeader];
  if (settings.single && user === undefined) return 'local';
  const parameters = new URLSearchParams(query);
  const presented = [
    ...CREDENTIAL_HEADERS.map((name) => headers[name] ?? null),
    ...CREDENTIAL_PARAMETERS.map((name) => parameters.get(name)),
  ];
  const credentials = settings.single ? [] : presented;
  return `t_${settings.sign(JSON.stringify(['tenant', credentials, user ?? null])).slice(0, 22)}`;
}
