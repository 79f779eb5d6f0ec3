import { expect, describe, it } from 'vitest';
import { ROOT, type NewNode } from '../../../src/core/node.js';
import { alice, closeOf, commitOf, endOf, idsOf, nodeAfter, openOf, spineOf, summaryNode } from '../builders.js';
import type { World } from './world.js';

/** Opening a turn, and the counts that come back from it. */
export function openingConformance(world: World): void {
  const { open, head, everything, expectRefusal } = world;

  describe('opening a turn', () => {
    it('appends a whole chain, creates the conversation and moves HEAD to its end, SPEC 2.1, 8.1', async () => {
      const opened = await open('a >b c');
      expect(opened).toEqual({
        head: endOf('a >b c'),
        known: 0,
        active: null,
        commands: [],
        counts: new Map(),
        match: null,
        marks: [],
      });
      expect(await world.ledger.conversation(alice.id, alice.tenant)).toEqual({
        ...alice,
        head: endOf('a >b c'),
        activeSummary: null,
        createdAt: 1_000,
        usedAt: 1_000,
        deletedAt: null,
      });
      expect(await world.ledger.nodes(alice, 0, 10)).toEqual(
        spineOf('a >b c').map((node, index) => ({
          ...node,
          conversation: alice.id,
          seq: index + 1,
          createdAt: 1_000,
          deletedAt: null,
        })),
      );
    });

    it('asks only for the nodes it lacks, each once, in order, SPEC 1.4', async () => {
      await open('a >b c');
      const nodes = spineOf('a >b c >d e');
      const asked: number[] = [];
      const opened = await world.ledger.openTurn(
        openOf(nodes, {
          node: (index) => {
            asked.push(index);
            return openOf(nodes).node(index);
          },
        }),
      );
      expect(opened.known).toBe(3);
      expect(asked).toEqual([3, 4]);
    });

    it.each([1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 65])(
      'finds what is known of a chain of %i at every length, SPEC 1.4',
      async (length) => {
        const words = Array.from({ length }, (_, index) => `w${index}`);
        for (const known of new Set([0, 1, Math.floor(length / 2), length - 1, length])) {
          const conversation = { ...alice, id: `c_${length}_${known}` };
          if (known > 0) await world.ledger.openTurn(openOf(spineOf(words.slice(0, known)), { conversation }));
          const opened = await world.ledger.openTurn(openOf(spineOf(words), { conversation }));
          expect(opened.known).toBe(known);
          expect((await world.ledger.spine(conversation, null, 'spine')).nodes.map((node) => node.id)).toEqual(
            idsOf(words),
          );
        }
      },
    );

    it('writes nothing for a chain it has, SPEC 1.4', async () => {
      const instructions = [{ digest: 'd1', content: 'Be brief.' }];
      await open('a >b c', { instructions });
      const before = await everything();
      world.now = 2_000;
      const opened = await open('a >b c', { instructions });
      expect(opened).toMatchObject({ head: endOf('a >b c'), known: 3 });
      expect(await everything()).toEqual(before);
    });

    it('forks where an edit differs and keeps the other branch, SPEC 1.4', async () => {
      await open('a >b c >d e');
      const opened = await open('a >b x');
      expect(opened).toMatchObject({ known: 2, head: endOf('a >b x') });
      const { nodes } = await world.ledger.spine(alice, endOf('a >b c >d e'), 'spine');
      expect(nodes.map((node) => node.id)).toEqual(idsOf('a >b c >d e'));
    });

    it('moves HEAD back for a shorter history, SPEC 8.1', async () => {
      await open('a >b c >d e');
      expect(await open('a >b c')).toMatchObject({ head: endOf('a >b c'), known: 3 });
    });

    it('moves HEAD to a history that shares no node with it, SPEC 8.3', async () => {
      await open('a >b c');
      expect(await open('z')).toMatchObject({ head: endOf('z'), known: 0 });
      expect((await world.ledger.spine(alice, null, 'spine')).nodes.map((node) => node.id)).toEqual(idsOf('z'));
    });

    it('leaves HEAD alone for a spawned turn, SPEC 8.3', async () => {
      await open('a >b c');
      const opened = await open('a >b c >d spawned', { advanceHead: false });
      expect(opened.head).toBe(endOf('a >b c'));
      expect(await head()).toBe(endOf('a >b c'));
      expect(await world.ledger.node(alice, endOf('a >b c >d spawned'))).not.toBeNull();
    });

    it('leaves HEAD at ROOT when a conversation begins with a spawned turn, SPEC 8.3', async () => {
      expect((await open('a', { advanceHead: false })).head).toBe(ROOT);
      expect((await world.ledger.spine(alice, null, 'spine')).nodes).toEqual([]);
    });

    it('is refused where HEAD is not where it was expected, ROOT for a new conversation, SPEC 1.6', async () => {
      await expectRefusal(() => open('a', { expectedHead: endOf('a') }), 'head_moved', 'expectedHead');
      expect((await open('a >b', { expectedHead: ROOT })).head).toBe(endOf('a >b'));
      await expectRefusal(() => open('a >b c', { expectedHead: ROOT }), 'head_moved', 'expectedHead');
      await expectRefusal(() => open('a >b c', { expectedHead: endOf('a') }), 'head_moved', 'expectedHead');
      expect((await open('a >b c', { expectedHead: endOf('a >b') })).head).toBe(endOf('a >b c'));
    });

    it('of two after one expected HEAD, one goes on and the other is refused, SPEC 1.6', async () => {
      await open('a >b');
      const expectedHead = endOf('a >b');
      const outcomes = await Promise.allSettled([open('a >b x', { expectedHead }), open('a >b y', { expectedHead })]);
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(await world.ledger.nodes(alice, 0, 10)).toHaveLength(3);
    });

    it('keeps what a conversation was created with', async () => {
      await open('a');
      await open('a >b', {
        conversation: { ...alice, dialect: 'responses', canonicalVersion: 9, name: 'other', session: 's' },
      });
      expect(await world.ledger.conversation(alice.id, alice.tenant)).toMatchObject(alice);
    });

    it('stores an instruction once by its digest, SPEC 1.5', async () => {
      const twice = { digest: 'd1', content: 'Be brief.' };
      await open('a', { instructions: [twice, { digest: 'd2', content: 'Be kind.' }, twice] });
      await open('a >b', {
        instructions: [
          { digest: 'd1', content: 'another text' },
          { digest: 'd3', content: '' },
        ],
      });
      expect(await world.ledger.instruction(alice, 'd1')).toEqual(twice);
      expect(await world.ledger.instruction(alice, 'd2')).toEqual({ digest: 'd2', content: 'Be kind.' });
      expect(await world.ledger.instruction(alice, 'd3')).toEqual({ digest: 'd3', content: '' });
      expect(await world.ledger.instruction(alice, 'd4')).toBeNull();
    });

    it('names the commands on the spine, in order, and no others, SPEC 4.9', async () => {
      await open('a !compact >b !again c');
      await open('a !elsewhere >b');
      const [, compact, , again] = idsOf('a !compact >b !again c');
      expect((await open('a !compact >b !again c >d')).commands).toEqual([compact, again]);
      expect((await open('a !compact')).commands).toEqual([compact]);
      expect((await open('a >b')).commands).toEqual([]);
      expect((await open('!first !second')).commands).toEqual(idsOf('!first !second'));
    });

    it('takes two turns racing on one head as two branches, and HEAD is one of them, SPEC 8.1', async () => {
      await open('a >b');
      const [left, right] = await Promise.all([open('a >b left'), open('a >b right')]);
      expect([left.known, right.known]).toEqual([2, 2]);
      expect([endOf('a >b left'), endOf('a >b right')]).toContain(await head());
      expect(await world.ledger.nodes(alice, 0, 10)).toHaveLength(4);
    });

    it('takes one turn racing with itself as one, SPEC 1.4', async () => {
      await Promise.all([open('a >b c'), open('a >b c'), open('a >b c')]);
      expect(await world.ledger.nodes(alice, 0, 10)).toHaveLength(3);
    });

    it('writes nothing when a node cannot be built', async () => {
      const nodes = spineOf('a >b c');
      const failing = openOf(nodes, {
        node: (index) => {
          if (index === 2) throw new RangeError('cannot build');
          return openOf(nodes).node(index);
        },
      });
      await expect(world.ledger.openTurn(failing)).rejects.toThrow('cannot build');
      expect(await world.ledger.conversation(alice.id, alice.tenant)).toBeNull();
      await open('a');
      await expect(world.ledger.openTurn(failing)).rejects.toThrow('cannot build');
      expect(await world.ledger.nodes(alice, 0, 10)).toHaveLength(1);
    });

    it('keeps every kind of text exactly, so that it renders to the same bytes, SPEC 4.5', async () => {
      const texts = [
        '',
        '\0',
        'a\0b',
        '\u0001',
        '\u0001"x"',
        '\ud800',
        'x\udfffy',
        '😀',
        'é\u0301',
        '\u2028',
        '9007199254740993',
        'x'.repeat(100_000),
      ];
      const nodes: NewNode[] = [];
      for (const [index, text] of texts.entries()) {
        nodes.push(nodeAfter(nodes.at(-1)?.id ?? ROOT, `w${index}`, { content: text, name: text }));
      }
      const conversation = { ...alice, name: 'a\0\ud800', session: '\u0001' };
      const instructions = texts.map((content, index) => ({ digest: `d${index}`, content }));
      await world.ledger.openTurn(openOf(nodes, { conversation, instructions }));
      const stored = await world.ledger.nodes(alice, 0, 100);
      expect(stored.map((node) => node.content)).toEqual(texts);
      expect(stored.map((node) => node.name)).toEqual(texts);
      expect(await world.ledger.conversation(alice.id, alice.tenant)).toMatchObject({
        name: 'a\0\ud800',
        session: '\u0001',
      });
      for (const instruction of instructions) {
        expect(await world.ledger.instruction(alice, instruction.digest)).toEqual(instruction);
      }
    });

    it('refuses what no correct caller sends, names the field and writes nothing', async () => {
      await open('a >b c');
      const nodes = spineOf('a >b c >d');
      const at3 = (node: NewNode) => world.ledger.openTurn(openOf(nodes, { node: () => node }));
      const last = spineOf('a >b c >d').slice(-1);
      const [d] = last;
      if (d === undefined) throw new Error('unreachable');
      await expectRefusal(() => world.ledger.openTurn(openOf([])), 'invalid_request', 'chain');
      await expectRefusal(() => at3({ ...d, id: 'another' }), 'invalid_request', 'chain');
      await expectRefusal(() => at3({ ...d, predecessor: ROOT }), 'invalid_request', 'chain');
      await expectRefusal(
        () => at3({ ...d, metadata: summaryNode('s', idsOf('a')).metadata }),
        'invalid_request',
        'chain',
      );
      await expectRefusal(() => at3({ ...d, tokens: -1, tokenizer: 'o200k_base' }), 'invalid_request', 'chain');
      await expectRefusal(() => at3({ ...d, tokens: 1.5, tokenizer: 'o200k_base' }), 'invalid_request', 'chain');
      await expectRefusal(() => at3({ ...d, tokens: 1 }), 'invalid_request', 'chain');
      await expectRefusal(() => world.ledger.openTurn(openOf([...nodes, d])), 'invalid_request', 'chain');
      await expectRefusal(() => world.ledger.openTurn(openOf(spineOf('a >b c').slice(1))), 'invalid_request', 'chain');
      await expectRefusal(
        () => world.ledger.openTurn(openOf([...spineOf('z'), ...spineOf('a')])),
        'invalid_request',
        'chain',
      );
      await expectRefusal(
        () => open('a >b', { conversation: { ...alice, id: '' } }),
        'invalid_request',
        'conversation.id',
      );
      await expectRefusal(
        () => open('a >b', { conversation: { ...alice, tenant: '' } }),
        'invalid_request',
        'conversation.tenant',
      );
      await expectRefusal(
        () => open('a >b', { instructions: [{ digest: '', content: 'x' }] }),
        'invalid_request',
        'instructions',
      );
    });
  });

  describe('counts', () => {
    it('come back for the tokenizer asked for, SPEC 2.1', async () => {
      const nodes = [...spineOf('a', { tokens: 3, tokenizer: 'o200k_base' }), ...spineOf('a >b c').slice(1)];
      const opened = await world.ledger.openTurn(openOf(nodes));
      expect(opened.counts).toEqual(new Map([[endOf('a'), 3]]));
      expect((await open('a >b c', { tokenizer: 'cl100k_base' })).counts).toEqual(new Map());
      expect((await open('a >b c', { tokenizer: null })).counts).toEqual(new Map());
    });

    it('made in a turn are remembered for nodes without one, and no existing count of that tokenizer changes', async () => {
      await world.ledger.openTurn(
        openOf([...spineOf('a', { tokens: 3, tokenizer: 'o200k_base' }), ...spineOf('a >b').slice(1)]),
      );
      const [a, b] = idsOf('a >b');
      if (a === undefined || b === undefined) throw new Error('unreachable');
      const counts = new Map([
        [a, 99],
        [b, 0],
        ['nobody', 7],
      ]);
      await world.ledger.closeTurn(closeOf(null, [], { counts, tokenizer: 'o200k_base' }));
      expect((await open('a >b')).counts).toEqual(
        new Map([
          [a, 3],
          [b, 0],
        ]),
      );
      await world.ledger.closeTurn(closeOf(null, [], { counts: new Map([[a, 4]]), tokenizer: 'cl100k_base' }));
      expect((await open('a >b', { tokenizer: 'cl100k_base' })).counts).toEqual(new Map([[a, 4]]));
    });

    it('change nothing else of a node, SPEC 2.1', async () => {
      await open('a >b');
      const before = await world.ledger.nodes(alice, 0, 10);
      await world.ledger.closeTurn(closeOf(null, [], { counts: new Map([[endOf('a'), 8]]), tokenizer: 'o200k_base' }));
      expect(await world.ledger.nodes(alice, 0, 10)).toEqual(
        before.map((node) => (node.id === endOf('a') ? { ...node, tokens: 8, tokenizer: 'o200k_base' } : node)),
      );
    });

    it('are given for the part behind the active summary only', async () => {
      await world.ledger.openTurn(openOf(spineOf('a >b c >d e', { tokens: 2, tokenizer: 'o200k_base' })));
      await world.ledger.commitSummary(commitOf('s', idsOf('a >b c >d e'), 2));
      const opened = await open('a >b c >d e');
      expect([...opened.counts.keys()].toSorted()).toEqual(idsOf('a >b c >d e').slice(2).toSorted());
    });

    it('without a tokenizer, or that are no counts, are refused', async () => {
      await open('a');
      const close = (tokens: number, tokenizer: string | null) =>
        world.ledger.closeTurn(closeOf(null, [], { counts: new Map([[endOf('a'), tokens]]), tokenizer }));
      await expectRefusal(() => close(1, null), 'invalid_request', 'counts');
      await expectRefusal(() => close(Number.NaN, 'o200k_base'), 'invalid_request', 'counts');
    });
  });
}
