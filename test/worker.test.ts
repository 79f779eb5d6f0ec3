import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unstable_startWorker } from 'wrangler';

describe('the Worker', () => {
  let upstream: Server;
  let worker: Awaited<ReturnType<typeof unstable_startWorker>>;

  beforeAll(async () => {
    upstream = createServer().listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const { port } = upstream.address() as AddressInfo;
    worker = await unstable_startWorker({
      config: 'wrangler.toml',
      bindings: { SPILLWAY_UPSTREAM_URL: { type: 'plain_text', value: `http://127.0.0.1:${port}/base/v1` } },
      dev: { server: { hostname: '127.0.0.1', port: 0 }, inspector: false, watch: false, logLevel: 'none' },
    });
    await worker.ready;
  });

  afterAll(async () => {
    await worker.dispose();
    upstream.closeAllConnections();
    upstream.close();
  });

  async function next(): Promise<{ readonly request: IncomingMessage; readonly response: ServerResponse }> {
    const [request, response] = (await once(upstream, 'request')) as [IncomingMessage, ServerResponse];
    return { request, response };
  }

  it('answers /health', async () => {
    const response = await worker.fetch('http://spillway/health');
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
  });

  it('passes a request under /v1 through with the header rules, and its answer as it arrives', async () => {
    const arriving = next();
    const answer = worker.fetch('http://spillway/v1/chat/completions?a=b', {
      method: 'POST',
      headers: { authorization: 'Bearer client', 'x-spillway-conversation': 'c' },
      body: '{"stream":true}',
    });
    const { request, response } = await arriving;
    const body = await request.toArray();
    expect([request.method, request.url, Buffer.concat(body).toString()]).toEqual([
      'POST',
      '/base/v1/chat/completions?a=b',
      '{"stream":true}',
    ]);
    expect(request.headers).toMatchObject({ authorization: 'Bearer client', 'accept-encoding': 'identity' });
    expect(request.headers).not.toHaveProperty('x-spillway-conversation');
    response.writeHead(429, ['content-type', 'text/event-stream', 'set-cookie', 'a=1', 'set-cookie', 'b=2']);
    response.write('data: 1\n\n');
    const reply = await answer;
    expect(reply.status).toBe(429);
    expect(reply.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    const decoder = new TextDecoder();
    const pieces: string[] = [];
    for await (const piece of reply.body!) {
      pieces.push(decoder.decode(piece as Uint8Array));
      // The second event leaves only once the first has come through.
      if (pieces.length === 1) response.end('data: 2\n\n');
    }
    expect(pieces).toEqual(['data: 1\n\n', 'data: 2\n\n']);
  });

  it('passes an answer without a body through', async () => {
    const arriving = next();
    const answer = worker.fetch('http://spillway/v1/files/f', { method: 'DELETE' });
    (await arriving).response.writeHead(204).end();
    const reply = await answer;
    expect([reply.status, await reply.text()]).toEqual([204, '']);
  });

  it.each([
    ['/v1/files/..%2fadmin', 400, 'invalid_request'],
    ['/other', 404, 'not_found'],
    ['/v1x', 404, 'not_found'],
  ])('refuses %s with %i in the form of an OpenAI error', async (path, status, code) => {
    const response = await worker.fetch(`http://spillway${path}`);
    expect([response.status, await response.json()]).toMatchObject([
      status,
      { error: { code, type: 'invalid_request_error' } },
    ]);
  });

  it('says 502 when the upstream does not answer', async () => {
    const arriving = next();
    const answer = worker.fetch('http://spillway/v1/models');
    (await arriving).request.socket.destroy();
    const response = await answer;
    expect([response.status, await response.json()]).toMatchObject([502, { error: { code: 'upstream_unreachable' } }]);
  });

  it('bundles without Node: the dry run of a deployment passes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'spillway-worker-'));
    try {
      await promisify(execFile)(
        process.execPath,
        ['node_modules/wrangler/bin/wrangler.js', 'deploy', '--dry-run', '--outdir', folder],
        {
          env: { ...process.env, WRANGLER_SEND_METRICS: 'false', CI: 'true' },
        },
      );
      expect(await readdir(folder)).toContain('worker.js');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
