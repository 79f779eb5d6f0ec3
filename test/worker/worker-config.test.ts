import { describe, expect, it } from 'vitest';
import { readWorkerConfig } from '../../src/worker/worker-config.js';

const SPILLWAY_TENANT_SECRET = 'x'.repeat(32);

const refused = (field: string, message: RegExp) =>
  expect.objectContaining({ code: 'invalid_setting', field, message: expect.stringMatching(message) });

describe('the settings of a Worker', () => {
  it('are the strings among its bindings that are named as settings', () => {
    const config = readWorkerConfig({
      SPILLWAY_TENANT_SECRET,
      SPILLWAY_WINDOWS: 'small=4000',
      CONVERSATIONS: { getByName: () => null },
      OTHER: 'no setting',
      SPILLWAY_SUMMARY_MODEL: '',
    });
    expect(config).toMatchObject({
      tenantSecret: SPILLWAY_TENANT_SECRET,
      windows: [{ pattern: 'small', tokens: 4000 }],
    });
    expect(config.summaryModel).toBeNull();
  });

  it('keep tenants apart and the API closed to all but the token, as on any address that others reach, SPEC 1.1, 8.6', () => {
    expect(readWorkerConfig({ SPILLWAY_TENANT_SECRET })).toMatchObject({ loopback: false, singleTenant: false });
    expect(readWorkerConfig({ SPILLWAY_TENANT_SECRET, SPILLWAY_TENANTS: 'single' }).singleTenant).toBe(true);
  });

  it('read smaller bodies unless told otherwise', () => {
    expect(readWorkerConfig({ SPILLWAY_TENANT_SECRET }).bodyLimitBytes).toBe(16 * 2 ** 20);
    expect(readWorkerConfig({ SPILLWAY_TENANT_SECRET, SPILLWAY_BODY_LIMIT: '1MiB' }).bodyLimitBytes).toBe(2 ** 20);
  });

  it('take a local upstream on any port, because a Worker has none', () => {
    const config = readWorkerConfig({ SPILLWAY_TENANT_SECRET, SPILLWAY_UPSTREAM_URL: 'http://127.0.0.1:8484/v1' });
    expect(config.upstreams.main.baseUrl).toBe('http://127.0.0.1:8484/v1');
  });

  it.each([
    'SPILLWAY_HOST',
    'SPILLWAY_PORT',
    'SPILLWAY_DATA_DIR',
    'SPILLWAY_STORE',
    'SPILLWAY_SQLITE_SYNC',
    'SPILLWAY_REDIS_URL',
    'SPILLWAY_DRAIN_SECONDS',
  ])('refuse %s, which means nothing there', (name) => {
    expect(() => readWorkerConfig({ SPILLWAY_TENANT_SECRET, [name]: 'x' })).toThrow(refused(name, /means nothing/));
  });

  it('refuse to be without the secret that keys tenants, SPEC 1.1', () => {
    expect(() => readWorkerConfig({})).toThrow(refused('SPILLWAY_TENANT_SECRET', /must be set/));
  });

  it('are refused as everywhere else, by name and without a secret in it', () => {
    const wrong = { SPILLWAY_TENANT_SECRET: 'too short', SPILLWAY_TRIGER: '0.5' };
    expect(() => readWorkerConfig(wrong)).toThrow(
      refused('SPILLWAY_TRIGER, SPILLWAY_TENANT_SECRET', /^((?!too short).)*SPILLWAY_TRIGGER/s),
    );
  });
});
