import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import type { Directory, Ledger, SharedCache } from '../../src/core/ports.js';
import { openRedisLedger, type RedisOptions } from '../../src/ledger/redis.js';
import { startLosingRelay } from '../support/losing-relay.js';
import { startRedis, until, type RedisServer, type RedisServerOptions } from '../support/redis.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf } from './builders.js';
import { redisOptions } from './redis-harness.js';

const server = await startRedis();
afterAll(() => server.stop());

type Store = Ledger & Directory & SharedCache;

const opened: Store[] = [];
afterEach(async () => {
  for (const ledger of opened.splice(0)) await ledger.close();
});

async function open(url: string, changes: Partial<RedisOptions> = {}): Promise<Store> {
  const ledger = await openRedisLedger(redisOptions(url, changes));
  opened.push(ledger);
  return ledger;
}

/** A Redis for what no other test may see; ends with the test. */
async function ownRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const own = await startRedis(options);
  onTestFinished(() => own.stop());
  return own;
}

const say = (ledger: Ledger, words: string) => ledger.openTurn(openOf(spineOf(words)));
const isUp = (ledger: Ledger) => () => say(ledger, 'a').then(() => true);
const unavailable = (message: RegExp) =>
  expect.objectContaining({ code: 'store_unavailable', message: expect.stringMatching(message) });

async function failureOf(work: Promise<unknown>): Promise<SpillwayError> {
  const error: unknown = await work.then(
    () => 'nothing failed',
    (reason: unknown) => reason,
  );
  if (!(error instanceof SpillwayError)) throw new Error('no SpillwayError', { cause: error });
  return error;
}

describe('a Redis whose answer got lost, asked again by itself', () => {
  /** A ledger with a conversation, and whose next answer gets lost on the way. */
  async function losing(words = 'a >b c >d e') {
    const relay = await startLosingRelay(server.port);
    onTestFinished(() => relay.close());
    const ledger = await open(`redis://127.0.0.1:${relay.port}`);
    await say(ledger, words);
    // The directory hears of it in the background; its answer is not the one to lose.
    await ledger.list(null, 1, null);
    return { ledger, lose: () => relay.loseNextAnswer() };
  }

  it('has opened a turn once, also one that expected a HEAD, SPEC 1.4, 1.6', async () => {
    const { ledger, lose } = await losing('a >b');
    lose();
    expect((await say(ledger, 'a >b c')).head).toBe(endOf('a >b c'));
    await ledger.list(null, 1, null);
    const again = openOf(spineOf('a >b'), { expectedHead: endOf('a >b c') });
    lose();
    expect((await ledger.openTurn(again)).head).toBe(endOf('a >b'));
    expect(await ledger.nodes(alice, 0, 10)).toHaveLength(3);
    expect((await failureOf(ledger.openTurn(again))).code).toBe('head_moved');
  });

  it('has recorded a call once, SPEC 2.5', async () => {
    const { ledger, lose } = await losing();
    lose();
    const reply = nodeAfter(endOf('a >b c >d e'), '>f');
    expect(await ledger.closeTurn(closeOf(callOf('call-1', endOf('a >b c >d e')), [reply]))).toEqual({
      head: reply.id,
    });
    expect(await ledger.calls(alice, 10)).toHaveLength(1);
    expect(await ledger.list(null, 1, null)).toMatchObject([{ nodes: 6, calls: 1 }]);
  });

  it('has committed a summary and says so, SPEC 3.5', async () => {
    const { ledger, lose } = await losing();
    lose();
    const commit = commitOf('s', idsOf('a >b c >d e'), 2);
    expect(await ledger.commitSummary(commit)).toEqual({ outcome: 'committed' });
    expect(await ledger.list(null, 1, null)).toMatchObject([{ nodes: 6, summaries: 1 }]);
  });

  it('has moved HEAD and says so, SPEC 8.1', async () => {
    const { ledger, lose } = await losing();
    lose();
    await ledger.moveHead(alice, endOf('a >b'), endOf('a >b c >d e'));
    expect((await ledger.conversation(alice.id, null))?.head).toBe(endOf('a >b'));
  });

  it('has given a lease to the one that asked, SPEC 5.11', async () => {
    const { ledger, lose } = await losing();
    const chain = idsOf('a >b c >d e');
    lose();
    expect(await ledger.acquireLease(alice, chain, 1_000)).toEqual({ head: chain.at(-1), fence: 1 });
    expect(await ledger.acquireLease(alice, chain, 1_000)).toBeNull();
  });

  it('has deleted, restored and erased a branch, and tells how much, SPEC 2.6', async () => {
    const { ledger, lose } = await losing();
    const from = endOf('a >b c');
    lose();
    expect(await ledger.deleteBranch(alice, from, endOf('a >b c >d e'))).toEqual({ nodes: 3, head: endOf('a >b') });
    lose();
    expect(await ledger.restoreBranch(alice, from)).toEqual({ nodes: 3 });
    lose();
    expect(await ledger.eraseBranch(alice, from, endOf('a >b'))).toEqual({ nodes: 3, head: endOf('a >b') });
    expect(await ledger.nodes(alice, 0, 10)).toHaveLength(2);
  });

  it('has taken over a page of an import', async () => {
    const { ledger, lose } = await losing();
    const { conversation, records } = await ledger.exportPage(alice, null);
    await ledger.eraseConversation(alice, null);
    await ledger.list(null, 1, null);
    lose();
    await ledger.importPage({ conversation, records: records.slice(0, 2), first: true, last: false });
    lose();
    await ledger.importPage({ conversation, records: records.slice(2), first: false, last: true });
    expect((await ledger.exportPage(alice, null)).records).toEqual(records);
  });
});

describe('a Redis that fails under a running ledger', () => {
  it('and is started again is unavailable at once meanwhile, and found again by itself', async () => {
    const own = await ownRedis();
    const ledger = await open(own.url, { timeoutMs: 1_000 });
    await say(ledger, 'a');
    const load = Array.from({ length: 20 }, () => say(ledger, 'a >b').catch(() => null));
    own.signal('SIGKILL');
    await Promise.all(load);
    expect(await failureOf(say(ledger, 'a'))).toEqual(unavailable(/cannot be reached \(ECONN/));
    const startedAt = performance.now();
    for (let turn = 0; turn < 100; turn += 1) await failureOf(say(ledger, 'a'));
    // Nobody waits for what is known to be away: a hundred turns take less than one would that waited.
    expect(performance.now() - startedAt).toBeLessThan(100 * 1_000);
    await own.restart();
    await until(isUp(ledger));
    expect((await say(ledger, 'a >b')).head).toBe(endOf('a >b'));
  });

  it('and is killed has what it acknowledged, if it writes ahead of its answers, SPEC 2.4', async () => {
    const own = await ownRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    const ledger = await open(own.url);
    const words: string[] = [];
    for (let index = 0; index < 30; index += 1) {
      words.push(`w${index}`);
      await ledger.openTurn(openOf(spineOf(words)));
    }
    own.signal('SIGKILL');
    await own.restart();
    await until(async () => (await ledger.conversation(alice.id, null)) !== null);
    expect((await ledger.nodes(alice, 0, 100)).map((node) => node.id)).toEqual(idsOf(words));
    expect((await ledger.openTurn(openOf(spineOf(words)))).known).toBe(30);
  });

  it('and stands still fails in the time that is allowed, and is found again when it goes on', async () => {
    const own = await ownRedis();
    const ledger = await open(own.url, { timeoutMs: 1_000 });
    await say(ledger, 'a');
    own.signal('SIGSTOP');
    expect(await failureOf(say(ledger, 'a >b'))).toEqual(unavailable(/did not answer within 1000 ms/));
    const failures = await Promise.all(Array.from({ length: 50 }, () => failureOf(say(ledger, 'a >b'))));
    expect(new Set(failures.map((failure) => failure.code))).toEqual(new Set(['store_unavailable']));
    own.signal('SIGCONT');
    await until(isUp(ledger));
    expect((await say(ledger, 'a >b')).head).toBe(endOf('a >b'));
  });

  it('and has become a replica is unavailable until it is a master again', async () => {
    const own = await ownRedis();
    const ledger = await open(own.url, { timeoutMs: 1_000 });
    await say(ledger, 'a');
    await own.admin.replicaof('127.0.0.1', String(server.port));
    expect((await failureOf(say(ledger, 'a >b'))).code).toBe('store_unavailable');
    await own.admin.replicaof('NO', 'ONE');
    await until(isUp(ledger));
    expect((await say(ledger, 'a >b')).head).toBe(endOf('a >b'));
  });

  it('and has lost its scripts is sent them again', async () => {
    const ledger = await open(server.url);
    await say(ledger, 'a');
    await server.admin.script('FLUSH');
    expect((await say(ledger, 'a >b')).head).toBe(endOf('a >b'));
  });

  it('and is full is unavailable, keeps what it had, and half of nothing', async () => {
    const own = await ownRedis();
    const ledger = await open(own.url, { timeoutMs: 1_000 });
    await say(ledger, 'a');
    await own.admin.config('SET', 'maxmemory', '1');
    expect(await failureOf(say(ledger, 'a >b'))).toEqual(unavailable(/its memory is full \(OOM\)/));
    await own.admin.config('SET', 'maxmemory', '0');
    await until(isUp(ledger));
    expect(await ledger.nodes(alice, 0, 10)).toHaveLength(1);
  });

  it('and holds what this program did not write is unavailable, and no stored text is in the message', async () => {
    const keyPrefix = `${randomUUID()}:`;
    const ledger = await open(server.url, { keyPrefix });
    await say(ledger, 'a');
    const nodes = `${keyPrefix}{c_alice}:nodes`;
    for (const record of ['secret words', '1 12 {"secret": "words"}\nsecret words', '1 12 secret\nwords']) {
      await server.admin.hset(nodes, endOf('a'), record);
      const failure = await failureOf(ledger.nodes(alice, 0, 10));
      expect(failure.code).toBe('store_unavailable');
      expect(inspect(failure)).not.toMatch(/secret|words/);
    }
    await server.admin.set(`${keyPrefix}{c_alice}:places`, 'secret words', 'XX');
    const failure = await failureOf(say(ledger, 'a'));
    expect(failure.code).toBe('store_unavailable');
    expect(inspect(failure)).not.toMatch(/secret|words/);
  });

  it('closes twice without complaint, and answers nothing afterwards', async () => {
    const ledger = await openRedisLedger(redisOptions(server.url));
    await ledger.close();
    await ledger.close();
    expect(await failureOf(say(ledger, 'a'))).toEqual(unavailable(/closed/));
  });
});

describe('a Redis at the start', () => {
  const start = (url: string, changes: Partial<RedisOptions> = {}) =>
    failureOf(openRedisLedger(redisOptions(url, { startTimeoutMs: 500, timeoutMs: 1_000, ...changes })));

  it('that cannot be reached is refused, saying why', async () => {
    const own = await ownRedis();
    await own.stop();
    expect(await start(own.url)).toEqual(unavailable(/^Redis cannot be used: it cannot be reached \(ECONNREFUSED\)/));
    expect(await start(`redis-cluster://127.0.0.1:${own.port}`)).toEqual(unavailable(/^Redis cannot be used/));
    expect(await start(`redis-sentinel://127.0.0.1:${own.port}/main`)).toEqual(
      unavailable(/no Sentinel names a master/),
    );
    expect((await start(own.url)).field).toBe('redis');
  });

  it('that comes up a little later is waited for', async () => {
    const own = await ownRedis();
    const opening = own.restart(300);
    const ledger = await open(own.url, { startTimeoutMs: 20_000 });
    await opening;
    expect((await say(ledger, 'a')).head).toBe(endOf('a'));
  });

  it('with a password takes the right one and refuses others at once, and none is ever shown', async () => {
    const own = await ownRedis({ args: ['--requirepass', 'open sesame/1'] });
    const url = (credentials: string) => `redis://${credentials}127.0.0.1:${own.port}`;
    const ledger = await open(url(':open%20sesame%2F1@'));
    expect((await say(ledger, 'a')).head).toBe(endOf('a'));
    for (const credentials of ['', ':hunter2secret@', 'nobody:hunter2secret@']) {
      const failure = await start(url(credentials), { startTimeoutMs: 60_000 });
      expect(failure).toEqual(unavailable(/it refuses the user or the password/));
      expect(inspect(failure, { depth: 10 })).not.toMatch(/hunter2secret|sesame/);
    }
  });

  it('of another kind than the URL says is refused, saying which it is', async () => {
    const cluster = await ownRedis({ args: ['--cluster-enabled', 'yes'] });
    expect(await start(cluster.url)).toEqual(unavailable(/a node of a Redis Cluster, whose URL/));
    expect(await start(`redis-cluster://127.0.0.1:${server.port}`)).toEqual(unavailable(/it is no Redis Cluster/));
  });

  it('that a newer program wrote is refused, and so is a prefix that others use', async () => {
    const keyPrefix = `${randomUUID()}:`;
    await server.admin.set(`${keyPrefix}schema`, '99');
    expect(await start(server.url, { keyPrefix })).toEqual(unavailable(/newer Spillway.*version 99/));
    await server.admin.set(`${keyPrefix}schema`, 'no number');
    expect(await start(server.url, { keyPrefix })).toEqual(unavailable(/another program uses/));
  });
});
