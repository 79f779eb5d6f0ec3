import { setImmediate as nextRound } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDiscovery } from '../../src/upstream/discovery.js';
import type { SendUpstream, UpstreamRequest } from '../../src/upstream/upstream.js';

const scope = { tenant: 'local', upstream: 'https://provider.test/v1' };
const listRequest = { url: 'https://provider.test/v1/models', headers: { authorization: 'Bearer sk-test' } };
const request = () => listRequest;
const list = (tokens: number): string => JSON.stringify({ data: [{ id: 'm', max_model_len: tokens }] });

/** Bytes of a body that come at once. */
const PIECE = 1_000_000;

/** A discovery whose upstream answers as `respond` says; `now` is its clock. */
function start(respond: (asked: UpstreamRequest) => { readonly status?: number; readonly body: string } | Error) {
  const asked: UpstreamRequest[] = [];
  const time = { now: 1_000 };
  const send: SendUpstream = async (sent) => {
    asked.push(sent);
    await nextRound();
    sent.signal.throwIfAborted();
    const answer = respond(sent);
    if (answer instanceof Error) throw answer;
    const body = (async function* () {
      const bytes = new TextEncoder().encode(answer.body);
      for (let from = 0; from < bytes.byteLength; from += PIECE)
        yield await Promise.resolve(bytes.subarray(from, from + PIECE));
    })();
    return { status: answer.status ?? 200, headers: [], body };
  };
  const discovery = createDiscovery({ send, clock: () => time.now });
  onTestFinished(() => discovery.close());
  /** Asks, and waits until nothing is under way. */
  const refreshed = async (of = scope) => {
    const before = asked.length;
    discovery.refresh(of, request);
    if (asked.length > before) for (let round = 0; round < 200; round += 1) await nextRound();
    return discovery.windowOf(of, 'm')?.tokens ?? null;
  };
  return { discovery, asked, time, refreshed };
}

const HOUR_MS = 60 * 60_000;

describe('discovery', () => {
  it('knows nothing before it asked, and asks only when told to, with the credential it was given', async () => {
    const { discovery, asked, refreshed } = start(() => ({ body: list(8_192) }));
    expect(discovery.windowOf(scope, 'm')).toBeNull();
    expect(asked).toEqual([]);
    expect(await refreshed()).toBe(8_192);
    const headers = { ...listRequest.headers, 'accept-encoding': 'identity' };
    expect(asked).toEqual([expect.objectContaining({ method: 'GET', body: null, ...listRequest, headers })]);
    expect(discovery.windowOf(scope, 'm')).toEqual({ tokens: 8_192, discoveredAt: 1_000, expiresAt: 1_000 + HOUR_MS });
    expect(discovery.windowOf(scope, 'other')).toBeNull();
  });

  it('asks once for all that ask meanwhile, and again when the list is old; until then the old one holds', async () => {
    let tokens = 8_192;
    const { discovery, asked, time, refreshed } = start(() => ({ body: list(tokens) }));
    discovery.refresh(scope, request);
    discovery.refresh(scope, request);
    expect(await refreshed()).toBeNull();
    for (let round = 0; round < 200; round += 1) await nextRound();
    expect(await refreshed()).toBe(8_192);
    expect(asked.length).toBe(1);

    tokens = 4_096;
    time.now += HOUR_MS - 1;
    expect(await refreshed()).toBe(8_192);
    time.now += 1;
    discovery.refresh(scope, request);
    expect(discovery.windowOf(scope, 'm')?.tokens).toBe(8_192);
    for (let round = 0; round < 200; round += 1) await nextRound();
    expect(discovery.windowOf(scope, 'm')?.tokens).toBe(4_096);
    expect(asked.length).toBe(2);
  });

  it('is of one tenant and one upstream, SPEC 1.1', async () => {
    const { discovery, asked, refreshed } = start(() => ({ body: list(8_192) }));
    await refreshed();
    expect(discovery.windowOf({ ...scope, tenant: 'other' }, 'm')).toBeNull();
    expect(discovery.windowOf({ ...scope, upstream: 'https://other.test' }, 'm')).toBeNull();
    expect(await refreshed({ ...scope, tenant: 'other' })).toBe(8_192);
    expect(asked.length).toBe(2);
  });

  it.each([
    ['a refusal', { status: 404, body: '{"error":{}}' }],
    ['no JSON', { body: '<html>' }],
    ['a list too long', { body: ' '.repeat(8 * 1024 * 1024) + list(4_096) }],
    ['no connection', new Error('unreachable')],
  ])('remembers %s for a while and then tries again', async (_, answer) => {
    let works = false;
    const { asked, time, refreshed } = start(() => (works ? { body: list(8_192) } : answer));
    expect(await refreshed()).toBeNull();
    works = true;
    time.now += 10 * 60_000 - 1;
    expect(await refreshed()).toBeNull();
    expect(asked.length).toBe(1);
    time.now += 1;
    expect(await refreshed()).toBe(8_192);
  });

  it('keeps what it knew when the list cannot be had any more', async () => {
    let works = true;
    const { time, refreshed } = start(() => (works ? { body: list(8_192) } : new Error('down')));
    await refreshed();
    works = false;
    time.now += HOUR_MS;
    expect(await refreshed()).toBe(8_192);
  });

  it('keeps a bounded number of lists', async () => {
    const { discovery, refreshed } = start(() => ({ body: list(8_192) }));
    for (let index = 0; index <= 200; index += 1) discovery.refresh({ ...scope, tenant: `t${index}` }, request);
    for (let round = 0; round < 400; round += 1) await nextRound();
    expect(discovery.windowOf({ ...scope, tenant: 't0' }, 'm')).toBeNull();
    expect(discovery.windowOf({ ...scope, tenant: 't200' }, 'm')?.tokens).toBe(8_192);
    expect(await refreshed({ ...scope, tenant: 't0' })).toBe(8_192);
  });

  it('breaks off at the end and asks no more', async () => {
    const { discovery, asked } = start(() => ({ body: list(8_192) }));
    discovery.refresh(scope, request);
    await discovery.close();
    expect(asked[0]?.signal.aborted).toBe(true);
    discovery.refresh(scope, request);
    expect(asked.length).toBe(1);
  });
});
