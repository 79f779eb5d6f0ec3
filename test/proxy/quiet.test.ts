import { createHmac, hash as digestOf, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { compose } from '../../src/compose.js';
import { readConfig } from '../../src/config.js';
import type { TokenCounter } from '../../src/core/ports.js';
import type { SqlValue } from '../../src/ledger/sql-database.js';
import { openSqliteLedger } from '../../src/ledger/sqlite.js';
import type { Sink } from '../../src/proxy/sink.js';
import { createCounterLoader } from '../../src/tokens/counter.js';
import type { PatientCounter } from '../../src/tokens/counter.js';
import { readPackedRanks } from '../../src/tokens/node-ranks.js';
import { decodeBody } from '../../src/upstream/decode-body.js';
import { createNodeSend } from '../../src/upstream/node-send.js';
import { createWindows } from '../../src/upstream/windows.js';
import { completion, startProvider } from '../support/provider.js';

const counters = createCounterLoader(readPackedRanks);
const REPLY = 'A reply of a few words.';

interface Cost {
  /** Bytes of text that a tokenizer ran over. */
  readonly tokenizedBytes: number;
  readonly writtenRows: number;
  readonly counterLoads: number;
  readonly action: string;
  readonly kind: string;
}

/** The whole proxy on a real store and a real upstream connection; what a turn costs is counted at its ports. */
async function startCounted(windows: string) {
  const provider = await startProvider((_, response) => void response.end(completion(REPLY)));
  const dataDir = await mkdtemp(join(tmpdir(), 'spillway-test-'));
  const config = readConfig({
    SPILLWAY_UPSTREAM_URL: provider.url,
    SPILLWAY_DATA_DIR: dataDir,
    SPILLWAY_WINDOWS: windows,
  });
  const databases: Database.Database[] = [];
  const ledger = await openSqliteLedger(
    { file: join(dataDir, 'spillway.db'), durability: 'normal', busyTimeoutMs: 1_000, clock: Date.now },
    (file) => {
      const database = new Database(file);
      databases.push(database);
      return {
        exec: (sql) => database.exec(sql),
        prepare: (sql) => database.prepare<SqlValue[]>(sql),
        close: () => database.close(),
      };
    },
  );
  const upstream = createNodeSend({ timeoutMs: null });
  onTestFinished(async () => {
    await upstream.close();
    await ledger.close();
    await rm(dataDir, { recursive: true, force: true });
  });
  let tokenizedBytes = 0;
  let counterLoads = 0;
  const countOf = (counter: TokenCounter, known: ReadonlySet<string>) => (text: string) => {
    if (!known.has(text)) tokenizedBytes += Buffer.byteLength(text);
    return counter.count(text);
  };
  const counting = (counter: PatientCounter): PatientCounter => ({
    ...counter,
    count: countOf(counter, new Set()),
    async ahead(given) {
      const texts = [...given];
      for (const text of texts) tokenizedBytes += Buffer.byteLength(text);
      const ready = await counter.ahead(texts);
      return { ...ready, count: countOf(ready, new Set(texts)) };
    },
  });
  const { proxy } = compose(config, {
    ledger,
    directory: ledger,
    sharedCache: null,
    sharesWork: true,
    send: upstream.send,
    hash: (text) => digestOf('sha256', text, 'base64url').slice(0, 32),
    digest: (body) => digestOf('sha256', body, 'base64url'),
    sign: (text) => createHmac('sha256', 'secret').update(text).digest('base64url').slice(0, 32),
    uniqueId: () => randomBytes(16).toString('base64url'),
    now: () => performance.now(),
    async loadCounter(encoding) {
      counterLoads += 1;
      return counting(await counters(encoding));
    },
    limits: createWindows(config.windows, () => Promise.resolve(() => null)),
    readBody: (body, contentEncoding) => decodeBody(body, contentEncoding, config.bodyLimitBytes),
    writeLog(fields, error) {
      expect(error).toBeUndefined();
      expect(fields['outcome']).toBe('complete');
    },
    onGap: () => expect.unreachable('a record was not written'),
  });
  const totalChanges = (): unknown => databases[0]?.prepare('SELECT total_changes()').pluck().get();

  /** Sends a request and tells what it cost. */
  async function send(body: Readonly<Record<string, unknown>>): Promise<Cost> {
    const before = { tokenizedBytes, counterLoads, changes: totalChanges() };
    let headers: readonly (readonly [string, string])[] = [];
    const sink: Sink = {
      start(status, given) {
        expect(status).toBe(200);
        headers = given;
      },
      write: () => Promise.resolve(),
      end: () => Promise.resolve(),
      abort: () => expect.unreachable('the response broke off'),
      closed: new AbortController().signal,
    };
    await proxy(
      {
        method: 'POST',
        path: '/v1/chat/completions',
        query: '',
        headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
        body: (async function* () {
          yield await Promise.resolve(Buffer.from(JSON.stringify({ model: 'any', ...body })));
        })(),
        dialect: 'chat-completions',
        upstream: config.upstreams.main,
        arrivedAt: performance.now(),
      },
      sink,
    );
    const header = (name: string): string => headers.find(([given]) => given === name)?.[1] ?? '';
    return {
      tokenizedBytes: tokenizedBytes - before.tokenizedBytes,
      counterLoads: counterLoads - before.counterLoads,
      writtenRows: Number(totalChanges()) - Number(before.changes),
      action: header('x-spillway-action'),
      kind: header('x-spillway-tokens-kind'),
    };
  }
  return { send, provider };
}

/** So many messages, of about 190 bytes in JSON each; `word` makes them those of a conversation of its own. */
function history(word: string, messages: number) {
  return Array.from({ length: messages }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content:
      index % 2 === 0
        ? `${word} ${index} ${'some words that say nothing much '.repeat(4)}`
        : `Reply ${index} ${'and so on and on '.repeat(8)}`,
  }));
}

const reply = { role: 'assistant', content: REPLY };
const question = (index: number) => ({ role: 'user', content: `What of number ${index}?` });

describe('with nothing to do', () => {
  it.each([
    ['the window is far larger', '*=1000000'],
    ['nobody knows the window', 'other=2000'],
  ])('no tokenizer is loaded and the bytes leave as they came, because %s', async (_, windows) => {
    const { send, provider } = await startCounted(windows);
    const messages = history('long', 2_001);
    const cost = await send({ messages });
    expect(cost).toMatchObject({ counterLoads: 0, tokenizedBytes: 0, action: 'none', kind: 'bound' });
    expect(provider.received[0]?.body.toString()).toBe(JSON.stringify({ model: 'any', messages }));
    expect(await send({ messages: [...messages, reply, question(1)] })).toMatchObject({
      counterLoads: 0,
      tokenizedBytes: 0,
    });
  });
});

describe('in a conversation of 2,000 messages', () => {
  it('a turn writes the rows that a turn in a conversation of three writes', async () => {
    const { send } = await startCounted('*=1000000');
    const rows: Record<string, number> = {};
    for (const [word, length] of [
      ['short', 3],
      ['long', 2_001],
    ] as const) {
      const messages = history(word, length);
      await send({ messages });
      rows[word] = (await send({ messages: [...messages, reply, question(1)] })).writtenRows;
    }
    expect(rows['long']).toBe(rows['short']);
    // The question and the reply are two nodes; call, conversation and its use are three more.
    expect(rows['long']).toBeLessThanOrEqual(6);
    // A retry adds its call, and no node.
    const messages = [...history('long', 2_001), reply, question(1)];
    expect((await send({ messages })).writtenRows).toBeLessThan(rows['long'] ?? 0);
  });

  it('a turn tokenizes its new messages and nothing of the rest, once the bytes no longer show that all fits', async () => {
    // Some 370 kB and 60,000 tokens: the bytes alone exceed this window, the tokens do not.
    const { send } = await startCounted('*=350000');
    const messages = history('long', 2_001);
    const first = await send({ messages });
    expect(first).toMatchObject({ action: 'none', kind: 'estimate' });
    const text = messages.reduce((sum, message) => sum + Buffer.byteLength(message.content), 0);
    expect(first.tokenizedBytes).toBe(text + Buffer.byteLength(REPLY));
    for (const index of [1, 2, 3]) {
      messages.push(reply, question(index));
      const cost = await send({ messages });
      // The question, and the reply to it; the reply before was counted when it came.
      expect(cost).toMatchObject({
        kind: 'estimate',
        tokenizedBytes: Buffer.byteLength(question(index).content) + Buffer.byteLength(REPLY),
      });
    }
    expect((await send({ messages })).tokenizedBytes).toBe(Buffer.byteLength(REPLY));
  });

  it('the instructions and tools come on top, because they belong to each request', async () => {
    const { send } = await startCounted('*=350000');
    const system = { role: 'system', content: 'Be brief.' };
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
    const messages = history('long', 2_001);
    await send({ tools, messages: [system, ...messages] });
    const cost = await send({ tools, messages: [system, ...messages, reply, question(1)] });
    const expected = [system.content, JSON.stringify(tools), question(1).content, REPLY].reduce(
      (sum, part) => sum + Buffer.byteLength(part),
      0,
    );
    expect(cost).toMatchObject({ kind: 'estimate', tokenizedBytes: expected });
  });

  it('what was written while nothing had to be counted is counted once, when it first matters', async () => {
    const { send } = await startCounted('*=350000');
    let messages = history('grow', 1_201);
    expect(await send({ messages })).toMatchObject({ kind: 'bound', tokenizedBytes: 0 });
    messages = [...messages, reply, ...history('more', 799)];
    const crossing = await send({ messages: [...messages, question(0)] });
    expect(crossing.kind).toBe('estimate');
    const contents = [...messages, question(0), reply].reduce(
      (sum, message) => sum + Buffer.byteLength(message.content),
      0,
    );
    expect(crossing.tokenizedBytes).toBe(contents);
    const after = await send({ messages: [...messages, question(0), reply, question(1)] });
    expect(after.tokenizedBytes).toBe(Buffer.byteLength(question(1).content) + Buffer.byteLength(REPLY));
    expect(after.writtenRows).toBeLessThanOrEqual(6);
  });
});
