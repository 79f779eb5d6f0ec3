import { afterEach, describe, expect, it } from 'vitest';
import {
  checkHost,
  checkLoan,
  checkOperator,
  providerCredential,
  type AccessSettings,
  type Caller,
} from '../../src/http/auth.js';
import { startApp, type RunningApp } from './start-app.js';

const token = 'a-token-of-the-operator';
const onLoopback: AccessSettings = { loopback: true, adminToken: null, allowedHosts: [] };
const withToken: AccessSettings = { ...onLoopback, adminToken: token };
const onNetwork: AccessSettings = { ...withToken, loopback: false };
const withHosts: AccessSettings = { ...onLoopback, allowedHosts: ['spillway.lan', 'other.lan:8484', '[fd00::1]'] };

const caller = (headers: Readonly<Record<string, string>> = {}, rest: Partial<Caller> = {}): Caller => ({
  method: 'GET',
  remoteAddress: '127.0.0.1',
  ...rest,
  headers: { host: 'localhost:8484', ...headers },
});
const bearer = (value: string) => ({ authorization: `Bearer ${value}` });
const verdict = async (check: () => void | Promise<void>): Promise<string> => {
  try {
    await check();
    return 'in';
  } catch (error) {
    return error instanceof Error && 'code' in error && 'field' in error
      ? `${String(error.code)} ${String(error.field)}`
      : 'defect';
  }
};
const operator = (from: Caller, settings: AccessSettings) => verdict(() => checkOperator(from, settings));
const refused = 'unauthorized authorization';

describe('the operator (SPEC 8.6)', () => {
  it.each(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])(
    'is a direct loopback connection from %s',
    async (remoteAddress) => {
      expect(await operator(caller({}, { remoteAddress }), onLoopback)).toBe('in');
      expect(await operator(caller({}, { remoteAddress }), withToken)).toBe('in');
    },
  );

  it.each(['10.0.0.2', '::2', 'fd00::127.0.0.1', '::ffff:10.127.0.1', '1270.0.0.1', null])(
    'is no connection from %s without the token',
    async (remoteAddress) => {
      expect(await operator(caller({}, { remoteAddress }), onLoopback)).toBe(refused);
      expect(await operator(caller(bearer(token), { remoteAddress }), withToken)).toBe('in');
    },
  );

  it.each(['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-anything', 'forwarded', 'x-real-ip', 'via'])(
    'is not behind a proxy that sends %s, but for the token',
    async (name) => {
      expect(await operator(caller({ [name]: '' }), withToken)).toBe(refused);
      expect(await operator(caller({ [name]: '', ...bearer(token) }), withToken)).toBe('in');
    },
  );

  it('is nobody beyond loopback without the token', async () => {
    expect(await operator(caller(), onNetwork)).toBe(refused);
    expect(await operator(caller(bearer(token), { remoteAddress: '10.0.0.2' }), onNetwork)).toBe('in');
    expect(await operator(caller({ 'x-spillway-admin-token': token }), onNetwork)).toBe('in');
    expect(await operator(caller(), { ...onNetwork, adminToken: null })).toBe(refused);
  });

  it.each([
    bearer(''),
    bearer('undefined'),
    bearer('null'),
    bearer(token.slice(0, -1)),
    bearer(`${token}x`),
    bearer(token.toUpperCase()),
    { authorization: token },
    { authorization: `Basic ${token}` },
    { 'x-spillway-admin-token': '' },
    { 'x-api-key': token },
  ])('is not whoever sends %o', async (headers: Readonly<Record<string, string>>) => {
    expect(await operator(caller(headers), onNetwork)).toBe(refused);
    expect(await operator(caller(headers), { ...onNetwork, adminToken: null })).toBe(refused);
  });

  it('may send a provider’s credential along on loopback, and beside the token elsewhere', async () => {
    const headers = { ...bearer('sk-provider'), 'x-api-key': 'k', 'openai-organization': 'o', cookie: 'c' };
    expect(await operator(caller(headers), withToken)).toBe('in');
    expect(await providerCredential(caller(headers), withToken)).toEqual({
      authorization: 'Bearer sk-provider',
      'x-api-key': 'k',
      'openai-organization': 'o',
    });
  });

  it('never has the admin token taken for a provider’s credential', async () => {
    expect(await providerCredential(caller(bearer(token)), withToken)).toEqual({});
    expect(await providerCredential(caller({ 'x-spillway-admin-token': token }), withToken)).toEqual({});
  });
});

describe('a page of the web', () => {
  const post = (headers: Readonly<Record<string, string>>) => caller(headers, { method: 'POST' });

  it.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'chrome-extension://abc' },
    { origin: 'http://localhost:3000' },
    { origin: 'http://localhost.evil.example:8484' },
    { origin: 'http://127.0.0.1:8484' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])(
    'cannot change anything through the API with %o, not even with the token',
    async (headers: Readonly<Record<string, string>>) => {
      expect(await operator(post(headers), withToken)).toBe('forbidden_host origin');
      expect(await operator(post({ ...headers, ...bearer(token) }), onNetwork)).toBe('forbidden_host origin');
    },
  );

  it.each([{}, { origin: 'http://localhost:8484' }, { 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }])(
    'of our own, or no page at all, can: %o',
    async (headers: Readonly<Record<string, string>>) => {
      expect(await operator(post(headers), onLoopback)).toBe('in');
    },
  );

  it('of an allowed host can', async () => {
    expect(await operator(post({ origin: 'https://spillway.lan' }), withHosts)).toBe('in');
    expect(await operator(post({ origin: 'http://other.lan:8484' }), withHosts)).toBe('in');
    expect(await operator(post({ origin: 'http://other.lan:8485' }), withHosts)).toBe('forbidden_host origin');
  });

  it.each(['https://evil.example', 'null', 'https://localhost.evil.example'])(
    'from %s is lent nothing under /v1',
    async (origin) => {
      const lend = (headers: Readonly<Record<string, string>>, lendsKey: boolean) =>
        verdict(() => checkLoan(post({ origin, ...headers }), onLoopback, lendsKey));
      expect(await lend({}, true)).toBe('forbidden_host origin');
      expect(await lend({ 'x-spillway-conversation': 'main' }, false)).toBe('forbidden_host origin');
      expect(await lend(bearer('its-own-key'), false)).toBe('in');
    },
  );

  it('of this machine is lent what it asks for', async () => {
    for (const origin of ['http://localhost:3000', 'http://127.0.0.1:5173', 'http://[::1]:80']) {
      expect(await verdict(() => checkLoan(post({ origin }), onLoopback, true))).toBe('in');
    }
  });
});

describe('the Host header', () => {
  const trusted = [
    'localhost',
    'localhost:1',
    'LOCALHOST:8484',
    '127.0.0.1',
    '127.0.0.1:8484',
    '127.1.2.3',
    '[::1]',
    '[::1]:8484',
  ];
  const hostile = [
    '',
    'evil.example',
    'evil.example:8484',
    'localhost.evil.example',
    'evil-localhost',
    'localhost.',
    '127.0.0.1.evil.example',
    'localhost:8484@evil.example',
    'evil.example#localhost',
    'localhost evil',
    'localhost:',
    'localhost:port',
    'localhost:123456',
    '::1',
    '[::2]',
    '0.0.0.0:8484',
    '192.168.1.2',
    '2130706433',
    'xn--localhost-9ya',
  ];

  it.each(trusted)('%j is answered on loopback', async (host) => {
    expect(await verdict(() => checkHost(caller({ host }), onLoopback))).toBe('in');
    expect(await operator(caller({ host }), onLoopback)).toBe('in');
  });

  it.each(hostile)('%j is not: a foreign name was made to resolve here', async (host) => {
    expect(await verdict(() => checkHost(caller({ host }), onLoopback))).toBe('forbidden_host host');
    expect(await operator(caller({ host }), onLoopback)).toBe('forbidden_host host');
  });

  it('may be one of the allowed, with any port unless one is given', async () => {
    const check = (host: string, settings = withHosts) => verdict(() => checkHost(caller({ host }), settings));
    for (const host of ['spillway.lan', 'Spillway.lan:1', 'other.lan:8484', '[fd00::1]:8484'])
      expect(await check(host)).toBe('in');
    for (const host of ['other.lan', 'other.lan:1', 'x.spillway.lan', 'spillway.lan.evil.example']) {
      expect(await check(host)).toBe('forbidden_host host');
    }
  });

  it('is any beyond loopback, unless some are configured', async () => {
    expect(await verdict(() => checkHost(caller({ host: 'proxy.example' }), onNetwork))).toBe('in');
    const strict = { ...onNetwork, allowedHosts: ['proxy.example'] };
    expect(await verdict(() => checkHost(caller({ host: 'proxy.example' }), strict))).toBe('in');
    expect(await verdict(() => checkHost(caller({ host: 'evil.example' }), strict))).toBe('forbidden_host host');
  });
});

describe('over real HTTP', () => {
  let app: RunningApp;
  afterEach(() => app.stop());
  const list = '/spillway/v1/conversations';

  it('a foreign Host gets 403 from /v1 and from the API, in clear JSON', async () => {
    app = await startApp();
    for (const path of ['/v1/models', list, '/anything']) {
      const { status, body } = await app.json(path, { headers: { host: 'evil.example:8484' } });
      expect(status).toBe(403);
      expect(body).toEqual({
        error: {
          message:
            'Host "evil.example:8484" is not answered here: use localhost or 127.0.0.1, or add it to SPILLWAY_ALLOWED_HOSTS.',
          type: 'invalid_request_error',
          param: 'host',
          code: 'forbidden_host',
        },
      });
    }
    expect(app.proxied).toEqual([]);
    expect(app.refusals).toEqual(
      Array.from({ length: 3 }, () => ({ method: 'GET', status: 403, code: 'forbidden_host' })),
    );
  });

  it('an API bound beyond loopback gets 401 without the token and 200 with it; /v1 needs none', async () => {
    app = await startApp({ access: onNetwork });
    const refusal = await app.send(list);
    expect(refusal).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
    expect(JSON.parse(refusal.text)).toMatchObject({ error: { type: 'authentication_error', code: 'unauthorized' } });
    expect(refusal.text).toContain('which was printed at the start unless SPILLWAY_ADMIN_TOKEN sets it');
    expect(refusal.text).not.toContain(token);
    expect(await app.send(list, { headers: bearer(token) })).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'no-store' },
    });
    expect((await app.send('/v1/models')).status).toBe(200);
  });

  it('every path under /spillway is the operator’s, known or not, however it is written', async () => {
    app = await startApp({ access: onNetwork });
    for (const path of [
      '/spillway/x',
      '/spillw%61y/v1/conversations',
      '/v1/../spillway/v1/conversations',
      `${list}/`,
    ]) {
      expect((await app.send(path)).status).toBe(401);
    }
  });

  it('a foreign page is refused the configured key, its preflight included', async () => {
    const upstreams = {
      main: { prefix: '', baseUrl: 'https://main.example/v1', apiKey: 'sk-ours' },
      byPrefix: new Map(),
      byDialect: new Map(),
    };
    app = await startApp({ upstreams });
    for (const method of ['POST', 'OPTIONS']) {
      expect(
        (await app.send('/v1/chat/completions', { method, headers: { origin: 'https://evil.example' } })).status,
      ).toBe(403);
    }
    expect((await app.send('/v1/chat/completions', { method: 'POST' })).status).toBe(200);
  });
});
