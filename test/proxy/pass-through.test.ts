import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { startProvider } from '../support/provider.js';
import { sendRaw } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import { conversationsOf } from '../support/stored.js';

async function startBefore(respond: Parameters<typeof startProvider>[0], settings: Record<string, string> = {}) {
  const provider = await startProvider(respond);
  return { provider, pair: await startPair({ SPILLWAY_UPSTREAM_URL: provider.url, ...settings }) };
}

describe('what is no chat completion', () => {
  it('works with the official client: models, embeddings, and an upload', async () => {
    const pair = await startPair();
    const client = pair.client();
    const { data } = await client.models.list();
    expect(data.map(({ id }) => id)).toEqual(['simulated-model']);
    const embedded = await client.embeddings.create({ model: 'text-embedding-3-small', input: 'tide', dimensions: 8 });
    expect(embedded.data[0]?.embedding.length).toBe(8);
    const audio = new File([new Uint8Array(300_000).fill(7)], 'speech.wav', { type: 'audio/wav' });
    await client.audio.transcriptions.create({ model: 'whisper-1', file: audio });
    const upload = pair.simulator.requests.at(-1);
    expect(upload).toMatchObject({ method: 'POST', path: '/v1/audio/transcriptions' });
    expect(upload?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(upload?.bytes.length).toBeGreaterThan(300_000);
    expect(Buffer.from(upload?.bytes ?? []).includes('filename="speech.wav"')).toBe(true);
    expect(await conversationsOf(pair)).toEqual([]);
    expect(pair.logs.map(({ route }) => route)).toEqual(['/v1/models', '/v1/embeddings', '/v1/audio']);
  });

  it.each([
    ['GET', '/v1/models', ''],
    ['GET', '/v1/files?limit=2&after=a%20b', ''],
    ['DELETE', '/v1/files/file-1', ''],
    ['POST', '/v1/images/generations', '{ "prompt":"x" }'],
    ['PUT', '/v1/something/of/next%2Fyear?x=%C3%A4&y', 'raw'],
    ['PATCH', '/v1/vector_stores/1', '{}'],
    ['OPTIONS', '/v1/chat/completions', ''],
    ['GET', '/v1/chat/completions/chatcmpl-1', ''],
    ['GET', '/v1/responses/resp_1', ''],
    ['DELETE', '/v1/responses/resp_1', ''],
    ['POST', '/v1/messages/count_tokens', '{"model":"any","messages":[{"role":"user","content":"Hello"}]}'],
  ])('passes untouched both ways: %s %s', async (method, path, body) => {
    const { provider, pair } = await startBefore(
      (_, response) => void response.writeHead(207, { 'x-mine': 'Yes', 'content-type': 'text/odd' }).end(' {answer} '),
    );
    const answer = await sendRaw(pair.spillway.url, path, {
      method,
      headers: {
        authorization: 'Bearer sk-test',
        'accept-encoding': 'gzip, br',
        ...(body && { 'content-length': String(body.length) }),
      },
      body,
    }).answer;
    expect(answer.status).toBe(207);
    expect(answer.headers).toMatchObject({ 'x-mine': 'Yes', 'content-type': 'text/odd', 'x-spillway-action': 'none' });
    expect((await answer.body()).toString()).toBe(' {answer} ');
    const [received, ...more] = provider.received;
    expect(more).toEqual([]);
    expect(received).toMatchObject({ method, target: path });
    expect(received?.body.toString()).toBe(body);
    // What is not read may come encoded, as the client likes it.
    expect(received?.headers).toMatchObject({ authorization: 'Bearer sk-test', 'accept-encoding': 'gzip, br' });
    expect(await conversationsOf(pair)).toEqual([]);
  });

  it('answers HEAD with headers alone', async () => {
    const { pair } = await startBefore(
      (_, response) => void response.writeHead(200, { 'content-length': '17', 'x-mine': 'yes' }).end(),
    );
    const answer = await sendRaw(pair.spillway.url, '/v1/models', { method: 'HEAD' }).answer;
    expect(answer.headers).toMatchObject({ 'content-length': '17', 'x-mine': 'yes' });
    expect((await answer.body()).length).toBe(0);
  });

  it('keeps encoded answers, cookies, repeated headers, redirects and errors as they are', async () => {
    const { pair } = await startBefore((received, response) => {
      response.writeHead(
        received.target.endsWith('moved') ? 307 : 418,
        [
          ['Set-Cookie', 'a=1; Path=/'],
          ['Set-Cookie', 'b=2; HttpOnly'],
          ['Content-Encoding', 'br'],
          ['Location', 'https://elsewhere.example/v1/x'],
          ['X-Name', 'J\xfcrgen'],
        ].flat(),
      );
      response.end(Buffer.from([1, 2, 3, 255]));
    });
    for (const [path, status] of [
      ['/v1/teapot', 418],
      ['/v1/moved', 307],
    ] as const) {
      const answer = await sendRaw(pair.spillway.url, path, { method: 'GET' }).answer;
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({
        'set-cookie': ['a=1; Path=/', 'b=2; HttpOnly'],
        'content-encoding': 'br',
        location: 'https://elsewhere.example/v1/x',
        'x-name': 'J\xfcrgen',
      });
      expect([...(await answer.body())]).toEqual([1, 2, 3, 255]);
    }
  });

  it('is streamed down: the next piece leaves only after the last was seen', async () => {
    const waiting: (() => void)[] = [];
    const { pair } = await startBefore(async (_, response) => {
      response.writeHead(200);
      for (const piece of ['one,', 'two,', 'three']) {
        response.write(piece);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      response.end();
    });
    const answer = await sendRaw(pair.spillway.url, '/v1/audio/speech', { body: '{}' }).answer;
    for (const piece of ['one,', 'two,', 'three']) {
      await answer.until(piece);
      waiting.shift()?.();
    }
    expect((await answer.body()).toString()).toBe('one,two,three');
  });

  it('is streamed up: the upstream has the first part before the client sends the second', async () => {
    const pair = await startPair();
    const outgoing = request(`${pair.spillway.url}/v1/files?echo=bytes`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test', 'content-type': 'application/octet-stream' },
    });
    const answered = new Promise<Buffer>((resolve, reject) => {
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve(Buffer.concat(chunks)));
      });
    });
    const parts = [1, 2, 3].map((value) => Buffer.alloc(100_000, value));
    let sent = 0;
    for (const part of parts) {
      outgoing.write(part);
      sent += part.length;
      await pair.simulator.waitFor(({ bytesReceived }) => bytesReceived === sent);
    }
    outgoing.end();
    const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
    expect(digest(await answered)).toBe(digest(Buffer.concat(parts)));
  });

  it('is larger than what is read of a chat without being refused', async () => {
    const pair = await startPair({ SPILLWAY_BODY_LIMIT: '64KiB' });
    const answer = await sendRaw(pair.spillway.url, '/v1/files', {
      headers: { authorization: 'Bearer sk-test' },
      body: Buffer.alloc(1_000_000, 1),
    }).answer;
    expect(answer.status).toBe(200);
    expect(pair.simulator.requests.at(-1)?.bytesReceived).toBe(1_000_000);
  });
});

describe('headers', () => {
  const hopByHop = {
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
    'keep-alive': 'timeout=5',
    te: 'trailers',
    'proxy-authorization': 'Basic c2VjcmV0',
    'proxy-connection': 'keep-alive',
  };
  const own = { 'x-spillway-conversation': 'a', 'x-spillway-advance-head': 'true', 'x-spillway-unknown': 'x' };

  it.each([
    ['a chat', 'POST', '/v1/chat/completions', '{"model":"any","messages":[{"role":"user","content":"Hello"}]}'],
    ['anything else', 'POST', '/v1/embeddings', '{}'],
  ])('of one connection, and ours, do not go upstream; all others do: %s', async (_, method, path, body) => {
    const { provider, pair } = await startBefore((_request, response) => void response.end('{}'));
    const theirs = {
      authorization: 'Bearer sk-test',
      'OpenAI-Organization': 'org-1',
      'x-stainless-lang': 'js',
      'user-agent': 'odd/1',
      'x-request-id': 'mine',
      traceparent: '00-1-2-03',
    };
    await (
      await sendRaw(pair.spillway.url, path, {
        method,
        headers: { ...theirs, ...hopByHop, ...own, 'content-type': 'application/json' },
        body,
      }).answer
    ).body();
    const headers = provider.received[0]?.headers ?? {};
    expect(headers).toMatchObject(
      Object.fromEntries(Object.entries(theirs).map(([name, value]) => [name.toLowerCase(), value])),
    );
    expect(headers['host']).toBe(new URL(provider.url).host);
    expect(Object.keys(headers).filter((name) => name.startsWith('x-spillway-'))).toEqual([]);
    for (const name of Object.keys(hopByHop)) if (name !== 'connection') expect(headers).not.toHaveProperty(name);
    expect(headers['connection'] ?? '').not.toContain('x-hop');
    expect(headers['accept-encoding']).toBe(path.includes('chat') ? 'identity' : undefined);
  });

  it('of one connection do not come down either, nor those of another Spillway', async () => {
    const { pair } = await startBefore((_, response) => {
      response.writeHead(200, {
        connection: 'x-hop, keep-alive',
        'x-hop': '1',
        'keep-alive': 'timeout=1',
        'proxy-authenticate': 'Basic',
        trailer: 'x-later',
        'x-spillway-head': 'forged',
        'x-theirs': '1',
      });
      response.end('{}');
    });
    const answer = await sendRaw(pair.spillway.url, '/v1/models', { method: 'GET' }).answer;
    expect(answer.headers).toMatchObject({ 'x-theirs': '1', 'x-spillway-action': 'none' });
    for (const name of ['x-hop', 'proxy-authenticate', 'trailer', 'x-spillway-head'])
      expect(answer.headers).not.toHaveProperty(name);
    expect(answer.headers['keep-alive']).not.toBe('timeout=1');
  });
});

describe('an upstream', () => {
  it("is chosen by the path's prefix or the dialect, each with its base URL and its key", async () => {
    const [main, groq, claude] = await Promise.all(
      [1, 2, 3].map(() => startProvider((_, response) => void response.end('{}'))),
    );
    const pair = await startPair({
      SPILLWAY_UPSTREAM_URL: main?.url ?? '',
      SPILLWAY_UPSTREAMS: `/groq=${groq?.url}/openai, anthropic-messages=${claude?.url}`,
      SPILLWAY_UPSTREAM_KEYS: '/groq=sk-of-groq',
    });
    const chat = '{"model":"any","messages":[{"role":"user","content":"Hello"}]}';
    const headers = { authorization: 'Bearer sk-mine', 'content-type': 'application/json' };
    for (const path of ['/v1/chat/completions', '/groq/v1/chat/completions', '/groq/v1/models', '/v1/messages']) {
      await (await sendRaw(pair.spillway.url, path, { headers, body: chat }).answer).body();
    }
    const seen = [main, groq, claude].map((provider) =>
      provider?.received.map((received) => [received.target, received.headers.authorization]),
    );
    expect(seen).toEqual([
      [['/v1/chat/completions', 'Bearer sk-mine']],
      [
        ['/v1/openai/chat/completions', 'Bearer sk-of-groq'],
        ['/v1/openai/models', 'Bearer sk-of-groq'],
      ],
      [['/v1/messages', 'Bearer sk-mine']],
    ]);
  });
});
