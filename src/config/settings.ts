import { z } from 'zod';
import {
  baseUrl,
  bindHost,
  byteSize,
  choice,
  fraction,
  headerName,
  hostList,
  keyPrefix,
  secretText,
  text,
  upstreamKeys,
  upstreamUrls,
  type Value,
  wholeNumber,
  windowList,
} from './values.js';

/** What is known of a setting beside its value: `--help`, the documentation and every error are made from it. */
export interface SettingHelp {
  /** Environment variable. */
  readonly name: string;
  /** Command-line flag without its dashes; null for a secret, which every user of the machine could read there. */
  readonly flag: string | null;
  readonly type: string;
  /** As it would be written; null when there is none. */
  readonly default: string | null;
  /** Its value is never shown. */
  readonly secret: boolean;
  readonly description: string;
}

const helps = z.registry<SettingHelp>();

function required<T>(name: string, type: string, byDefault: string, value: Value<T>, description: string) {
  return value.prefault(byDefault).register(helps, help(name, type, byDefault, false, description));
}

function optional<T>(name: string, type: string, value: Value<T>, description: string) {
  return value
    .nullable()
    .prefault(null)
    .register(helps, help(name, type, null, false, description));
}

function secret<T>(name: string, type: string, value: Value<T>, description: string) {
  return value
    .nullable()
    .prefault(null)
    .register(helps, help(name, type, null, true, description));
}

function help(
  name: string,
  type: string,
  byDefault: string | null,
  isSecret: boolean,
  description: string,
): SettingHelp {
  const flag = isSecret ? null : name.toLowerCase().replaceAll('_', '-');
  return { name: `SPILLWAY_${name}`, flag, type, default: byDefault, secret: isSecret, description };
}

/** Every setting there is, in the order of the documentation. */
export const settings = z.object({
  upstreamUrl: required(
    'UPSTREAM_URL',
    'URL',
    'https://api.openai.com/v1',
    baseUrl,
    'Base URL of the provider, as its own clients would have it.',
  ),
  upstreamKey: secret(
    'UPSTREAM_KEY',
    'key',
    secretText(1),
    "Sent to that provider in place of the client's own credential. Whoever reaches Spillway then uses it.",
  ),
  upstreams: optional(
    'UPSTREAMS',
    'list of /prefix=URL or dialect=URL',
    upstreamUrls,
    'More providers: requests to /prefix/v1/… go to the one, and those of a dialect (chat-completions, responses, anthropic-messages) to the other.',
  ),
  upstreamKeys: secret(
    'UPSTREAM_KEYS',
    'list of /prefix=KEY or dialect=KEY',
    upstreamKeys,
    "Keys for the providers of SPILLWAY_UPSTREAMS, in place of the client's own.",
  ),
  upstreamTimeoutSeconds: required(
    'UPSTREAM_TIMEOUT_SECONDS',
    'whole number',
    '0',
    wholeNumber(0, 86_400),
    'Longest silence of a provider, before its answer and within it; 0 waits for ever, for models that think for minutes.',
  ),
  host: required(
    'HOST',
    'address',
    '127.0.0.1',
    bindHost,
    'Address to listen on. Anything but loopback makes the admin token necessary.',
  ),
  port: required('PORT', 'whole number', '8484', wholeNumber(0, 65_535), 'Port to listen on; 0 takes a free one.'),
  allowedHosts: optional(
    'ALLOWED_HOSTS',
    'list of host or host:port',
    hostList,
    'More values of the Host header that are answered on a loopback address. On another address all are, unless this is set.',
  ),
  adminToken: secret(
    'ADMIN_TOKEN',
    'token',
    secretText(16),
    "Opens Spillway's own API to its holder; at least 16 characters. Made anew and printed at the start where it is necessary and not set.",
  ),
  dataDir: required('DATA_DIR', 'path', './spillway-data', text, 'Folder of everything that is stored.'),
  store: required(
    'STORE',
    'sqlite | memory | redis',
    'sqlite',
    choice('sqlite', 'memory', 'redis'),
    'Where conversations are kept; memory forgets them at the end, redis serves several instances at once.',
  ),
  sqliteSync: required(
    'SQLITE_SYNC',
    'normal | full',
    'normal',
    choice('normal', 'full'),
    'full also survives a loss of power; normal survives every crash of the program.',
  ),
  redisUrl: secret(
    'REDIS_URL',
    'URL',
    text,
    'redis://user:password@host:port/database, redis-cluster://…@host:port,host:port or redis-sentinel://…@host:port,host:port/master-name; rediss… for TLS. Necessary for the store redis.',
  ),
  redisPrefix: required(
    'REDIS_PREFIX',
    'text',
    'spillway:',
    keyPrefix,
    'Begins every key, so that others may use the same Redis; instances that share conversations must share it.',
  ),
  redisTimeoutMs: required(
    'REDIS_TIMEOUT_MS',
    'whole number',
    '2000',
    wholeNumber(50, 60_000),
    'Longest that a request waits for Redis, in milliseconds, before it goes on as SPILLWAY_STORE_FAILURE says.',
  ),
  storeFailure: required(
    'STORE_FAILURE',
    'pass | refuse',
    'pass',
    choice('pass', 'refuse'),
    'What happens to a request while the store fails: it goes through unrecorded, or is refused.',
  ),
  tenantSecret: secret(
    'TENANT_SECRET',
    'secret',
    secretText(32),
    'Keys the hash that keeps tenants apart; at least 32 characters. Made in the data folder by default; instances that share a store must share it.',
  ),
  tenants: required(
    'TENANTS',
    'auto | credential | single',
    'auto',
    choice('auto', 'credential', 'single'),
    'Who shares conversations: auto makes all of a loopback address one tenant, and each credential one on any other; credential keeps them apart on loopback too; single makes all one everywhere, with or without a credential.',
  ),
  userHeader: optional(
    'USER_HEADER',
    'header name',
    headerName,
    'Header that names the end user, for clients that share one credential.',
  ),
  retentionDays: required(
    'RETENTION_DAYS',
    'whole number',
    '30',
    wholeNumber(0, 36_500),
    'Days after its last use at which a conversation is erased, deleted or not; 0 keeps all for ever.',
  ),
  tenantBytes: optional(
    'TENANT_BYTES',
    'size',
    byteSize(2 ** 20, 2 ** 50),
    'Most that one tenant keeps. Past it the conversations used longest ago are erased, but none that was used within the last hour.',
  ),
  mode: required(
    'MODE',
    'compact | observe | no-store',
    'compact',
    choice('compact', 'observe', 'no-store'),
    'observe records and compacts nothing; no-store only forwards.',
  ),
  windows: optional(
    'WINDOWS',
    'list of pattern=tokens',
    windowList,
    'Context windows by model name, * for any characters; the first that matches wins over everything else that is known.',
  ),
  learnedDays: required(
    'LEARNED_DAYS',
    'whole number',
    '7',
    wholeNumber(0, 365),
    "How long a window is believed that a provider's refusal stated; 0 learns none.",
  ),
  discoverWindows: required(
    'DISCOVER_WINDOWS',
    'on | off',
    'on',
    choice('on', 'off'),
    'Asks a provider for its list of models, beside the requests and with their credential, where a window is not configured.',
  ),
  trigger: required(
    'TRIGGER',
    'number',
    '0.8',
    fraction(0.3, 0.95),
    "Share of the window at which a conversation is compacted: input and reply reserve together. The reserve is the client's own output cap, or else up to a quarter of the window (16,384 tokens at most).",
  ),
  keepTokens: optional(
    'KEEP_TOKENS',
    'whole number',
    wholeNumber(1, 1e9),
    'Tokens of the newest messages that a compaction keeps; without it 10 % of the window, within bounds.',
  ),
  minGain: required(
    'MIN_GAIN',
    'number',
    '0.1',
    fraction(0, 0.9),
    'Least share that a summary must save of what it replaces.',
  ),
  summaryPolicy: required(
    'SUMMARY_POLICY',
    'auto | session | spine',
    'auto',
    choice('auto', 'session', 'spine'),
    'Which summary holds: one for the conversation, or one for each branch; auto decides by who named the conversation.',
  ),
  summaryModel: optional(
    'SUMMARY_MODEL',
    'model name',
    text,
    'Model that writes summaries; the model of the request by default.',
  ),
  summaryKey: secret('SUMMARY_KEY', 'key', secretText(1), 'Credential for summaries; that of the request by default.'),
  resultStrategy: required(
    'RESULT_STRATEGY',
    'summarise | mask',
    'summarise',
    choice('summarise', 'mask'),
    'How old tool results are shortened inside a tool loop that outgrows the window: by the model, or to one line without asking it.',
  ),
  agingTurns: optional(
    'AGING_TURNS',
    'whole number',
    wholeNumber(1, 1e6),
    "Tool results older than so many turns are sent as one line. Moves the provider's prompt cache with every turn.",
  ),
  spillTokens: optional(
    'SPILL_TOKENS',
    'whole number',
    wholeNumber(100, 1e9),
    'Longer tool results are sent as their head, a pointer and their tail; the whole stays in the ledger.',
  ),
  purseCalls: required(
    'PURSE_CALLS',
    'whole number',
    '32',
    wholeNumber(1, 10_000),
    'Most summary calls made for one request.',
  ),
  purseSeconds: required(
    'PURSE_SECONDS',
    'whole number',
    '60',
    wholeNumber(1, 3600),
    'Longest time spent on summaries for one request.',
  ),
  keepAliveSeconds: required(
    'KEEP_ALIVE_SECONDS',
    'whole number',
    '5',
    wholeNumber(0, 3600),
    'How long a streaming client waits for a summary before it gets a sign of life, and between two; 0 sends none.',
  ),
  drainSeconds: required(
    'DRAIN_SECONDS',
    'whole number',
    '540',
    wholeNumber(0, 86_400),
    'How long running requests may go on after SIGTERM or SIGINT; what has not ended by then is cut off and recorded as cancelled. Give the supervisor some seconds more: terminationGracePeriodSeconds in Kubernetes, which is 30 unless it is set.',
  ),
  bodyLimit: required(
    'BODY_LIMIT',
    'size',
    '32MiB',
    byteSize(1024, 2 ** 30),
    'Largest request body that is read; 33554432, 10MB and 32MiB are sizes.',
  ),
  logLevel: required(
    'LOG_LEVEL',
    'level',
    'info',
    choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'Least level that is logged: fatal, error, warn, info, debug, trace or silent.',
  ),
});

/** What every setting is for, by its key in `settings`, in order. */
export function settingsHelp(): ReadonlyMap<string, SettingHelp> {
  return new Map(
    Object.entries(settings.shape).map(([key, schema]) => {
      const known = helps.get(schema);
      if (known === undefined) throw new Error(`no help for ${key}`);
      return [key, known];
    }),
  );
}

/** The names of all flags that settings have. */
export function settingFlags(): readonly string[] {
  return [...settingsHelp().values()].flatMap((setting) => setting.flag ?? []);
}

/** The settings as `--help` shows them. */
export function settingsHelpText(): string {
  const blocks = [...settingsHelp().values()].map((setting) => {
    const flag = setting.flag === null ? '' : `--${setting.flag}, `;
    const byDefault = setting.default === null ? '' : ` (default ${setting.default})`;
    return `  ${flag}${setting.name}  ${setting.type}${byDefault}\n      ${setting.description}\n`;
  });
  return blocks.join('');
}
