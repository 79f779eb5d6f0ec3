import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../src/core/node.js';
import type { Conversation, ConversationKey, Directory, Ledger, Mark } from '../../../src/core/ports.js';
import type { ConversationRecord, ExportPage, ImportPage } from '../../../src/core/upkeep.js';
import { MemoryLedger } from '../../../src/ledger/memory.js';
import { alice, callOf, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf, usageOf } from '../builders.js';
import type { MakeHarness, World } from './world.js';

type Store = Ledger & Directory;

/** Every page of an export, first to last. */
export async function exportOf(store: Store, key: ConversationKey): Promise<readonly ExportPage[]> {
  const pages = [await store.exportPage(key, null)];
  for (let next = pages[0]?.next ?? null; next !== null; next = pages.at(-1)?.next ?? null) {
    pages.push(await store.exportPage(key, next));
  }
  return pages;
}

export function importPagesOf(pages: readonly ExportPage[]): readonly ImportPage[] {
  return pages.map(({ conversation, records }, index) => ({
    conversation,
    records,
    first: index === 0,
    last: index === pages.length - 1,
  }));
}

/** What an export holds; where no order is promised, in one of the test's own. */
export function contentOf(pages: readonly ExportPage[]) {
  const records = pages.flatMap((page) => page.records);
  const ofType = (type: ConversationRecord['type']) => records.filter((record) => record.type === type);
  const sorted = (type: 'instruction' | 'mark') =>
    ofType(type)
      .map((record) => JSON.stringify(record))
      .toSorted();
  return {
    conversation: pages[0]?.conversation,
    nodes: ofType('node'),
    calls: ofType('call'),
    instructions: sorted('instruction'),
    marks: sorted('mark'),
  };
}

/** Export and import (SPEC 2.7). */
export function transferConformance(world: World, makeHarness: MakeHarness): void {
  const { open, expectRefusal } = world;
  const page = (changes: Partial<ImportPage> = {}): ImportPage => ({
    conversation: conversationOf({}),
    records: [],
    first: true,
    last: true,
    ...changes,
  });
  const nodesOf = (words: string, changes: { readonly deletedAt?: number } = {}): readonly ConversationRecord[] =>
    spineOf(words).map((node, index) => ({
      type: 'node',
      node: { ...node, conversation: alice.id, seq: index + 1, createdAt: 50 + index, deletedAt: null, ...changes },
    }));
  const stored = async () => (await world.ledger.nodes(alice, 0, 10_000)).map((node) => node.id);

  /** One of everything that a conversation can hold. */
  async function aRichConversation(): Promise<void> {
    const instructions = ['d2', 'd1', 'd3'].map((digest) => ({ digest, content: `text of ${digest}\0\ud800` }));
    await open('a !compact >b c', { instructions });
    world.now += 10;
    const call = callOf('z', endOf('a !compact >b c'), { estimatedTokens: 9.5, usage: usageOf(12) });
    const marks: Mark[] = [
      { kind: 'overflowed', head: endOf('a !compact >b c'), tokens: 5, scope: 's' },
      { kind: 'latched', head: endOf('a'), tokens: 6, scope: 't' },
    ];
    const reduction = { digest: 'r1', content: '{"reduced":true}' };
    const counts = new Map([[endOf('a'), 7]]);
    const items = spineOf('a !compact >b c >d >e').slice(4);
    const manifest = { ...call.manifest, instructions: ['d1'], reduction: 'r1' };
    await world.ledger.closeTurn(
      closeOf({ ...call, manifest }, items, { marks, reduction, counts, tokenizer: 'o200k_base' }),
    );
    await world.ledger.closeTurn(
      closeOf(callOf('a', endOf('a'), { outcome: 'failed' }), [nodeAfter(endOf('a'), '>x')]),
    );
    world.now += 10;
    await open('a !compact >b erased');
    await world.ledger.eraseBranch(alice, endOf('a !compact >b erased'), null);
    await world.ledger.commitSummary(commitOf('s', idsOf('a !compact >b c >d >e'), 3));
    await open('a !compact >b fork', { conversation: { ...alice, name: 'ignored' } });
    await open('a !compact >b c >d >e f');
    await world.ledger.deleteBranch(alice, endOf('a !compact >b fork'), null);
    world.now += 10;
  }

  describe('export', () => {
    it('gives everything, nodes in order before calls, SPEC 2.1', async () => {
      await aRichConversation();
      const pages = await exportOf(world.ledger, alice);
      const { nodes, calls, instructions, marks, conversation } = contentOf(pages);
      expect(conversation).toEqual(await world.ledger.conversation(alice.id, null));
      expect(nodes).toEqual((await world.ledger.nodes(alice, 0, 100)).map((node) => ({ type: 'node', node })));
      expect(calls).toEqual((await world.ledger.calls(alice, 100)).map((call) => ({ type: 'call', call })));
      expect(instructions).toHaveLength(4);
      expect(marks).toHaveLength(2);
      const types = pages.flatMap(({ records }) => records.map((record) => record.type));
      expect(types.lastIndexOf('node')).toBeLessThan(types.indexOf('call'));
    });

    it('comes in pages of bounded size, whatever the length of the history and of its messages', async () => {
      const large = spineOf(Array.from({ length: 12 }, (_, index) => `large-${index}`)).map((node) => ({
        ...node,
        content: 'x'.repeat(300_000),
      }));
      const nodes = [...large];
      for (let index = 0; index < 1_100; index += 1) nodes.push(nodeAfter(nodes.at(-1)?.id ?? ROOT, `n${index}`));
      await world.ledger.openTurn(openOf(nodes, { instructions: [{ digest: 'd', content: 'y'.repeat(900_000) }] }));
      const pages = await exportOf(world.ledger, alice);
      expect(contentOf(pages).nodes.map((record) => record.type === 'node' && record.node.id)).toEqual(
        nodes.map((node) => node.id),
      );
      for (const { records } of pages) {
        expect(records.length).toBeLessThanOrEqual(500);
        expect(JSON.stringify(records).length).toBeLessThan(2_000_000);
      }
    });

    it('is as it was when its first page was read: what is written meanwhile is left out', async () => {
      const words = Array.from({ length: 700 }, (_, index) => `w${index}`);
      await world.ledger.openTurn(openOf(spineOf(words), { instructions: [{ digest: 'd1', content: 'first' }] }));
      await world.ledger.closeTurn(closeOf(callOf('call-1', endOf(words)), []));
      const before = await world.ledger.conversation(alice.id, null);
      const first = await world.ledger.exportPage(alice, null);
      world.now += 1_000;
      await world.ledger.openTurn(
        openOf(spineOf([...words, 'new']), { instructions: [{ digest: 'd2', content: 'second' }] }),
      );
      const marks: Mark[] = [{ kind: 'latched', head: endOf([...words, 'new']), tokens: 1, scope: 's' }];
      await world.ledger.closeTurn(closeOf(callOf('call-0', endOf(words)), [], { marks }));
      await world.ledger.commitSummary(commitOf('s', idsOf(words), 3));
      const pages = [first];
      for (let { next } = first; next !== null; next = pages.at(-1)?.next ?? null) {
        pages.push(await world.ledger.exportPage(alice, next));
      }
      for (const one of pages) expect(one.conversation).toEqual(before);
      const { nodes, calls, marks: told } = contentOf(pages);
      expect(nodes).toHaveLength(700);
      expect(calls).toHaveLength(1);
      expect(told).toEqual([]);
      expect(before?.activeSummary).toBeNull();
    });

    it.each(['deleteBranch', 'eraseBranch'] as const)(
      'is to begin anew after %s: it would be of no one time',
      async (remove) => {
        await world.ledger.openTurn(openOf(spineOf(Array.from({ length: 700 }, (_, index) => `w${index}`))));
        await open('w0 x');
        const { next } = await world.ledger.exportPage(alice, null);
        expect(next).not.toBeNull();
        await world.ledger[remove](alice, endOf('w0 x'), null);
        await expectRefusal(() => world.ledger.exportPage(alice, next), 'invalid_request', 'next');
      },
    );

    it('is refused for what is not there, another tenant’s, and a place that no page gave', async () => {
      await open('a');
      await expectRefusal(() => world.ledger.exportPage({ ...alice, id: 'c_none' }, null), 'conversation_not_found');
      await expectRefusal(
        () => world.ledger.exportPage({ ...alice, tenant: 'mallory' }, null),
        'conversation_not_found',
      );
      for (const next of ['', 'nonsense', '{}', 'null', '%', '"x"']) {
        await expectRefusal(() => world.ledger.exportPage(alice, next), 'invalid_request', 'next');
      }
    });
  });

  describe('import', () => {
    it('takes over everything, so that any store gives the same again, SPEC 2.1, 2.5, 2.6, 8.5', async () => {
      await aRichConversation();
      const content = contentOf(await exportOf(world.ledger, alice));
      const entry = await world.ledger.oldest(null, 10);
      const other = await makeHarness(() => 99_000);
      try {
        const reference = new MemoryLedger(() => 88_000);
        for (const [from, to] of [
          [world.ledger, reference],
          [reference, other.ledger],
        ] as const) {
          for (const one of importPagesOf(await exportOf(from, alice))) await to.importPage(one);
          expect(contentOf(await exportOf(to, alice))).toEqual(content);
          expect(await to.oldest(null, 10)).toEqual(entry);
          expect(await to.list(null, 10, null)).toEqual(entry);
        }
        const turn = openOf(spineOf('a !compact >b c >d >e f'), { advanceHead: false });
        expect(await other.ledger.openTurn(turn)).toEqual(await world.ledger.openTurn(turn));
        const reply = endOf('a !compact >b c >d >e');
        expect(await other.ledger.callsOfReply(alice, reply)).toEqual(await world.ledger.callsOfReply(alice, reply));
      } finally {
        await other.dispose();
      }
    });

    it('of many pages is as of one, and seq and calls go on behind it, SPEC 2.1', async () => {
      const records = nodesOf('a >b c');
      const head = endOf('a >b c');
      const call = { type: 'call', call: callOf('z', head) } as const;
      const all = [...records, call];
      for (const [index, record] of all.entries()) {
        await world.ledger.importPage(
          page({
            conversation: conversationOf({ head }),
            records: [record],
            first: index === 0,
            last: index === all.length - 1,
          }),
        );
      }
      await world.ledger.closeTurn(closeOf(callOf('a', head), [nodeAfter(head, '>d')]));
      expect((await world.ledger.nodes(alice, 0, 10)).map((node) => node.seq)).toEqual([1, 2, 3, 4]);
      expect((await world.ledger.calls(alice, 10)).map(({ id }) => id)).toEqual(['z', 'a']);
      expect(await world.ledger.list(null, 10, null)).toMatchObject([{ nodes: 4, calls: 2, summaries: 0 }]);
    });

    it('keeps a deleted conversation deleted', async () => {
      await world.ledger.importPage(page({ conversation: conversationOf({ deletedAt: 700 }), records: nodesOf('a') }));
      expect(await world.ledger.conversation(alice.id, null)).toMatchObject({ deletedAt: 700, head: ROOT });
      expect(await world.ledger.list(null, 10, null)).toEqual([]);
      expect(await open('a')).toMatchObject({ known: 1 });
    });

    it('is deleted and takes no turn before its last page', async () => {
      const conversation = conversationOf({ head: endOf('a >b') });
      await world.ledger.importPage(page({ conversation, records: nodesOf('a >b'), last: false }));
      expect(await world.ledger.conversation(alice.id, null)).toMatchObject({ deletedAt: expect.any(Number) });
      expect(await world.ledger.list(null, 10, null)).toEqual([]);
      const refusals = [
        () => open('a >b'),
        () => world.ledger.closeTurn(closeOf(callOf('1', endOf('a >b')), [])),
        () => world.ledger.restoreConversation(alice),
        () => world.ledger.exportPage(alice, null),
      ];
      for (const work of refusals) {
        expect(await world.refusal(work())).toMatchObject({ code: 'store_unavailable' });
      }
      await world.ledger.importPage(page({ conversation, first: false }));
      expect(await world.ledger.conversation(alice.id, null)).toEqual(conversation);
      expect(await open('a >b')).toMatchObject({ known: 2 });
    });

    it('that broke off begins anew with its first page, or is erased', async () => {
      const begun = page({
        records: [...nodesOf('x >y'), { type: 'instruction', instruction: { digest: 'd', content: 'x' } }],
        last: false,
      });
      await world.ledger.importPage(begun);
      await world.ledger.importPage(
        page({ records: nodesOf('a'), conversation: conversationOf({ head: endOf('a') }) }),
      );
      expect(await stored()).toEqual(idsOf('a'));
      expect(await world.ledger.instruction(alice, 'd')).toBeNull();
      expect(await world.ledger.list(null, 10, null)).toMatchObject([{ nodes: 1 }]);
      expect(await world.ledger.eraseConversation(alice, null)).toBe(true);
      await world.ledger.importPage(begun);
      expect(await world.ledger.eraseConversation(alice, null)).toBe(true);
      expect(await open('a')).toMatchObject({ known: 0 });
    });

    it('is refused over a conversation that is here, deleted or not, and whoever’s it is', async () => {
      await open('a');
      await expectRefusal(() => world.ledger.importPage(page()), 'conversation_exists');
      await expectRefusal(() => world.ledger.importPage(page({ first: false })), 'conversation_exists');
      const conversation = conversationOf({ tenant: 'mallory' });
      await expectRefusal(() => world.ledger.importPage(page({ conversation })), 'conversation_exists');
      await world.ledger.deleteConversation(alice);
      await expectRefusal(() => world.ledger.importPage(page()), 'conversation_exists');
    });

    it('is refused if its first page is missing', async () => {
      await expectRefusal(() => world.ledger.importPage(page({ first: false })), 'conversation_not_found');
    });

    it('is refused, and nothing of the page is kept, for records that do not fit together', async () => {
      const begun = page({ records: nodesOf('a >b'), last: false });
      await world.ledger.importPage(begun);
      const [a, b] = nodesOf('a >b');
      if (a?.type !== 'node' || b?.type !== 'node') throw new Error('unreachable');
      const at3 = { ...b.node, id: 'c', predecessor: b.node.id, seq: 3 };
      const summary = {
        ...commitOf('s', idsOf('a >b'), 2).node,
        conversation: alice.id,
        seq: 3,
        createdAt: 1,
        deletedAt: null,
      };
      const broken: readonly (readonly [ConversationRecord, string])[] = [
        [b, 'records'],
        [{ type: 'node', node: { ...at3, seq: 2 } }, 'records'],
        [{ type: 'node', node: { ...at3, seq: 2.5 } }, 'records'],
        [{ type: 'node', node: { ...at3, id: a.node.id } }, 'records'],
        [{ type: 'node', node: { ...at3, predecessor: 'nobody' } }, 'records'],
        [{ type: 'node', node: { ...at3, conversation: 'c_other' } }, 'records'],
        [{ type: 'node', node: { ...summary, metadata: { ...summary.metadata, covers_ids: ['a', 'b'] } } }, 'records'],
        [{ type: 'node', node: { ...summary, name: null } }, 'node.name'],
        [{ type: 'call', call: callOf('1', 'nobody') }, 'records'],
        [{ type: 'call', call: { ...callOf('1', endOf('a')), conversation: 'c_other' } }, 'records'],
        [{ type: 'mark', mark: { kind: 'latched', head: 'nobody', tokens: 1, scope: 's' } }, 'records'],
        [{ type: 'mark', mark: { kind: 'latched', head: endOf('a'), tokens: -1, scope: 's' } }, 'mark.tokens'],
        [{ type: 'instruction', instruction: { digest: '', content: '' } }, 'records'],
      ];
      // What stands before the fault on its page goes with it.
      const third: ConversationRecord = { type: 'node', node: { ...at3, id: 'third' } };
      for (const [record, field] of broken) {
        const records: readonly ConversationRecord[] = record.type === 'node' ? [record] : [third, record];
        await expectRefusal(
          () => world.ledger.importPage(page({ records, first: false, last: false })),
          'invalid_request',
          field,
        );
      }
      const last = (changes: Partial<Conversation>) => () =>
        world.ledger.importPage(page({ conversation: conversationOf(changes), first: false }));
      await expectRefusal(last({ head: 'nobody' }), 'invalid_request', 'conversation.head');
      await expectRefusal(last({ activeSummary: 'summary_x' }), 'invalid_request', 'conversation.activeSummary');
      await world.ledger.importPage(page({ conversation: conversationOf({ head: endOf('a') }), first: false }));
      expect(await stored()).toEqual(idsOf('a >b'));
    });
  });
}

function conversationOf(changes: Partial<Conversation>): Conversation {
  return { ...alice, head: ROOT, activeSummary: null, createdAt: 40, usedAt: 60, deletedAt: null, ...changes };
}
