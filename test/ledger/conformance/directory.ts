import { expect, describe, it } from 'vitest';
import type { Directory, Reference } from '../../../src/core/ports.js';
import type { LearnedWindow } from '../../../src/core/windows.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, openOf, spineOf } from '../builders.js';
import type { World } from './world.js';

/** What crosses conversations. */
export function directoryConformance(world: World): void {
  const { open, refusal, expectRefusal } = world;

  describe('the list of conversations', () => {
    const use = async (id: string, usedAt: number, tenant = 'alice') => {
      world.now = usedAt;
      await world.ledger.openTurn(openOf(spineOf('a >b'), { conversation: { ...alice, tenant, id } }));
    };
    const listed = async (...page: Parameters<Directory['list']>) =>
      (await world.ledger.list(...page)).map((entry) => entry.id);
    const oldest = async (...page: Parameters<Directory['oldest']>) =>
      (await world.ledger.oldest(...page)).map((entry) => entry.id);
    const bytes = spineOf('a >b').reduce((sum, node) => sum + node.content.length, 0);

    it('begins with the latest used and tells what each keeps', async () => {
      const used: string[] = [];
      for (const [index, tenant] of ['alice', 'bob', 'alice', 'bob', 'alice'].entries()) {
        await use(`c_${index}`, 1_000 + index, tenant);
        used.unshift(`c_${index}`);
      }
      expect(await listed(null, 10, null)).toEqual(used);
      expect(await listed('alice', 10, null)).toEqual(['c_4', 'c_2', 'c_0']);
      expect(await listed('alice', 1, null)).toEqual(['c_4']);
      expect(await listed('mallory', 10, null)).toEqual([]);
      world.now = 2_000;
      const conversation = { ...alice, id: 'c_0' };
      const call = { ...callOf('1', endOf('a >b')), conversation: 'c_0' };
      await world.ledger.closeTurn(closeOf(call, [], { conversation }));
      const commit = commitOf('s', idsOf('a >b'), 1, { conversation });
      await world.ledger.commitSummary(commit);
      expect(await world.ledger.list('alice', 1, null)).toEqual([
        {
          ...conversation,
          head: endOf('a >b'),
          activeSummary: 'summary_s',
          createdAt: 1_000,
          usedAt: 2_000,
          deletedAt: null,
          nodes: 3,
          calls: 1,
          summaries: 1,
          bytes: bytes + commit.node.content.length,
        },
      ]);
    });

    it.each([1, 2, 3])('is paged %i at a time through equal times without a gap or a repetition', async (limit) => {
      for (const id of ['c_b', 'c_d', 'c_a', 'c_c']) await use(id, 1_000);
      await use('c_first', 2_000, 'bob');
      await use('c_last', 500);
      for (const tenant of [null, 'alice']) {
        const seen: string[] = [];
        let page = await world.ledger.list(tenant, limit, null);
        while (page.length > 0) {
          seen.push(...page.map((entry) => entry.id));
          page = await world.ledger.list(tenant, limit, page.at(-1) ?? null);
        }
        expect(seen).toEqual([...(tenant === null ? ['c_first'] : []), 'c_d', 'c_c', 'c_b', 'c_a', 'c_last']);
      }
    });

    it('leaves out what was deleted; what was used longest ago names it still, SPEC 2.6', async () => {
      await use('c_1', 1_000);
      await use('c_2', 2_000, 'bob');
      await use('c_0', 1_000);
      await use('c_3', 3_000);
      await world.ledger.deleteConversation({ ...alice, id: 'c_1' });
      expect(await listed(null, 10, null)).toEqual(['c_3', 'c_2', 'c_0']);
      expect(await oldest(null, 10)).toEqual(['c_0', 'c_1', 'c_2', 'c_3']);
      expect(await oldest(null, 3)).toEqual(['c_0', 'c_1', 'c_2']);
      expect(await oldest('alice', 10)).toEqual(['c_0', 'c_1', 'c_3']);
      expect(await oldest('alice', 2)).toEqual(['c_0', 'c_1']);
      expect((await world.ledger.oldest('alice', 2)).map(({ deletedAt }) => deletedAt)).toEqual([null, 3_000]);
      await expectRefusal(() => world.ledger.oldest(null, 0), 'invalid_request', 'limit');
    });

    it('tells what each tenant keeps, what is deleted but not erased included, SPEC 2.6', async () => {
      expect(await world.ledger.tenants()).toEqual([]);
      await use('c_1', 1_000);
      await use('c_2', 1_000);
      await use('c_3', 1_000, 'bob');
      await world.ledger.deleteConversation({ ...alice, id: 'c_1' });
      const byTenant = async () => (await world.ledger.tenants()).toSorted((a, b) => (a.tenant < b.tenant ? -1 : 1));
      expect(await byTenant()).toEqual([
        { tenant: 'alice', conversations: 2, bytes: 2 * bytes },
        { tenant: 'bob', conversations: 1, bytes },
      ]);
      await world.ledger.eraseConversation({ ...alice, id: 'c_1' }, null);
      await world.ledger.eraseConversation({ tenant: 'bob', id: 'c_3' }, null);
      expect(await byTenant()).toEqual([{ tenant: 'alice', conversations: 1, bytes }]);
    });

    it('counts bytes of UTF-8, of instructions and reductions too, each once', async () => {
      const nodes = spineOf('a', { content: 'é😀' });
      const instructions = [
        { digest: 'd1', content: 'ü' },
        { digest: 'd1', content: 'ü' },
      ];
      await world.ledger.openTurn(openOf(nodes, { instructions }));
      await world.ledger.openTurn(openOf(nodes, { instructions }));
      const reduction = { digest: 'd2', content: 'xyz' };
      await world.ledger.closeTurn(closeOf(callOf('1', endOf('a')), [], { reduction }));
      await world.ledger.closeTurn(closeOf(callOf('2', endOf('a')), [], { reduction }));
      expect(await world.ledger.list(null, 10, null)).toMatchObject([{ bytes: 6 + 2 + 3 }]);
    });
  });

  describe('references', () => {
    const to = (id: string, words: string, conversation = alice.id): Reference => ({
      id,
      conversation,
      node: endOf(words),
    });

    it('lead from the ids an upstream gave to nodes, a newer one in the place of an older, SPEC 1.2', async () => {
      await open('a >b c >d');
      await world.ledger.refer('alice', [to('resp_1\0', 'a >b'), to('item_1', 'a >b')]);
      await world.ledger.refer('alice', [to('item_1', 'a >b c >d')]);
      await world.ledger.refer('alice', []);
      expect(await world.ledger.resolve('alice', ['item_1', 'nobody', 'resp_1\0'])).toEqual(
        new Map([
          ['item_1', to('item_1', 'a >b c >d')],
          ['resp_1\0', to('resp_1\0', 'a >b')],
        ]),
      );
      expect(await world.ledger.resolve('alice', [])).toEqual(new Map());
    });

    it('are each tenant’s own, SPEC 1.1', async () => {
      await open('a >b');
      await world.ledger.refer('alice', [to('resp_1', 'a >b')]);
      await world.ledger.refer('bob', [to('resp_1', 'a', 'c_bob')]);
      expect(await world.ledger.resolve('alice', ['resp_1'])).toEqual(new Map([['resp_1', to('resp_1', 'a >b')]]));
      expect(await world.ledger.resolve('mallory', ['resp_1'])).toEqual(new Map());
    });

    it('go with their conversation when it is erased, and not when it is deleted, SPEC 2.6', async () => {
      await open('a >b');
      await open('a >b', { conversation: { ...alice, id: 'c_other' } });
      await world.ledger.refer('alice', [to('resp_1', 'a >b'), to('resp_2', 'a >b', 'c_other')]);
      await world.ledger.deleteConversation(alice);
      expect([...(await world.ledger.resolve('alice', ['resp_1', 'resp_2'])).keys()]).toEqual(['resp_1', 'resp_2']);
      await world.ledger.eraseConversation(alice, null);
      expect([...(await world.ledger.resolve('alice', ['resp_1', 'resp_2'])).keys()]).toEqual(['resp_2']);
    });

    it('without an id or a place are refused', async () => {
      await open('a');
      for (const field of ['id', 'conversation', 'node'] as const) {
        const reference = { ...to('resp_1', 'a'), [field]: '' };
        const refused = { code: 'invalid_request', field: `reference.${field}` };
        expect(await refusal(world.ledger.refer('alice', [reference]))).toEqual(refused);
      }
      expect(await refusal(world.ledger.refer('', []))).toEqual({ code: 'invalid_request', field: 'tenant' });
    });
  });

  describe('learned windows', () => {
    const window = (changes: Partial<LearnedWindow> = {}): LearnedWindow => ({
      tenant: 'alice',
      upstream: 'https://api.example.test/v1',
      model: 'model-a',
      tokens: 8_192,
      source: 'stated',
      rule: 'openai-sentence',
      learnedAt: world.now,
      expiresAt: world.now + 1_000,
      ...changes,
    });

    it('are kept by tenant, upstream and model, and listed latest first, SPEC 6.5', async () => {
      const learned = [
        window(),
        window({ model: 'model-b\0\ud800', learnedAt: world.now + 1 }),
        window({ upstream: 'https://other.example.test', tokens: 4_096, learnedAt: world.now + 2 }),
        window({ tenant: 'bob', tokens: 2_048, source: 'usage', rule: 'cut-prompt', learnedAt: world.now + 3 }),
      ];
      for (const one of learned) await world.ledger.learnWindow(one);
      expect(await world.ledger.learnedWindows(null, 10)).toEqual(learned.toReversed());
      expect(await world.ledger.learnedWindows('alice', 10)).toEqual(learned.slice(0, 3).toReversed());
      expect(await world.ledger.learnedWindows('alice', 1)).toEqual([learned[2]]);
      expect(await world.ledger.learnedWindows('mallory', 10)).toEqual([]);
    });

    it('keep the smaller of two until it expires, and take the newer of two alike, SPEC 6.5', async () => {
      await world.ledger.learnWindow(window());
      await world.ledger.learnWindow(window({ tokens: 16_384, rule: 'later', expiresAt: world.now + 9_000 }));
      expect(await world.ledger.learnedWindows('alice', 10)).toEqual([window()]);
      const again = window({ rule: 'again', learnedAt: world.now + 5, expiresAt: world.now + 2_000 });
      await world.ledger.learnWindow(again);
      expect(await world.ledger.learnedWindows('alice', 10)).toEqual([again]);
      await world.ledger.learnWindow(window({ tokens: 4_096 }));
      expect(await world.ledger.learnedWindows('alice', 10)).toEqual([window({ tokens: 4_096 })]);

      world.now += 1_000;
      expect(await world.ledger.learnedWindows('alice', 10)).toEqual([]);
      const larger = window({ tokens: 16_384 });
      await world.ledger.learnWindow(larger);
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([larger]);
    });

    it('are raised by what went through, never lowered, and none is made up, SPEC 6.5', async () => {
      await world.ledger.widenWindow(window(), 10_000);
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([]);
      await world.ledger.learnWindow(window());
      await world.ledger.learnWindow(window({ model: 'model-b' }));
      world.now += 10;
      await world.ledger.widenWindow(window(), 8_000);
      await world.ledger.widenWindow(window(), 8_192);
      await world.ledger.widenWindow(window(), 10_000);
      const raised = window({ tokens: 10_000, source: 'success', expiresAt: 2_000 });
      const other = window({ model: 'model-b', learnedAt: 1_000, expiresAt: 2_000 });
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([raised, other]);
      world.now += 1_000;
      await world.ledger.widenWindow(window(), 20_000);
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([]);
    });

    it('are forgotten one at a time', async () => {
      await world.ledger.learnWindow(window());
      await world.ledger.learnWindow(window({ model: 'model-b' }));
      expect(await world.ledger.forgetWindow(window({ tenant: 'bob' }))).toBe(false);
      expect(await world.ledger.forgetWindow(window())).toBe(true);
      expect(await world.ledger.forgetWindow(window())).toBe(false);
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([window({ model: 'model-b' })]);
      world.now += 1_000;
      expect(await world.ledger.forgetWindow(window({ model: 'model-b' }))).toBe(false);
    });

    it('of one tenant are all forgotten at once', async () => {
      await world.ledger.learnWindow(window());
      await world.ledger.learnWindow(window({ model: 'model-b' }));
      await world.ledger.learnWindow(window({ tenant: 'bob' }));
      await world.ledger.forgetWindows('alice');
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([window({ tenant: 'bob' })]);
    });

    it('outlive a restart', async ({ skip }) => {
      const { reopen } = world;
      if (reopen === undefined) return skip('nothing outlives this driver');
      await world.ledger.learnWindow(window());
      await reopen();
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([window()]);
    });

    it('with a key or a count that is none are refused', async () => {
      for (const field of ['tenant', 'upstream', 'model'] as const) {
        const refused = { code: 'invalid_request', field: `window.${field}` };
        expect(await refusal(world.ledger.learnWindow(window({ [field]: '' })))).toEqual(refused);
        expect(await refusal(world.ledger.widenWindow(window({ [field]: '' }), 1))).toEqual(refused);
      }
      for (const tokens of [-1, 0.5, Number.NaN]) {
        const refused = { code: 'invalid_request', field: 'window.tokens' };
        expect(await refusal(world.ledger.learnWindow(window({ tokens })))).toEqual(refused);
        expect(await refusal(world.ledger.widenWindow(window(), tokens))).toEqual(refused);
      }
      await expectRefusal(() => world.ledger.learnedWindows(null, 0), 'invalid_request', 'limit');
      expect(await world.ledger.learnedWindows(null, 10)).toEqual([]);
    });
  });
}
