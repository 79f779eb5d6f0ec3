import { describe, expect, it } from 'vitest';
import { createRequestLog } from '../../src/proxy/request-log.js';
import type { LogFields } from '../../src/proxy/request-log.js';
import { startProvider } from '../support/provider.js';
import { startPair } from '../support/start.js';

describe('the line of a request', () => {
  it('gathers what is known, the latest last, and is written once', () => {
    const lines: LogFields[] = [];
    const log = createRequestLog((fields) => lines.push(fields), { method: 'POST' });
    log.add({ status: 200, model: 'a' });
    log.add({ status: 502, store: null });
    log.write();
    log.add({ status: 1 });
    log.write();
    expect(lines).toEqual([{ method: 'POST', status: 502, model: 'a', store: null }]);
  });

  it('holds no text longer than 200 characters', () => {
    const lines: LogFields[] = [];
    const log = createRequestLog((fields) => lines.push(fields), { route: 'r'.repeat(201) });
    log.add({ model: 'm'.repeat(10_000), name: 'n'.repeat(200) });
    log.write();
    expect(lines).toEqual([{ route: `${'r'.repeat(200)}…`, model: `${'m'.repeat(200)}…`, name: 'n'.repeat(200) }]);
  });
});

it('every log line stays short, however long a client makes a name, a path or a header', async () => {
  const provider = await startProvider((_, response) => void response.end('{}'));
  const pair = await startPair({ SPILLWAY_UPSTREAM_URL: provider.url, SPILLWAY_STORE: 'memory' });
  const long = 'x'.repeat(9_000);
  await pair.post(
    { model: long, messages: [{ role: 'user', content: 'Hello' }], user: long, metadata: { session: long } },
    { 'x-session-id': long.slice(0, 3_000), 'user-agent': long.slice(0, 3_000) },
  );
  await pair.post({ model: long, messages: 7 });
  await pair.post({ model: 'm', messages: [] }, { 'x-spillway-conversation': long });
  await fetch(`${pair.spillway.url}/v1/${long}`);
  await fetch(`${pair.spillway.url}/${long}`);
  await fetch(`${pair.spillway.url}/spillway/v1/conversations/${long}`);
  await expect.poll(() => pair.logs.length).toBe(6);
  expect(pair.logs.map((line) => JSON.stringify(line).length).filter((length) => length > 1_000)).toEqual([]);
  expect(pair.logs[0]).toMatchObject({ model: `${'x'.repeat(200)}…` });
});
