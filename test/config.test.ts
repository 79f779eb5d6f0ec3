import { assert, constantFrom, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../src/config.js';
import { settingsHelp, settingsHelpText } from '../src/config/settings.js';
import { SpillwayError } from '../src/core/errors.js';

type Written = Readonly<Record<string, string | undefined>>;

/** What is said of bad settings, line by line, and the names in the error's field. */
function complaint(
  env: Written,
  flags: Written = {},
): { readonly lines: readonly string[]; readonly field: string | null } {
  try {
    readConfig(env, flags);
  } catch (error) {
    if (error instanceof SpillwayError && error.code === 'invalid_setting') {
      return { lines: error.message.split('\n'), field: error.field };
    }
    throw error;
  }
  return { lines: [], field: null };
}

describe('without any setting', () => {
  it('everything has its default', () => {
    expect(readConfig({ PATH: '/bin', HOME: undefined })).toEqual({
      upstreams: {
        main: { prefix: '', baseUrl: 'https://api.openai.com/v1', apiKey: null },
        byPrefix: new Map(),
        byDialect: new Map(),
      },
      upstreamTimeoutMs: null,
      host: '127.0.0.1',
      loopback: true,
      port: 8484,
      allowedHosts: [],
      adminToken: null,
      dataDir: './spillway-data',
      store: 'sqlite',
      sqliteSync: 'normal',
      redis: null,
      redisPrefix: 'spillway:',
      redisTimeoutMs: 2_000,
      storeFailure: 'pass',
      tenantSecret: null,
      singleTenant: true,
      retention: { keepMs: 30 * 24 * 60 * 60_000, tenantBytes: null },
      userHeader: null,
      mode: 'compact',
      windows: [],
      trigger: 0.8,
      keepTokens: null,
      learnedDays: 7,
      discoverWindows: 'on',
      minGain: 0.1,
      summaryPolicy: 'auto',
      summaryModel: null,
      summaryKey: null,
      resultStrategy: 'summarise',
      agingTurns: null,
      spillTokens: null,
      keepAliveSeconds: 5,
      purseCalls: 32,
      purseMs: 60_000,
      bodyLimitBytes: 32 * 1024 * 1024,
      drainSeconds: 540,
      logLevel: 'info',
    });
  });
});

describe('a setting', () => {
  it('is taken from its flag before its variable, and an empty one is none', () => {
    const env = { SPILLWAY_PORT: '1', SPILLWAY_HOST: ' ', SPILLWAY_UPSTREAM_KEY: '', SPILLWAY_TRIGGER: ' 0.5 ' };
    expect(readConfig(env, { port: '2', host: '' })).toMatchObject({ port: 2, host: '127.0.0.1', trigger: 0.5 });
    expect(readConfig(env)).toMatchObject({ port: 1 });
    expect(readConfig(env).upstreams.main.apiKey).toBeNull();
  });

  it('that lists upstreams gives each its URL and key', () => {
    const { upstreams } = readConfig({
      SPILLWAY_UPSTREAM_URL: 'http://127.0.0.1:9000/v1///',
      SPILLWAY_UPSTREAM_KEY: 'main-key',
      SPILLWAY_UPSTREAMS: '/groq=https://api.groq.com/openai/v1/ , anthropic-messages=https://api.anthropic.com/v1,',
      SPILLWAY_UPSTREAM_KEYS: 'anthropic-messages=key=with=signs==',
    });
    expect(upstreams).toEqual({
      main: { prefix: '', baseUrl: 'http://127.0.0.1:9000/v1', apiKey: 'main-key' },
      byPrefix: new Map([['/groq', { prefix: '/groq', baseUrl: 'https://api.groq.com/openai/v1', apiKey: null }]]),
      byDialect: new Map([
        ['anthropic-messages', { prefix: '', baseUrl: 'https://api.anthropic.com/v1', apiKey: 'key=with=signs==' }],
      ]),
    });
  });

  it('that lists windows keeps their order, patterns with "=" included', () => {
    const { windows } = readConfig({ SPILLWAY_WINDOWS: 'gpt-4o*=128000, a=b=2048,*=1024' });
    expect(windows).toEqual([
      { pattern: 'gpt-4o*', tokens: 128_000 },
      { pattern: 'a=b', tokens: 2048 },
      { pattern: '*', tokens: 1024 },
    ]);
  });

  it.each([
    ['1024', 1024],
    ['32MiB', 33_554_432],
    ['10MB', 10_000_000],
    ['1.5 kib', 1536],
    ['2kB', 2000],
    ['1GiB', 1_073_741_824],
  ])('of a size may be %s', (size, bytes) => {
    expect(readConfig({ SPILLWAY_BODY_LIMIT: size }).bodyLimitBytes).toBe(bytes);
  });

  it.each([
    ['127.0.0.1', true],
    ['127.8.8.8', true],
    ['localhost', true],
    ['::1', true],
    ['[::1]', true],
    ['0.0.0.0', false],
    ['::', false],
    ['192.168.0.4', false],
    ['127.0.0.1.example.com', false],
    ['spillway.internal', false],
  ])('of the address %s knows whether that is loopback', (host, loopback) => {
    expect(readConfig({ SPILLWAY_HOST: host }).loopback).toBe(loopback);
  });

  it('that names a header or hosts is read without regard to case', () => {
    const config = readConfig({ SPILLWAY_USER_HEADER: 'X-User', SPILLWAY_ALLOWED_HOSTS: 'Proxy.Lan, [FD00::1]:80' });
    expect(config).toMatchObject({ userHeader: 'x-user', allowedHosts: ['proxy.lan', '[fd00::1]:80'] });
  });
});

describe('a bad setting is named with its reason and its value', () => {
  const url = 'must be an http or https URL';
  const hosts = 'must be an IP address or a host name, without a port';
  const rule =
    'a prefix is one path segment, not /v1, /spillway, /health; a dialect is one of chat-completions, responses, anthropic-messages';
  it.each([
    ['UPSTREAM_URL', 'api.openai.com/v1', `${url} (got "api.openai.com/v1")`],
    ['UPSTREAM_URL', 'ftp://a/v1', `${url} (got "ftp://a/v1")`],
    ['UPSTREAM_URL', 'http:a', `${url} (got "http:a")`],
    ['UPSTREAM_URL', 'https://user:pa@ss@a/v1', 'must not hold credentials (got "https://***@a/v1")'],
    ['UPSTREAM_URL', 'https://a/v1?key=abc', 'must have no query and no fragment (got "https://a/v1?***")'],
    ['UPSTREAM_URL', 'https://a/v1#abc', 'must have no query and no fragment (got "https://a/v1#***")'],
    ['UPSTREAM_URL', 'sk-abcdefghijklmnopqrstuvwxyz', `${url} (got "***")`],
    ['UPSTREAMS', '/a=https://a/v1,/b=b', `/b ${url} (got "/a=https://a/v1,/b=b")`],
    ['UPSTREAMS', '/a=https://a/v1,/a=https://b/v1', 'names the same twice (got "/a=https://a/v1,/a=https://b/v1")'],
    ['UPSTREAMS', 'https://a/v1', `entry 1 must be /prefix=URL or dialect=URL; ${rule} (got "https://a/v1")`],
    ['UPSTREAMS', '/v1=https://a', `entry 1 must be /prefix=URL or dialect=URL; ${rule} (got "/v1=https://a")`],
    ['UPSTREAMS', '/a/b=https://a', `entry 1 must be /prefix=URL or dialect=URL; ${rule} (got "/a/b=https://a")`],
    ['UPSTREAMS', '/..=https://a', `entry 1 must be /prefix=URL or dialect=URL; ${rule} (got "/..=https://a")`],
    ['UPSTREAMS', 'chat=https://a', `entry 1 must be /prefix=URL or dialect=URL; ${rule} (got "chat=https://a")`],
    ['HOST', 'http://localhost', `${hosts} (got "http://localhost")`],
    ['HOST', 'localhost:8484', `${hosts} (got "localhost:8484")`],
    ['PORT', 'http', 'must be a whole number from 0 to 65535 (got "http")'],
    ['PORT', '65536', 'must be a whole number from 0 to 65535 (got "65536")'],
    ['PORT', '-1', 'must be a whole number from 0 to 65535 (got "-1")'],
    ['PORT', '0x10', 'must be a whole number from 0 to 65535 (got "0x10")'],
    ['STORE', 'postgres', 'must be one of sqlite, memory, redis (got "postgres")'],
    ['SQLITE_SYNC', 'off', 'must be one of normal, full (got "off")'],
    ['STORE_FAILURE', 'fail', 'must be one of pass, refuse (got "fail")'],
    ['MODE', 'on', 'must be one of compact, observe, no-store (got "on")'],
    ['SUMMARY_POLICY', 'none', 'must be one of auto, session, spine (got "none")'],
    ['LOG_LEVEL', 'loud', 'must be one of fatal, error, warn, info, debug, trace, silent (got "loud")'],
    ['WINDOWS', '128000', 'entry 1 is not pattern=tokens (got "128000")'],
    ['WINDOWS', 'a=1023', 'entry 1 has no whole number of tokens from 1024 to 1000000000 (got "a=1023")'],
    ['WINDOWS', 'a=128k', 'entry 1 has no whole number of tokens from 1024 to 1000000000 (got "a=128k")'],
    ['WINDOWS', 'a=2000,a=3000', 'names the same twice (got "a=2000,a=3000")'],
    ['TRIGGER', '80', 'must be a number from 0.3 to 0.95 (got "80")'],
    ['TRIGGER', '80%', 'must be a number from 0.3 to 0.95 (got "80%")'],
    ['TRIGGER', '0.29', 'must be a number from 0.3 to 0.95 (got "0.29")'],
    ['KEEP_TOKENS', '0', 'must be a whole number from 1 to 1000000000 (got "0")'],
    ['MIN_GAIN', '0.95', 'must be a number from 0 to 0.9 (got "0.95")'],
    ['PURSE_CALLS', '0', 'must be a whole number from 1 to 10000 (got "0")'],
    ['PURSE_SECONDS', '1.5', 'must be a whole number from 1 to 3600 (got "1.5")'],
    ['UPSTREAM_TIMEOUT_SECONDS', 'never', 'must be a whole number from 0 to 86400 (got "never")'],
    [
      'BODY_LIMIT',
      '32 miles',
      'must be a size from 1024 to 1073741824 bytes, like 33554432, 10MB or 32MiB (got "32 miles")',
    ],
    ['BODY_LIMIT', '1kB', 'must be a size from 1024 to 1073741824 bytes, like 33554432, 10MB or 32MiB (got "1kB")'],
    ['USER_HEADER', 'x user', 'must be the name of an HTTP header (got "x user")'],
    ['ALLOWED_HOSTS', 'a,http://b', 'entry 2 is not host or host:port (got "a,http://b")'],
  ])('SPILLWAY_%s=%s', (name, value, reason) => {
    expect(complaint({ [`SPILLWAY_${name}`]: value })).toEqual({
      lines: [`SPILLWAY_${name}: ${reason}`],
      field: `SPILLWAY_${name}`,
    });
  });

  it('and under its flag if it came so', () => {
    expect(complaint({}, { 'purse-calls': 'many' }).lines).toEqual([
      '--purse-calls: must be a whole number from 1 to 10000 (got "many")',
    ]);
  });

  it('without a value if it is a secret', () => {
    expect(
      complaint({
        SPILLWAY_UPSTREAM_KEY: 'my secret',
        SPILLWAY_UPSTREAM_KEYS: 'my-secret,/a=my secret,/groq=fine',
        SPILLWAY_SUMMARY_KEY: 'mý-secret',
        SPILLWAY_ADMIN_TOKEN: 'my-secret',
        SPILLWAY_TENANT_SECRET: 'my-secret-my-secret',
      }).lines,
    ).toEqual([
      'SPILLWAY_UPSTREAM_KEY: must be printable ASCII without spaces',
      `SPILLWAY_UPSTREAM_KEYS: entry 1 must be /prefix=KEY or dialect=KEY; ${rule}`,
      'SPILLWAY_UPSTREAM_KEYS: /a must be a key of printable ASCII without spaces',
      'SPILLWAY_ADMIN_TOKEN: must have at least 16 characters',
      'SPILLWAY_TENANT_SECRET: must have at least 32 characters',
      'SPILLWAY_SUMMARY_KEY: must be printable ASCII without spaces',
    ]);
  });

  it('with all the others that are bad', () => {
    const { lines, field } = complaint(
      { SPILLWAY_PORT: 'x', SPILLWAY_TRIGGER: '2', SPILLWAY_STOER: 'memory' },
      { mode: 'off' },
    );
    expect(lines).toHaveLength(4);
    expect(field?.split(', ').toSorted()).toEqual(['--mode', 'SPILLWAY_PORT', 'SPILLWAY_STOER', 'SPILLWAY_TRIGGER']);
  });

  it.each([
    ['SPILLWAY_PROT', 'SPILLWAY_PORT'],
    ['SPILLWAY_UPSTREAM', 'SPILLWAY_UPSTREAMS'],
    ['SPILLWAY_ADMIN_TOKN', 'SPILLWAY_ADMIN_TOKEN'],
    ['SPILLWAY_DATADIR', 'SPILLWAY_DATA_DIR'],
    ['SPILLWAY_', 'SPILLWAY_HOST'],
  ])('%s is no setting: %s is the nearest', (name, nearest) => {
    expect(complaint({ [name]: 'value-of-it' }).lines).toEqual([`${name}: is no setting; did you mean ${nearest}?`]);
  });

  it('nor is a flag for a secret, which others could see', () => {
    expect(complaint({}, { 'admin-token': 'value-of-it-long-enough' }).lines).toEqual([
      '--admin-token: is no flag, which others on this machine could read; set SPILLWAY_ADMIN_TOKEN instead',
    ]);
  });

  it('nor is a flag that is nearly one, which is named with where all are listed', () => {
    expect(complaint({}, { prot: '1' }).lines).toEqual([
      '--prot: is no flag; did you mean --port? spillway serve --help lists all',
    ]);
  });
});

describe('settings that contradict each other', () => {
  it.each([
    [{ SPILLWAY_UPSTREAM_URL: 'http://localhost:8484/v1' }],
    [{ SPILLWAY_UPSTREAM_URL: 'http://127.0.0.1:8484/v1' }],
    [{ SPILLWAY_UPSTREAM_URL: 'http://[::1]:9/v1', SPILLWAY_PORT: '9', SPILLWAY_HOST: '::' }],
    [{ SPILLWAY_UPSTREAM_URL: 'http://0.0.0.0:8484/v1' }],
    [{ SPILLWAY_UPSTREAM_URL: 'http://10.0.0.5/v1', SPILLWAY_PORT: '80', SPILLWAY_HOST: '10.0.0.5' }],
  ])('are an upstream that is Spillway itself: %o', (env: Written) => {
    expect(complaint(env).lines).toEqual([
      `SPILLWAY_UPSTREAM_URL: is Spillway's own address (got "${env['SPILLWAY_UPSTREAM_URL']}")`,
    ]);
  });

  it.each([
    [{ SPILLWAY_UPSTREAM_URL: 'http://localhost:8485/v1' }],
    [{ SPILLWAY_UPSTREAM_URL: 'http://10.0.0.5:8484/v1' }],
    [{ SPILLWAY_UPSTREAM_URL: 'http://localhost:8484/v1', SPILLWAY_HOST: '10.0.0.5' }],
  ])('are none where only a part is the same: %o', (env: Written) => {
    expect(complaint(env).lines).toEqual([]);
  });

  it('are a key without a URL, and any upstream that is Spillway itself', () => {
    const env = {
      SPILLWAY_UPSTREAMS: '/self=http://localhost:8484/v1',
      SPILLWAY_UPSTREAM_KEYS: '/self=k1,responses=k2',
    };
    expect(complaint(env).lines).toEqual([
      'SPILLWAY_UPSTREAMS: /self is Spillway\'s own address (got "/self=http://localhost:8484/v1")',
      'SPILLWAY_UPSTREAM_KEYS: responses has a key, but no URL in SPILLWAY_UPSTREAMS',
    ]);
  });

  it('are the store redis without its URL, or with one that is none, of which nothing is shown', () => {
    const complaintOf = (url: string) => complaint({ SPILLWAY_STORE: 'redis', SPILLWAY_REDIS_URL: url }).lines;
    expect(complaintOf('')).toEqual(['SPILLWAY_REDIS_URL: is necessary for the store redis']);
    expect(complaintOf('http://user:hunter2@host')).toEqual([
      expect.stringMatching(/^SPILLWAY_REDIS_URL: must be redis:\/\/(?!.*hunter2)/),
    ]);
    const written = { SPILLWAY_STORE: 'redis', SPILLWAY_REDIS_URL: 'rediss://:hunter2@host' };
    expect(readConfig(written).redis).toMatchObject({ tls: true, password: 'hunter2', kind: { name: 'single' } });
    const shared = { SPILLWAY_STORE: 'redis', SPILLWAY_REDIS_URL: 'redis://host', SPILLWAY_HOST: '0.0.0.0' };
    expect(complaint(shared).lines).toEqual([
      'SPILLWAY_TENANT_SECRET: is necessary for the store redis where credentials are kept apart',
    ]);
    expect(readConfig({ ...shared, SPILLWAY_TENANT_SECRET: 'x'.repeat(32) }).loopback).toBe(false);
    expect(complaint({ SPILLWAY_REDIS_PREFIX: '{a}:' }).lines).toEqual([
      'SPILLWAY_REDIS_PREFIX: must be at most 100 letters, digits or any of _ : . / - (got "{a}:")',
    ]);
  });
});

describe('variables that Kubernetes sets beside a Service named spillway or spillway-redis', () => {
  it('are nobody’s settings', () => {
    const links = {
      SPILLWAY_SERVICE_HOST: '10.0.0.1',
      SPILLWAY_SERVICE_PORT: '80',
      SPILLWAY_SERVICE_PORT_HTTP: '80',
      SPILLWAY_PORT: 'tcp://10.0.0.1:80',
      SPILLWAY_PORT_80_TCP: 'tcp://10.0.0.1:80',
      SPILLWAY_PORT_80_TCP_ADDR: '10.0.0.1',
      SPILLWAY_PORT_80_TCP_PORT: '80',
      SPILLWAY_PORT_80_TCP_PROTO: 'tcp',
      SPILLWAY_REDIS_SERVICE_HOST: '10.0.0.2',
      SPILLWAY_REDIS_PORT: 'tcp://10.0.0.2:6379',
      SPILLWAY_REDIS_PORT_6379_TCP_PORT: '6379',
    };
    expect(readConfig(links)).toMatchObject({ port: 8484, host: '127.0.0.1' });
  });
});

describe('the help', () => {
  const helps = [...settingsHelp().values()];

  it('names every setting with its flag, type, default and description', () => {
    const text = settingsHelpText();
    for (const help of helps) {
      expect(help.name).toMatch(/^SPILLWAY_[A-Z_]+$/);
      expect(help.description).toMatch(/\.$/);
      expect(help.flag === null).toBe(help.secret);
      for (const part of [help.name, help.type, help.description, help.default ?? '']) expect(text).toContain(part);
      expect(text).toContain(help.secret ? `  ${help.name}` : `  --${help.flag}, ${help.name}`);
    }
    expect(new Set(helps.map((help) => help.name)).size).toBe(helps.length);
  });

  it('gives defaults that may be written out', () => {
    const written = helps.flatMap((help) => (help.default === null ? [] : [[help.name, help.default]]));
    expect(readConfig(Object.fromEntries(written))).toEqual(readConfig({}));
  });
});

it('no value of any setting makes reading fail otherwise than by naming it, and no secret is ever shown', () => {
  const helps = [...settingsHelp().values()];
  assert(
    property(constantFrom(...helps), string({ minLength: 1, unit: 'grapheme' }), (help, value) => {
      const { lines } = complaint({ [help.name]: value });
      for (const line of lines) expect(line.startsWith(`${help.name}: `)).toBe(true);
      expect(help.secret && lines.join('\n').includes('(got')).toBe(false);
    }),
    { numRuns: 500 },
  );
});
