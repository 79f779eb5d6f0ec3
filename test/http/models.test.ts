import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LearnedWindow } from '../../src/core/windows.js';
import { startApp, type RunningApp } from './start-app.js';

const base = '/spillway/v1/models';

describe('/models', () => {
  let app: RunningApp;
  beforeEach(async () => {
    app = await startApp();
  });
  afterEach(() => app.stop());

  const learned = (changes: Partial<LearnedWindow> = {}): LearnedWindow => ({
    tenant: 'alice',
    upstream: 'https://main.example/v1',
    model: 'vendor/model-a',
    tokens: 32_768,
    source: 'stated',
    rule: 'code+maximum-context',
    learnedAt: app.now(),
    expiresAt: app.now() + 100_000,
    ...changes,
  });
  const list = async () => (await app.json(base)).body as { data: Record<string, unknown>[] };

  it('is empty before any model was met', async () => {
    expect(await app.json(base)).toEqual({ status: 200, body: { data: [] } });
  });

  it("tells the operator what is believed of every tenant's models and why, SPEC 6.5, 8.6", async () => {
    const window = learned();
    await app.ledger.learnWindow(window);
    await app.ledger.learnWindow(learned({ tenant: 'bob', tokens: 16_384 }));
    const { data } = await list();
    expect(data.map((entry) => [entry['tenant'], entry['window']])).toEqual([
      ['bob', 16_384],
      ['alice', 32_768],
    ]);
    expect(data[1]).toEqual({
      id: expect.stringMatching(/^m_[\w-]{22}$/),
      tenant: 'alice',
      upstream: 'https://main.example/v1',
      model: 'vendor/model-a',
      window: 32_768,
      source: 'learned',
      max_output_tokens: 4_096,
      configured: null,
      learned: {
        tokens: 32_768,
        source: 'stated',
        rule: 'code+maximum-context',
        learned_at: window.learnedAt,
        expires_at: window.expiresAt,
      },
      discovered: null,
      catalogue: 64_000,
    });
  });

  it('forgets a learned window by its id, and no other', async () => {
    await app.ledger.learnWindow(learned());
    await app.ledger.learnWindow(learned({ tenant: 'bob' }));
    const { data } = await list();
    const path = `${base}/${String(data.find((entry) => entry['tenant'] === 'alice')?.['id'])}`;
    expect(await app.send(path, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' });
    expect((await list()).data.map((entry) => entry['tenant'])).toEqual(['bob']);
    expect(await app.json(path, { method: 'DELETE' })).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found', param: 'id' } },
    });
  });

  it.each([
    ['GET', `${base}?limit=1`],
    ['DELETE', `${base}/m_1?force=true`],
  ])('refuses a query that it does not know: %s %s', async (method, path) => {
    expect(await app.json(path, { method })).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_request' } },
    });
  });

  it('is closed to everybody but the operator, SPEC 8.6', async () => {
    const closed = await startApp({ access: { loopback: false, adminToken: 'a'.repeat(24), allowedHosts: [] } });
    try {
      expect((await closed.send(base)).status).toBe(401);
      expect((await closed.send(`${base}/m_1`, { method: 'DELETE' })).status).toBe(401);
    } finally {
      await closed.stop();
    }
  });
});
