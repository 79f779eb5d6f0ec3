import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConversationKey } from '../../src/core/ports.js';
import { alice, closeOf, callOf, endOf, nodeAfter, openOf, spineOf } from '../ledger/builders.js';
import { startApp, type RunningApp } from './start-app.js';

const root = '/spillway/v1';
const base = `${root}/conversations/${alice.id}`;
const [a, r, b] = ['a', 'a >r', 'a >r b'].map(endOf);
const fork = endOf('a >r fork');

let app: RunningApp;
beforeEach(async () => {
  app = await startApp();
  await open('a >r fork');
  await open('a >r b');
});
afterEach(() => app.stop());

function open(words: string, conversation = alice) {
  return app.ledger.openTurn(openOf(spineOf(words), { conversation }));
}

const remove = (path: string) => app.send(path, { method: 'DELETE' });
const removeForJson = (path: string) => app.json(path, { method: 'DELETE' });
const post = (path: string) => app.json(path, { method: 'POST' });
const refusal = (status: number, code: string, param: string) => ({ status, body: { error: { code, param } } });

/** Which nodes the API shows, and which of them as deleted. */
async function nodesShown() {
  const { body } = await app.json(`${base}/nodes`);
  const rows = (body as { data: { id: string; deleted_at: number | null }[] }).data;
  return {
    all: rows.map((row) => row.id),
    deleted: rows.filter((row) => row.deleted_at !== null).map((row) => row.id),
  };
}

describe('DELETE /conversations/{id}', () => {
  it('hides it from every read until it is restored, SPEC 2.6', async () => {
    expect(await remove(base)).toMatchObject({ status: 204, text: '' });
    for (const path of ['', '/nodes', '/calls/x', '/instructions/x']) {
      expect(await app.json(base + path)).toMatchObject(refusal(404, 'conversation_not_found', 'id'));
    }
    expect(await post(`${base}/head`)).toMatchObject({ status: 400 });
    expect(await app.json(`${base}/head`, { method: 'POST', body: JSON.stringify({ to: a }) })).toMatchObject(
      refusal(404, 'conversation_not_found', 'id'),
    );
    expect(await removeForJson(base)).toMatchObject(refusal(404, 'conversation_not_found', 'id'));
    expect(await app.json(`${root}/conversations`)).toMatchObject({ body: { data: [] } });

    expect(await post(`${base}/restore`)).toMatchObject({ status: 200, body: { id: alice.id, head: b } });
    expect(await app.json(base)).toMatchObject({ status: 200, body: { head: b } });
    expect(app.forgotten).toEqual([]);
  });

  it('with erase=true keeps nothing, deleted before or not, and what was derived from it goes too', async () => {
    await remove(base);
    expect((await remove(`${base}?erase=true`)).status).toBe(204);
    expect(app.forgotten).toEqual([{ tenant: alice.tenant, id: alice.id }]);
    expect(await app.ledger.conversation(alice.id, null)).toBeNull();
    for (const again of [() => post(`${base}/restore`), () => removeForJson(`${base}?erase=true`)]) {
      expect(await again()).toMatchObject(refusal(404, 'conversation_not_found', 'id'));
    }
  });

  it('is refused while a turn of it runs, and only then', async () => {
    const leave = app.running.enter(alice, b ?? '');
    for (const query of ['', '?erase=true']) {
      expect(await removeForJson(base + query)).toMatchObject(refusal(409, 'turn_in_progress', 'id'));
    }
    leave();
    app.running.enter({ ...alice, id: 'c_other' }, b ?? '');
    expect((await remove(base)).status).toBe(204);
  });

  it('names the parameter that is wrong', async () => {
    expect(await removeForJson(`${base}?erase=1`)).toMatchObject(refusal(400, 'invalid_request', 'erase'));
    expect(await removeForJson(`${base}?force=true`)).toMatchObject(refusal(400, 'invalid_request', 'force'));
    expect((await app.json(base)).status).toBe(200);
  });
});

describe('DELETE /conversations/{id}/branches/{node}', () => {
  it('marks a node and all behind it, and HEAD goes to its predecessor; restored, the marks are gone', async () => {
    expect(await removeForJson(`${base}/branches/${b}`)).toEqual({ status: 200, body: { nodes: 1, head: r } });
    expect(await nodesShown()).toMatchObject({ deleted: [b] });
    expect(await removeForJson(`${base}/branches/${b}`)).toMatchObject({
      status: 404,
      body: { error: { code: 'node_not_found' } },
    });
    expect(await post(`${base}/branches/${b}/restore`)).toEqual({ status: 200, body: { nodes: 1 } });
    expect(await nodesShown()).toMatchObject({ deleted: [] });
    expect(app.forgotten).toEqual([]);
  });

  it('with erase=true keeps nothing of it, and what was derived from the conversation is dropped', async () => {
    expect(await removeForJson(`${base}/branches/${r}?erase=true`)).toEqual({
      status: 200,
      body: { nodes: 3, head: a },
    });
    expect(await nodesShown()).toEqual({ all: [a], deleted: [] });
    expect(app.forgotten).toEqual([{ tenant: alice.tenant, id: alice.id }]);
    expect(await post(`${base}/branches/${b}/restore`)).toMatchObject({ status: 404 });
  });

  it('is refused if HEAD is not where it was expected, SPEC 8.1', async () => {
    for (const query of [`?expected_head=${a}`, `?expected_head=${a}&erase=true`]) {
      expect(await removeForJson(`${base}/branches/${b}${query}`)).toMatchObject({
        status: 409,
        body: { error: { code: 'head_moved' } },
      });
    }
    expect(await removeForJson(`${base}/branches/${b}?expected_head=${b}`)).toMatchObject({ status: 200 });
  });

  it.each(['', '?erase=true'])('is refused while a turn runs on it, not beside it%s', async (query) => {
    const leave = app.running.enter(alice, b ?? '');
    for (const node of [a, r, b]) {
      expect(await removeForJson(`${base}/branches/${node}${query}`)).toMatchObject(
        refusal(409, 'turn_in_progress', 'id'),
      );
    }
    expect(await removeForJson(`${base}/branches/${fork}${query}`)).toMatchObject({ status: 200, body: { head: b } });
    leave();
    expect(await removeForJson(`${base}/branches/${b}${query}`)).toMatchObject({ status: 200 });
  });

  it('is 404 for an unknown node or conversation', async () => {
    const unknown = `${base}/branches/${endOf('nowhere')}`;
    for (const answer of [await removeForJson(unknown), await post(`${unknown}/restore`)]) {
      expect(answer).toMatchObject({ status: 404, body: { error: { code: 'node_not_found' } } });
    }
    expect(await removeForJson(`${root}/conversations/c_none/branches/${a}`)).toMatchObject(
      refusal(404, 'conversation_not_found', 'id'),
    );
  });
});

describe('a turn that carries its history', () => {
  it('brings a deleted conversation back, SPEC 2.3', async () => {
    await remove(base);
    await open('a >r b >s c');
    expect(await app.json(base)).toMatchObject({ status: 200, body: { head: endOf('a >r b >s c') } });
  });
});

describe('/tenants', () => {
  const bobs: ConversationKey[] = ['c_1', 'c_2'].map((id) => ({ tenant: 'bob', id }));

  beforeEach(async () => {
    for (const key of bobs) await open('a somewhat longer conversation', { ...alice, ...key });
  });

  it('tells what each keeps, the largest first', async () => {
    const { status, body } = await app.json(`${root}/tenants`);
    expect(status).toBe(200);
    const { data } = body as { data: { tenant: string; conversations: number; bytes: number }[] };
    expect(data.map(({ tenant, conversations }) => ({ tenant, conversations }))).toEqual([
      { tenant: 'bob', conversations: 2 },
      { tenant: 'alice', conversations: 1 },
    ]);
    expect(data[0]?.bytes).toBeGreaterThan(data[1]?.bytes ?? Infinity);
    expect(await app.json(`${root}/tenants?limit=1`)).toMatchObject(refusal(400, 'invalid_request', 'limit'));
  });

  it('erases all of one: conversations in use and deleted, learned windows; nothing of another', async () => {
    await app.ledger.deleteConversation({ tenant: 'bob', id: 'c_1' });
    app.running.enter({ tenant: 'bob', id: 'c_2' }, endOf('a somewhat longer conversation'));
    const window = {
      upstream: 'https://main.example/v1',
      model: 'm',
      tokens: 8_000,
      source: 'stated',
      rule: 'rule',
      learnedAt: app.now(),
      expiresAt: app.now() + 1_000_000,
    } as const;
    for (const tenant of ['alice', 'bob']) await app.ledger.learnWindow({ ...window, tenant });
    expect(await app.json(`${root}/models`)).toMatchObject({ body: { data: [{}, {}] } });

    expect(await removeForJson(`${root}/tenants/bob`)).toEqual({ status: 200, body: { conversations: 2 } });
    expect(app.forgotten.map(({ id }) => id).toSorted()).toEqual(['c_1', 'c_2']);
    expect(await app.json(`${root}/tenants`)).toMatchObject({ body: { data: [{ tenant: 'alice' }] } });
    expect(await app.json(`${root}/models`)).toMatchObject({ body: { data: [{ tenant: 'alice' }] } });
    expect(await app.ledger.learnedWindows('bob', 10)).toEqual([]);
    expect((await app.json(base)).status).toBe(200);
    expect(await removeForJson(`${root}/tenants/bob`)).toEqual({ status: 200, body: { conversations: 0 } });
  });

  it('goes on past a batch', async () => {
    for (let index = 0; index < 120; index++) await open('x', { ...alice, tenant: 'carol', id: `c_carol_${index}` });
    expect(await removeForJson(`${root}/tenants/carol`)).toEqual({ status: 200, body: { conversations: 120 } });
  });
});

it('what a turn records after its conversation was erased by another process is nowhere', async () => {
  await app.ledger.eraseConversation(alice, null);
  await expect(
    app.ledger.closeTurn(closeOf(callOf('call-1', b ?? ''), [nodeAfter(b ?? '', '>late')])),
  ).rejects.toMatchObject({ code: 'conversation_not_found' });
  expect(await app.ledger.conversation(alice.id, null)).toBeNull();
});
