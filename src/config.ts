import type { z } from 'zod';
import { nearest } from './config/nearest.js';
import { settings, settingsHelp, type SettingHelp } from './config/settings.js';
import { selectorText, type UpstreamEntry, type WindowSetting } from './config/values.js';
import { SpillwayError } from './core/errors.js';
import type { Upstreams } from './http/upstreams.js';
import { redisAddress, type RedisAddress } from './ledger/redis-address.js';
import type { UpstreamRoute } from './proxy/request.js';
import type { RetentionLimits } from './proxy/retention.js';

type Values = z.output<typeof settings>;
type Renamed =
  | 'upstreamUrl'
  | 'upstreamKey'
  | 'upstreamKeys'
  | 'upstreamTimeoutSeconds'
  | 'retentionDays'
  | 'tenantBytes'
  | 'redisUrl'
  | 'tenants'
  | 'purseSeconds'
  | 'bodyLimit';

/** Every setting, read and checked. Null is "not set"; what is derived or converted stands below the rest. */
export interface Config extends Readonly<Omit<Values, Renamed | 'upstreams' | 'windows' | 'allowedHosts'>> {
  readonly upstreams: Upstreams;
  /** Null: no limit. */
  readonly upstreamTimeoutMs: number | null;
  /** Listens on a loopback address only. Where it does not, the root makes an admin token if none is set. */
  readonly loopback: boolean;
  readonly allowedHosts: readonly string[];
  /** All are one tenant, with or without a credential. */
  readonly singleTenant: boolean;
  readonly retention: RetentionLimits;
  /** Never null where the store is Redis. */
  readonly redis: RedisAddress | null;
  /** The first that matches wins. */
  readonly windows: readonly WindowSetting[];
  readonly purseMs: number;
  readonly bodyLimitBytes: number;
}

const DAY_MS = 24 * 60 * 60_000;

/** Names by their written form: a variable's name, or a flag's without its dashes. */
type Written = Readonly<Record<string, string | undefined>>;

interface Fault {
  readonly key: string;
  readonly reason: string;
}

interface Problem {
  readonly name: string;
  readonly reason: string;
}

/**
 * Reads every setting; a flag wins over its variable, and an empty value is none. Throws `invalid_setting` that names all
 * that is wrong at once, each with its reason and, where it is no secret, its value. A variable that begins with
 * `SPILLWAY_` and is no setting is wrong too.
 */
export function readConfig(env: Written, flags: Written = {}): Config {
  const helps = settingsHelp();
  const given = new Map([...helps].map(([key, setting]) => [key, writtenValue(setting, env, flags)]));
  const read = settings.safeParse(Object.fromEntries([...given].map(([key, source]) => [key, source?.value])));
  const faults = read.success
    ? contradictions(read.data)
    : read.error.issues.map(({ path: [key], message }) => ({ key: String(key), reason: message }));
  const problems = [
    ...unknownNames([...helps.values()], env, flags),
    ...faults.map(({ key, reason }): Problem => {
      const source = given.get(key);
      const value = source === undefined || helps.get(key)?.secret !== false ? '' : ` (got ${shown(source.value)})`;
      return { name: source?.name ?? helps.get(key)?.name ?? key, reason: reason + value };
    }),
  ];
  if (!read.success || problems.length > 0) {
    const names = [...new Set(problems.map((problem) => problem.name))];
    const lines = problems.map(({ name, reason }) => `${name}: ${reason}`);
    throw new SpillwayError('invalid_setting', lines.join('\n'), names.join(', '));
  }
  return configOf(read.data);
}

function configOf(values: Values): Config {
  const { upstreamUrl, upstreamKey, upstreamKeys, upstreamTimeoutSeconds, ...others } = values;
  const { tenants, retentionDays, tenantBytes, redisUrl, purseSeconds, bodyLimit, ...same } = others;
  const loopback = isLoopback(values.host);
  return {
    ...same,
    upstreams: upstreamsOf(upstreamUrl, upstreamKey, values.upstreams ?? [], upstreamKeys ?? []),
    upstreamTimeoutMs: upstreamTimeoutSeconds === 0 ? null : upstreamTimeoutSeconds * 1000,
    loopback,
    allowedHosts: values.allowedHosts ?? [],
    singleTenant: tenants === 'single' || (tenants === 'auto' && loopback),
    retention: { keepMs: retentionDays === 0 ? null : retentionDays * DAY_MS, tenantBytes },
    redis: redisUrl === null ? null : redisAddress(redisUrl),
    windows: values.windows ?? [],
    purseMs: purseSeconds * 1000,
    bodyLimitBytes: bodyLimit,
  };
}

function upstreamsOf(
  url: string,
  key: string | null,
  urls: readonly UpstreamEntry[],
  keys: readonly UpstreamEntry[],
): Upstreams {
  const keyBySelector = new Map(keys.map((entry) => [selectorText(entry), entry.value]));
  const route = (entry: UpstreamEntry): UpstreamRoute => ({
    prefix: entry.prefix ?? '',
    baseUrl: entry.value,
    apiKey: keyBySelector.get(selectorText(entry)) ?? null,
  });
  return {
    main: { prefix: '', baseUrl: url, apiKey: key },
    byPrefix: new Map(urls.flatMap((entry) => (entry.prefix === null ? [] : [[entry.prefix, route(entry)]]))),
    byDialect: new Map(urls.flatMap((entry) => (entry.dialect === null ? [] : [[entry.dialect, route(entry)]]))),
  };
}

/** What each setting allows and all together do not. */
function contradictions(values: Values): readonly Fault[] {
  const urls = values.upstreams ?? [];
  const keyless = (values.upstreamKeys ?? []).filter(
    (key) => !urls.some((url) => selectorText(url) === selectorText(key)),
  );
  const isOwn = (url: string): boolean => isSelf(new URL(url), values.host, values.port);
  return [
    ...(isOwn(values.upstreamUrl) ? [{ key: 'upstreamUrl', reason: "is Spillway's own address" }] : []),
    ...urls
      .filter((entry) => isOwn(entry.value))
      .map((entry) => ({ key: 'upstreams', reason: `${selectorText(entry)} is Spillway's own address` })),
    ...keyless.map((key) => ({
      key: 'upstreamKeys',
      reason: `${selectorText(key)} has a key, but no URL in SPILLWAY_UPSTREAMS`,
    })),
    ...redisFaults(values),
    ...sharedSecretFaults(values),
  ];
}

/** Instances with secrets of their own would find none of each other's tenants, and nobody would notice. */
function sharedSecretFaults({ store, host, tenants, tenantSecret }: Values): readonly Fault[] {
  const isAlone = isLoopback(host) && tenants !== 'credential';
  if (store !== 'redis' || tenantSecret !== null || isAlone) return [];
  return [{ key: 'tenantSecret', reason: 'is necessary for the store redis where credentials are kept apart' }];
}

function redisFaults({ store, redisUrl }: Values): readonly Fault[] {
  if (redisUrl === null)
    return store === 'redis' ? [{ key: 'redisUrl', reason: 'is necessary for the store redis' }] : [];
  try {
    redisAddress(redisUrl);
    return [];
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error;
    return [{ key: 'redisUrl', reason: error.message }];
  }
}

function isSelf(url: URL, host: string, port: number): boolean {
  const name = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const urlPort = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const everywhere = host === '0.0.0.0' || host === '::';
  return (
    urlPort === port &&
    (name === host || ((everywhere || isLoopback(host)) && (isLoopback(name) || name === '0.0.0.0')))
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function writtenValue(
  setting: SettingHelp,
  env: Written,
  flags: Written,
): { readonly name: string; readonly value: string } | undefined {
  const flag = setting.flag === null ? '' : (flags[setting.flag]?.trim() ?? '');
  if (flag !== '') return { name: `--${setting.flag}`, value: flag };
  const value = env[setting.name]?.trim() ?? '';
  return value === '' || isServiceLink(setting.name, value) ? undefined : { name: setting.name, value };
}

function unknownNames(known: readonly SettingHelp[], env: Written, flags: Written): readonly Problem[] {
  const names = known.map((setting) => setting.name);
  const flagNames = known.flatMap((setting) => setting.flag ?? []);
  return [
    ...Object.entries(env)
      .filter(([name, value]) => name.startsWith('SPILLWAY_') && value !== undefined && !isServiceLink(name, value))
      .filter(([name]) => !names.includes(name))
      .map(([name]) => ({ name, reason: `is no setting; did you mean ${nearest(name, names)}?` })),
    ...Object.entries(flags)
      .filter(([, value]) => value !== undefined)
      .filter(([name]) => !flagNames.includes(name))
      .map(([name]) => ({ name: `--${name}`, reason: whyNoFlag(name, names, flagNames) })),
  ];
}

function whyNoFlag(name: string, names: readonly string[], flagNames: readonly string[]): string {
  const variable = `SPILLWAY_${name.toUpperCase().replaceAll('-', '_')}`;
  if (names.includes(variable)) return `is no flag, which others on this machine could read; set ${variable} instead`;
  return `is no flag; did you mean --${nearest(name, flagNames)}? spillway serve --help lists all`;
}

/** Kubernetes puts these into every container beside a Service named `spillway` or `spillway-…`; nobody set them. */
function isServiceLink(name: string, value: string): boolean {
  if (/^SPILLWAY_(\w+_)?PORT$/.test(name) && value.startsWith('tcp://')) return true;
  return /^SPILLWAY_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)$/.test(name);
}

/** A value fit to be shown: credentials in a URL, and what may be a key in the wrong place, are masked. */
function shown(value: string): string {
  const safe = value
    .replace(/\/\/[^\s,]*@/g, '//***@')
    .replace(/([?#])[^\s,]+/g, '$1***')
    .replace(/[\w-]{20,}/g, '***');
  return JSON.stringify(safe.length > 200 ? `${safe.slice(0, 200)}…` : safe);
}
