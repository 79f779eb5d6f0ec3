import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import { ROOT, type NewNode } from '../../src/core/node.js';
import type { Clock, Directory, Ledger, Mark } from '../../src/core/ports.js';
import type { LearnedWindow } from '../../src/core/windows.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import {
  alice,
  callOf,
  closeOf,
  commitOf,
  endOf,
  idsOf,
  nodeAfter,
  openOf,
  spineOf,
  summaryNode,
  usageOf,
} from './builders.js';
import { agreesWithTheReference } from './model.js';

export interface LedgerHarness {
  readonly ledger: Ledger & Directory;
  /** Closes the ledger and opens the same store again; absent where nothing outlives it. */
  readonly reopen?: () => Promise<Ledger & Directory>;
  /** Releases everything, the ledger included. */
  dispose(): Promise<void>;
}

/** Makes an empty store. */
export type MakeHarness = (clock: Clock) => Promise<LedgerHarness>;

/** What every driver of the two ports must do (SPEC 2.7). */
export function ledgerConformance(name: string, makeHarness: MakeHarness): void {
  describe(`${name} ledger`, () => {
    let harness: LedgerHarness;
    let ledger: Ledger & Directory;
    let now: number;

    beforeEach(async () => {
      now = 1_000;
      harness = await makeHarness(() => now);
      ledger = harness.ledger;
    });
    afterEach(() => harness.dispose());

    const open = (words: string, changes: Parameters<typeof openOf>[1] = {}) =>
      ledger.openTurn(openOf(spineOf(words), changes));
    const head = async () => (await ledger.conversation(alice.id, alice.tenant))?.head;
    const everything = async () => ({
      conversations: await ledger.list(null, 100, null),
      nodes: await ledger.nodes(alice, 0, 1_000),
      calls: await ledger.calls(alice, 1_000),
    });
    const refusal = async (work: Promise<unknown>) => {
      const error: unknown = await work.then(
        () => 'nothing was refused',
        (reason: unknown) => reason,
      );
      if (!(error instanceof SpillwayError)) throw new Error('not refused with a SpillwayError', { cause: error });
      return { code: error.code, field: error.field };
    };
    /** The work is refused, and nothing of it was written. */
    const expectRefusal = async (work: () => Promise<unknown>, code: string, field?: string) => {
      const before = await everything();
      expect(await refusal(work())).toEqual({ code, field: field ?? expect.anything() });
      expect(await everything()).toEqual(before);
    };

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
        expect(await ledger.conversation(alice.id, alice.tenant)).toEqual({
          ...alice,
          head: endOf('a >b c'),
          activeSummary: null,
          createdAt: 1_000,
          usedAt: 1_000,
        });
        expect(await ledger.nodes(alice, 0, 10)).toEqual(
          spineOf('a >b c').map((node, index) => ({
            ...node,
            conversation: alice.id,
            seq: index + 1,
            createdAt: 1_000,
          })),
        );
      });

      it('asks only for the nodes it lacks, each once, in order, SPEC 1.4', async () => {
        await open('a >b c');
        const nodes = spineOf('a >b c >d e');
        const asked: number[] = [];
        const opened = await ledger.openTurn(
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
            if (known > 0) await ledger.openTurn(openOf(spineOf(words.slice(0, known)), { conversation }));
            const opened = await ledger.openTurn(openOf(spineOf(words), { conversation }));
            expect(opened.known).toBe(known);
            expect((await ledger.spine(conversation, null, 'spine')).nodes.map((node) => node.id)).toEqual(
              idsOf(words),
            );
          }
        },
      );

      it('writes nothing for a chain it has, SPEC 1.4', async () => {
        const instructions = [{ digest: 'd1', content: 'Be brief.' }];
        await open('a >b c', { instructions });
        const before = await everything();
        now = 2_000;
        const opened = await open('a >b c', { instructions });
        expect(opened).toMatchObject({ head: endOf('a >b c'), known: 3 });
        expect(await everything()).toEqual(before);
      });

      it('forks where an edit differs and keeps the other branch, SPEC 1.4', async () => {
        await open('a >b c >d e');
        const opened = await open('a >b x');
        expect(opened).toMatchObject({ known: 2, head: endOf('a >b x') });
        const { nodes } = await ledger.spine(alice, endOf('a >b c >d e'), 'spine');
        expect(nodes.map((node) => node.id)).toEqual(idsOf('a >b c >d e'));
      });

      it('moves HEAD back for a shorter history, SPEC 8.1', async () => {
        await open('a >b c >d e');
        expect(await open('a >b c')).toMatchObject({ head: endOf('a >b c'), known: 3 });
      });

      it('moves HEAD to a history that shares no node with it, SPEC 8.3', async () => {
        await open('a >b c');
        expect(await open('z')).toMatchObject({ head: endOf('z'), known: 0 });
        expect((await ledger.spine(alice, null, 'spine')).nodes.map((node) => node.id)).toEqual(idsOf('z'));
      });

      it('leaves HEAD alone for a spawned turn, SPEC 8.3', async () => {
        await open('a >b c');
        const opened = await open('a >b c >d spawned', { advanceHead: false });
        expect(opened.head).toBe(endOf('a >b c'));
        expect(await head()).toBe(endOf('a >b c'));
        expect(await ledger.node(alice, endOf('a >b c >d spawned'))).not.toBeNull();
      });

      it('leaves HEAD at ROOT when a conversation begins with a spawned turn, SPEC 8.3', async () => {
        expect((await open('a', { advanceHead: false })).head).toBe(ROOT);
        expect((await ledger.spine(alice, null, 'spine')).nodes).toEqual([]);
      });

      it('keeps what a conversation was created with', async () => {
        await open('a');
        await open('a >b', {
          conversation: { ...alice, dialect: 'responses', canonicalVersion: 9, name: 'other', session: 's' },
        });
        expect(await ledger.conversation(alice.id, alice.tenant)).toMatchObject(alice);
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
        expect(await ledger.instruction(alice, 'd1')).toEqual(twice);
        expect(await ledger.instruction(alice, 'd2')).toEqual({ digest: 'd2', content: 'Be kind.' });
        expect(await ledger.instruction(alice, 'd3')).toEqual({ digest: 'd3', content: '' });
        expect(await ledger.instruction(alice, 'd4')).toBeNull();
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
        expect(await ledger.nodes(alice, 0, 10)).toHaveLength(4);
      });

      it('takes one turn racing with itself as one, SPEC 1.4', async () => {
        await Promise.all([open('a >b c'), open('a >b c'), open('a >b c')]);
        expect(await ledger.nodes(alice, 0, 10)).toHaveLength(3);
      });

      it('writes nothing when a node cannot be built', async () => {
        const nodes = spineOf('a >b c');
        const failing = openOf(nodes, {
          node: (index) => {
            if (index === 2) throw new RangeError('cannot build');
            return openOf(nodes).node(index);
          },
        });
        await expect(ledger.openTurn(failing)).rejects.toThrow('cannot build');
        expect(await ledger.conversation(alice.id, alice.tenant)).toBeNull();
        await open('a');
        await expect(ledger.openTurn(failing)).rejects.toThrow('cannot build');
        expect(await ledger.nodes(alice, 0, 10)).toHaveLength(1);
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
        await ledger.openTurn(openOf(nodes, { conversation, instructions }));
        const stored = await ledger.nodes(alice, 0, 100);
        expect(stored.map((node) => node.content)).toEqual(texts);
        expect(stored.map((node) => node.name)).toEqual(texts);
        expect(await ledger.conversation(alice.id, alice.tenant)).toMatchObject({
          name: 'a\0\ud800',
          session: '\u0001',
        });
        for (const instruction of instructions) {
          expect(await ledger.instruction(alice, instruction.digest)).toEqual(instruction);
        }
      });

      it('refuses what no correct caller sends, names the field and writes nothing', async () => {
        await open('a >b c');
        const nodes = spineOf('a >b c >d');
        const at3 = (node: NewNode) => ledger.openTurn(openOf(nodes, { node: () => node }));
        const last = spineOf('a >b c >d').slice(-1);
        const [d] = last;
        if (d === undefined) throw new Error('unreachable');
        await expectRefusal(() => ledger.openTurn(openOf([])), 'invalid_request', 'chain');
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
        await expectRefusal(() => ledger.openTurn(openOf([...nodes, d])), 'invalid_request', 'chain');
        await expectRefusal(() => ledger.openTurn(openOf(spineOf('a >b c').slice(1))), 'invalid_request', 'chain');
        await expectRefusal(
          () => ledger.openTurn(openOf([...spineOf('z'), ...spineOf('a')])),
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
        const opened = await ledger.openTurn(openOf(nodes));
        expect(opened.counts).toEqual(new Map([[endOf('a'), 3]]));
        expect((await open('a >b c', { tokenizer: 'cl100k_base' })).counts).toEqual(new Map());
        expect((await open('a >b c', { tokenizer: null })).counts).toEqual(new Map());
      });

      it('made in a turn are remembered for nodes without one, and no existing count of that tokenizer changes', async () => {
        await ledger.openTurn(
          openOf([...spineOf('a', { tokens: 3, tokenizer: 'o200k_base' }), ...spineOf('a >b').slice(1)]),
        );
        const [a, b] = idsOf('a >b');
        if (a === undefined || b === undefined) throw new Error('unreachable');
        const counts = new Map([
          [a, 99],
          [b, 0],
          ['nobody', 7],
        ]);
        await ledger.closeTurn(closeOf(null, [], { counts, tokenizer: 'o200k_base' }));
        expect((await open('a >b')).counts).toEqual(
          new Map([
            [a, 3],
            [b, 0],
          ]),
        );
        await ledger.closeTurn(closeOf(null, [], { counts: new Map([[a, 4]]), tokenizer: 'cl100k_base' }));
        expect((await open('a >b', { tokenizer: 'cl100k_base' })).counts).toEqual(new Map([[a, 4]]));
      });

      it('change nothing else of a node, SPEC 2.1', async () => {
        await open('a >b');
        const before = await ledger.nodes(alice, 0, 10);
        await ledger.closeTurn(closeOf(null, [], { counts: new Map([[endOf('a'), 8]]), tokenizer: 'o200k_base' }));
        expect(await ledger.nodes(alice, 0, 10)).toEqual(
          before.map((node) => (node.id === endOf('a') ? { ...node, tokens: 8, tokenizer: 'o200k_base' } : node)),
        );
      });

      it('are given for the part behind the active summary only', async () => {
        await ledger.openTurn(openOf(spineOf('a >b c >d e', { tokens: 2, tokenizer: 'o200k_base' })));
        await ledger.commitSummary(commitOf('s', idsOf('a >b c >d e'), 2));
        const opened = await open('a >b c >d e');
        expect([...opened.counts.keys()].toSorted()).toEqual(idsOf('a >b c >d e').slice(2).toSorted());
      });

      it('without a tokenizer, or that are no counts, are refused', async () => {
        await open('a');
        const close = (tokens: number, tokenizer: string | null) =>
          ledger.closeTurn(closeOf(null, [], { counts: new Map([[endOf('a'), tokens]]), tokenizer }));
        await expectRefusal(() => close(1, null), 'invalid_request', 'counts');
        await expectRefusal(() => close(Number.NaN, 'o200k_base'), 'invalid_request', 'counts');
      });
    });

    describe('closing a turn', () => {
      const reply = () => nodeAfter(endOf('a >b c'), '>d');

      it('records reply and call and moves HEAD to the reply, SPEC 2.3, 2.5, 8.2', async () => {
        await open('a >b c');
        now = 3_000;
        const call = callOf('call-1', endOf('a >b c'), { usage: usageOf(7), estimatedTokens: 6.5 });
        expect(await ledger.closeTurn(closeOf(call, [reply()]))).toEqual({ head: reply().id });
        expect(await head()).toBe(reply().id);
        expect(await ledger.call(alice, 'call-1')).toEqual({ ...call, replies: [reply().id] });
        expect(await ledger.node(alice, reply().id)).toEqual({
          ...reply(),
          conversation: alice.id,
          seq: 4,
          createdAt: 3_000,
        });
        expect(await ledger.conversation(alice.id, null)).toMatchObject({ createdAt: 1_000, usedAt: 3_000 });
        expect((await open('a >b c >d e')).known).toBe(4);
      });

      it.each(['cancelled', 'failed'] as const)('keeps a %s reply but leaves HEAD, SPEC 2.3', async (outcome) => {
        await open('a >b c');
        const call = callOf('call-1', endOf('a >b c'), { outcome });
        expect(await ledger.closeTurn(closeOf(call, [reply()]))).toEqual({ head: endOf('a >b c') });
        expect(await ledger.node(alice, reply().id)).not.toBeNull();
      });

      it('leaves HEAD for a spawned turn, SPEC 8.3', async () => {
        await open('a >b c');
        const close = closeOf(callOf('call-1', endOf('a >b c')), [reply()], { advanceHead: false });
        expect(await ledger.closeTurn(close)).toEqual({ head: endOf('a >b c') });
      });

      it('leaves HEAD when it has gone elsewhere meanwhile, SPEC 8.2', async () => {
        await open('a >b c');
        await open('a >b other');
        const close = closeOf(callOf('call-1', endOf('a >b c')), [reply()]);
        expect(await ledger.closeTurn(close)).toEqual({ head: endOf('a >b other') });
      });

      it('records every choice and moves HEAD to the first; equal choices are one node, SPEC 1.4', async () => {
        await open('a');
        const choices = ['>x', '>y', '>x'].map((text) => nodeAfter(endOf('a'), text));
        expect(await ledger.closeTurn(closeOf(callOf('call-1', endOf('a')), choices))).toEqual({ head: endOf('a >x') });
        expect(await ledger.nodes(alice, 0, 10)).toHaveLength(3);
        expect((await ledger.call(alice, 'call-1'))?.replies).toEqual([endOf('a >x'), endOf('a >y'), endOf('a >x')]);
      });

      it('takes a reply that is there already as that node and moves HEAD to it, SPEC 1.4', async () => {
        await open('a >b');
        await open('a');
        const close = closeOf(callOf('call-1', endOf('a')), [nodeAfter(endOf('a'), '>b')]);
        expect(await ledger.closeTurn(close)).toEqual({ head: endOf('a >b') });
        expect(await ledger.nodes(alice, 0, 10)).toHaveLength(2);
      });

      it('without a call records what Spillway itself answered, SPEC 4.9', async () => {
        await open('a >b !compact');
        const answer = nodeAfter(endOf('a >b !compact'), '!done', { role: 'llm' });
        expect(await ledger.closeTurn(closeOf(null, [answer]))).toEqual({ head: answer.id });
        expect(await ledger.calls(alice, 10)).toEqual([]);
        expect((await open('a >b !compact !done c')).commands).toEqual(idsOf('a >b !compact !done').slice(2));
      });

      it('changes nothing when the same call is closed again', async () => {
        await open('a >b c');
        const close = closeOf(callOf('call-1', endOf('a >b c')), [reply()]);
        await ledger.closeTurn(close);
        await open('a >b c >d e');
        const before = await everything();
        expect(await ledger.closeTurn(close)).toEqual({ head: endOf('a >b c >d e') });
        expect(await everything()).toEqual(before);
      });

      it('tells which calls recorded a reply, in the order closed, SPEC 2.3', async () => {
        await open('a >b c');
        const close = (id: string, text: string, outcome: 'complete' | 'failed') =>
          ledger.closeTurn(closeOf(callOf(id, endOf('a >b c'), { outcome }), [nodeAfter(endOf('a >b c'), text)]));
        await close('z', '>d', 'failed');
        await close('m', '>other', 'complete');
        await close('a', '>d', 'complete');
        expect((await ledger.callsOfReply(alice, reply().id)).map((call) => [call.id, call.outcome])).toEqual([
          ['z', 'failed'],
          ['a', 'complete'],
        ]);
        expect(await ledger.callsOfReply(alice, 'nobody')).toEqual([]);
        expect((await ledger.calls(alice, 10)).map((call) => call.id)).toEqual(['z', 'm', 'a']);
        expect((await ledger.calls(alice, 2)).map((call) => call.id)).toEqual(['m', 'a']);
      });

      it('refuses what no correct caller sends, names the field and writes nothing', async () => {
        await open('a >b c');
        const call = callOf('call-1', endOf('a >b c'));
        const close = (changes: Parameters<typeof closeOf>[2]) => () =>
          ledger.closeTurn(closeOf(call, [reply()], changes));
        await expectRefusal(close({ call }), 'invalid_request', 'call.replies');
        await expectRefusal(close({ call: { ...call, id: '', replies: [reply().id] } }), 'invalid_request', 'call.id');
        await expectRefusal(
          close({ call: { ...call, conversation: 'c_other' } }),
          'invalid_request',
          'call.conversation',
        );
        const misplaced = nodeAfter(endOf('a'), '>d');
        await expectRefusal(() => ledger.closeTurn(closeOf(call, [misplaced])), 'invalid_request', 'replies');
        const homeless = closeOf(callOf('call-1', 'nobody'), [nodeAfter('nobody', '>d')]);
        await expectRefusal(() => ledger.closeTurn(homeless), 'node_not_found', 'head');
        const marks: Mark[] = [{ kind: 'latched', head: 'nobody', tokens: 1, scope: 's' }];
        await expectRefusal(close({ marks }), 'node_not_found', 'mark.head');
        await expectRefusal(close({ conversation: { ...alice, id: 'c_none' }, call: null }), 'conversation_not_found');
        const taken = { ...reply(), id: endOf('a') };
        await expectRefusal(() => ledger.closeTurn(closeOf(call, [taken])), 'invalid_request', 'replies');
      });
    });

    describe('matches and marks', () => {
      const close = (id: string, words: string, changes: Parameters<typeof callOf>[2]) =>
        ledger.closeTurn(closeOf(callOf(id, endOf(words), changes), [], { advanceHead: false }));
      const match = async (words: string, model = 'gpt-test') => (await open(words, { model })).match;

      it('the match is the one whose head lies deepest on this spine, whatever was closed last, SPEC 5.1', async () => {
        await open('a >b c >d e');
        await close('1', 'a >b c >d e', { estimatedTokens: 50, usage: usageOf(55) });
        await close('2', 'a', { estimatedTokens: 10, usage: usageOf(11) });
        await close('3', 'a >b c', { estimatedTokens: 30, usage: usageOf(33) });
        expect(await match('a >b c >d e >f g')).toEqual({ estimatedTokens: 50, measuredTokens: 55 });
        expect(await match('a >b c x')).toEqual({ estimatedTokens: 30, measuredTokens: 33 });
        expect(await match('a >b')).toEqual({ estimatedTokens: 10, measuredTokens: 11 });
        expect(await match('z')).toBeNull();
      });

      it('of two matches at one head the later one counts, and each model has its own, SPEC 5.1', async () => {
        await open('a');
        await close('2', 'a', { estimatedTokens: 10, usage: usageOf(11) });
        await close('1', 'a', { estimatedTokens: 10, usage: usageOf(12) });
        await close('3', 'a', { model: 'other', estimatedTokens: 10, usage: usageOf(20) });
        expect(await match('a')).toEqual({ estimatedTokens: 10, measuredTokens: 12 });
        expect(await match('a', 'other')).toEqual({ estimatedTokens: 10, measuredTokens: 20 });
        expect(await match('a', 'third')).toBeNull();
      });

      it('usage without an estimate, an estimate without usage, zero usage, prompts that were cut and unfinished calls calibrate nothing, SPEC 9.4', async () => {
        await open('a');
        await close('1', 'a', { usage: usageOf(11) });
        await close('2', 'a', { estimatedTokens: 10 });
        await close('3', 'a', { estimatedTokens: 10, usage: usageOf(null) });
        await close('4', 'a', { estimatedTokens: 10, usage: usageOf(0) });
        await close('5', 'a', { estimatedTokens: 10, usage: usageOf(11), outcome: 'failed' });
        await close('6', 'a', { estimatedTokens: 0, usage: usageOf(11) });
        await close('7', 'a', { estimatedTokens: 10, usage: usageOf(11), overflow: 'cut-prompt' });
        expect(await match('a >b')).toBeNull();
      });

      it('the deepest mark of each kind on this spine holds for every head that descends from it, SPEC 5.11', async () => {
        const mark = (kind: Mark['kind'], words: string, tokens: number): Mark => ({
          kind,
          head: endOf(words),
          tokens,
          scope: `s${tokens}`,
        });
        await open('a >b c >d e');
        await open('a >b x >y z');
        await ledger.closeTurn(
          closeOf(callOf('1', endOf('a >b x >y z')), [nodeAfter(endOf('a >b x >y z'), '>r')], {
            marks: [mark('overflowed', 'a >b x >y z >r', 9), mark('latched', 'a >b c >d', 4)],
          }),
        );
        await ledger.setMark(alice, mark('latched', 'a >b', 2));
        expect((await open('a >b c >d e')).marks).toEqual([mark('latched', 'a >b c >d', 4)]);
        expect((await open('a >b x >y z >r')).marks).toEqual([
          mark('latched', 'a >b', 2),
          mark('overflowed', 'a >b x >y z >r', 9),
        ]);
        expect((await open('a')).marks).toEqual([]);
        await ledger.setMark(alice, mark('latched', 'a >b', 7));
        expect((await open('a >b c')).marks).toEqual([mark('latched', 'a >b', 7)]);
      });

      it('are found however far back they lie and whatever other branches hold', async () => {
        const words = Array.from({ length: 300 }, (_, index) => `w${index}`);
        const mark: Mark = { kind: 'latched', head: endOf(words.slice(0, 2)), tokens: 1, scope: 's' };
        await ledger.openTurn(openOf(spineOf(words)));
        await ledger.setMark(alice, mark);
        for (const fork of [3, 60, 150, 280]) {
          const branch = [...words.slice(0, fork), 'fork'];
          await ledger.openTurn(openOf(spineOf(branch)));
          await ledger.setMark(alice, { ...mark, head: endOf(branch), scope: 'elsewhere' });
        }
        expect((await ledger.openTurn(openOf(spineOf(words)))).marks).toEqual([mark]);
      });

      it('a mark needs a chain node and a count', async () => {
        await open('a');
        await ledger.commitSummary(commitOf('s', idsOf('a'), 1));
        const mark: Mark = { kind: 'latched', head: 'summary_s', tokens: 1, scope: 's' };
        await expectRefusal(() => ledger.setMark(alice, mark), 'node_not_found', 'mark.head');
        await expectRefusal(
          () => ledger.setMark(alice, { ...mark, head: endOf('a'), tokens: -1 }),
          'invalid_request',
          'mark.tokens',
        );
        await expectRefusal(
          () => ledger.setMark({ ...alice, id: 'c_none' }, { ...mark, head: endOf('a') }),
          'conversation_not_found',
        );
      });
    });

    describe('committing a summary', () => {
      const chain = idsOf('a >b c >d e');

      it('writes one node and the pointer, and moves no HEAD, SPEC 3.1, 3.5, 8.5', async () => {
        await open('a >b c >d e');
        const before = await everything();
        now = 4_000;
        const commit = commitOf('s', chain, 4);
        expect(await ledger.commitSummary(commit)).toEqual({ outcome: 'committed' });
        const after = await everything();
        expect(after.nodes).toEqual([
          ...before.nodes,
          { ...commit.node, conversation: alice.id, seq: 6, createdAt: 4_000 },
        ]);
        expect(after.conversations).toEqual(
          before.conversations.map((entry) => ({ ...entry, activeSummary: 'summary_s', nodes: 6, summaries: 1 })),
        );
        expect(await head()).toBe(chain[4]);
        const active = {
          id: 'summary_s',
          first: chain[0],
          last: chain[3],
          count: 4,
          content: commit.node.content,
          tokens: 40,
          tokenizer: 'o200k_base',
        };
        expect((await open('a >b c >d e')).active).toEqual(active);
        expect((await ledger.spine(alice, null, 'spine')).active).toEqual(active);
      });

      it('is active only where its whole segment lies on the spine, SPEC 4.2', async () => {
        await open('a >b c >d e');
        await ledger.commitSummary(commitOf('s', chain, 4));
        for (const policy of ['spine', 'session'] as const) {
          expect((await open('a >b c >d e >f', { policy })).active?.id).toBe('summary_s');
          expect((await open('a >b c >d x', { policy })).active?.id).toBe('summary_s');
          expect((await open('a >b c', { policy })).active).toBeNull();
          expect((await open('a >b x >y z', { policy })).active).toBeNull();
          expect((await ledger.spine(alice, chain[2] ?? '', policy)).active).toBeNull();
        }
      });

      it('under spine, the longest on this spine is active and branches do not undo each other, SPEC 3.4', async () => {
        await open('a >b c >d e');
        await ledger.commitSummary(commitOf('one', chain, 2));
        await ledger.commitSummary(commitOf('two', chain, 4, { expectedActive: 'summary_one' }));
        await open('a >b x >y z');
        const other = idsOf('a >b x >y z');
        expect((await open('a >b x >y z')).active?.id).toBe('summary_one');
        await ledger.commitSummary(commitOf('three', other, 3, { expectedActive: 'summary_one' }));
        expect((await open('a >b c >d e')).active?.id).toBe('summary_two');
        expect((await open('a >b x >y z')).active?.id).toBe('summary_three');
        expect(await ledger.conversation(alice.id, null)).toMatchObject({ activeSummary: 'summary_three' });
      });

      it('under session, one is named and older ones are never consulted again, SPEC 3.4', async () => {
        await open('a >b c >d e');
        await ledger.commitSummary(commitOf('one', chain, 4, { policy: 'session' }));
        await open('a >b x >y z');
        const other = idsOf('a >b x >y z');
        expect(await ledger.commitSummary(commitOf('two', other, 3, { policy: 'session' }))).toEqual({
          outcome: 'committed',
        });
        expect((await open('a >b x >y z', { policy: 'session' })).active?.id).toBe('summary_two');
        expect((await open('a >b c >d e', { policy: 'session' })).active).toBeNull();
        expect((await open('a >b c >d e', { policy: 'spine' })).active?.id).toBe('summary_one');
      });

      it('of two that cover alike, the one written last is active under spine, SPEC 3.4', async () => {
        await open('a >b c >d e');
        await ledger.commitSummary(commitOf('zzz', chain, 2));
        await ledger.commitSummary(commitOf('aaa', chain, 2, { expectedActive: 'summary_zzz' }));
        expect((await open('a >b c >d e')).active?.id).toBe('summary_aaa');
      });

      it('of two racing on one spine, one wins and the other is stale, SPEC 5.8', async () => {
        await open('a >b c >d e');
        const outcomes = await Promise.all([
          ledger.commitSummary(commitOf('one', chain, 2)),
          ledger.commitSummary(commitOf('two', chain, 4)),
        ]);
        expect(outcomes.map((result) => result.outcome).toSorted()).toEqual(['committed', 'stale']);
        expect(
          (await ledger.nodes(alice, 0, 10)).filter((node) => node.role === 'llm' && node.name !== null),
        ).toHaveLength(1);
      });

      it('is stale, and writes nothing, when what it stands on changed, SPEC 5.8', async () => {
        await open('a >b c >d e');
        await ledger.commitSummary(commitOf('one', chain, 2));
        const stale = async (...args: Parameters<typeof commitOf>) => {
          const before = await everything();
          expect(await ledger.commitSummary(commitOf(...args))).toEqual({
            outcome: 'stale',
            reason: expect.any(String),
          });
          expect(await everything()).toEqual(before);
        };
        const expectedActive = 'summary_one';
        await stale('two', chain, 4);
        await stale('two', chain, 4, { expectedActive: 'summary_other' });
        await stale('two', [...chain.slice(0, 3), 'nobody', 'none'], 4, { expectedActive });
        await stale('two', [...chain, 'nobody'], 4, { expectedActive });
        await stale('one', chain, 4, { expectedActive });
        await stale('two', ['summary_one', ...chain.slice(1)], 4);
        const covering = (covered: readonly string[]) => ({ expectedActive, node: summaryNode('two', covered) });
        await stale('two', chain, 4, covering(chain.slice(1, 4)));
        await stale('two', chain, 4, covering([chain[0] ?? '', chain[2] ?? '']));
        await stale('two', chain, 4, covering([...chain, 'beyond']));
        const mixed = [chain[0] ?? '', idsOf('x >b')[1] ?? '', ...chain.slice(2)];
        await open('x >b');
        await stale('two', mixed, 2);
        expect(await ledger.commitSummary(commitOf('two', chain, 4, { expectedActive }))).toEqual({
          outcome: 'committed',
        });
      });

      it('manual: HEAD may have advanced but must still descend through the segment, SPEC 5.8', async () => {
        await open('a >b c >d e >f g');
        const commit = commitOf('s', chain, 4, { headMustDescend: true });
        await ledger.moveHead(alice, chain[2] ?? '', null);
        expect(await ledger.commitSummary(commit)).toMatchObject({ outcome: 'stale' });
        await open('a >b c x >y z');
        expect(await ledger.commitSummary(commit)).toMatchObject({ outcome: 'stale' });
        expect(
          await ledger.commitSummary({
            ...commit,
            headMustDescend: false,
            chain: chain.slice(0, 4),
            node: summaryNode('auto', chain.slice(0, 1)),
          }),
        ).toEqual({ outcome: 'committed' });
        await ledger.moveHead(alice, chain[3] ?? '', null);
        expect(await ledger.commitSummary({ ...commit, expectedActive: 'summary_auto' })).toEqual({
          outcome: 'committed',
        });
        expect(await head()).toBe(chain[3]);
      });

      it('refuses a node that is no summary node, SPEC 3.1', async () => {
        await open('a >b c >d e');
        const commit = commitOf('s', chain, 2);
        const withNode = (changes: Partial<NewNode>) => () =>
          ledger.commitSummary({ ...commit, node: { ...commit.node, ...changes, metadata: commit.node.metadata } });
        await expectRefusal(withNode({ id: 's' }), 'invalid_request', 'node.id');
        await expectRefusal(withNode({ role: 'user' }), 'invalid_request', 'node.role');
        await expectRefusal(withNode({ name: null }), 'invalid_request', 'node.name');
        await expectRefusal(withNode({ content: 'text' }), 'invalid_request', 'node.content');
        await expectRefusal(withNode({ predecessor: chain[0] ?? '' }), 'invalid_request', 'node.predecessor');
        await expectRefusal(withNode({ tokenizer: null }), 'invalid_request', 'node.tokens');
        await expectRefusal(
          () => ledger.commitSummary(commitOf('s', chain, 0)),
          'invalid_request',
          'node.metadata.covers_ids',
        );
        await expectRefusal(() => ledger.commitSummary(commitOf('s', [], 0)), 'invalid_request', 'chain');
        const miscounted = { ...commit.node, metadata: { ...commit.node.metadata, covered_count: 5 } };
        await expectRefusal(
          () => ledger.commitSummary({ ...commit, node: miscounted }),
          'invalid_request',
          'node.metadata.covered_count',
        );
        await expectRefusal(
          () => ledger.commitSummary({ ...commit, conversation: { ...alice, id: 'c_none' } }),
          'conversation_not_found',
        );
      });

      it('never stands in a chain, is never HEAD and is no reply, SPEC 3.2, 8.1', async () => {
        await open('a >b c >d e');
        await ledger.commitSummary(commitOf('s', chain, 2));
        const { node } = commitOf('s', chain, 2);
        await expectRefusal(() => ledger.openTurn(openOf([node])), 'invalid_request', 'chain');
        await expectRefusal(() => ledger.moveHead(alice, node.id, null), 'node_not_found', 'to');
        await expectRefusal(() => ledger.spine(alice, node.id, 'spine'), 'node_not_found', 'head');
        await expectRefusal(
          () => ledger.closeTurn(closeOf(null, [{ ...nodeAfter(ROOT, 'x'), id: node.id }])),
          'node_not_found',
          'head',
        );
        await expectRefusal(
          () => ledger.closeTurn(closeOf(callOf('1', node.id), [nodeAfter(node.id, '>x')])),
          'node_not_found',
          'head',
        );
      });
    });

    describe('moving HEAD', () => {
      it('goes where it is told, on any branch, SPEC 8.1', async () => {
        await open('a >b c');
        await open('a >x y');
        await ledger.moveHead(alice, endOf('a >b'), null);
        expect(await head()).toBe(endOf('a >b'));
        await ledger.moveHead(alice, endOf('a >x y'), endOf('a >b'));
        expect(await head()).toBe(endOf('a >x y'));
      });

      it('is refused for an unknown node, another HEAD than expected and an unknown conversation, SPEC 8.1', async () => {
        await open('a >b c');
        await expectRefusal(() => ledger.moveHead(alice, 'nobody', null), 'node_not_found', 'to');
        await expectRefusal(() => ledger.moveHead(alice, ROOT, null), 'node_not_found', 'to');
        await expectRefusal(() => ledger.moveHead(alice, endOf('a'), endOf('a >b')), 'head_moved', 'expected');
        await expectRefusal(
          () => ledger.moveHead({ ...alice, id: 'c_none' }, endOf('a'), null),
          'conversation_not_found',
        );
      });
    });

    describe('reading', () => {
      it('walks a spine from any node, or from HEAD, first node first, SPEC 2.1', async () => {
        await open('a >b c');
        await open('a >b x');
        const ids = async (from: string | null) =>
          (await ledger.spine(alice, from, 'spine')).nodes.map((node) => node.id);
        expect(await ids(null)).toEqual(idsOf('a >b x'));
        expect(await ids(endOf('a >b c'))).toEqual(idsOf('a >b c'));
        expect(await ids(endOf('a'))).toEqual(idsOf('a'));
        expect(await ids(ROOT)).toEqual([]);
        expect((await ledger.spine(alice, null, 'spine')).conversation).toEqual(
          await ledger.conversation(alice.id, null),
        );
        await expectRefusal(() => ledger.spine(alice, 'nobody', 'spine'), 'node_not_found', 'head');
        await expectRefusal(() => ledger.spine({ ...alice, id: 'c_none' }, null, 'spine'), 'conversation_not_found');
      });

      it('pages through nodes in the order written', async () => {
        await open('a >b c');
        await open('a >b x');
        await ledger.commitSummary(commitOf('s', idsOf('a >b x'), 2));
        const first = await ledger.nodes(alice, 0, 3);
        expect(first.map((node) => node.id)).toEqual(idsOf('a >b c'));
        const rest = await ledger.nodes(alice, first.at(-1)?.seq ?? 0, 3);
        expect(rest.map((node) => node.id)).toEqual([endOf('a >b x'), 'summary_s']);
        expect(await ledger.nodes(alice, rest.at(-1)?.seq ?? 0, 3)).toEqual([]);
        await expectRefusal(() => ledger.nodes(alice, 0, 0), 'invalid_request', 'limit');
        await expectRefusal(() => ledger.calls(alice, Number.NaN), 'invalid_request', 'limit');
        await expectRefusal(() => ledger.list(null, 1.5, null), 'invalid_request', 'limit');
      });

      it('knows nothing of a conversation that is not there', async () => {
        expect(await ledger.conversation(alice.id, null)).toBeNull();
        expect(await ledger.nodes(alice, 0, 10)).toEqual([]);
        expect(await ledger.node(alice, endOf('a'))).toBeNull();
        expect(await ledger.call(alice, 'call-1')).toBeNull();
        expect(await ledger.calls(alice, 10)).toEqual([]);
        expect(await ledger.callsOfReply(alice, 'r')).toEqual([]);
        expect(await ledger.instruction(alice, 'd')).toBeNull();
        expect(await ledger.list(null, 10, null)).toEqual([]);
      });

      it('lists conversations latest used first, a page at a time, with their counts', async () => {
        const used: string[] = [];
        for (const [index, tenant] of ['alice', 'bob', 'alice', 'bob', 'alice'].entries()) {
          now = 1_000 + index;
          used.unshift(`c_${index}`);
          await ledger.openTurn(openOf(spineOf('a >b'), { conversation: { ...alice, tenant, id: `c_${index}` } }));
        }
        const ids = async (...page: Parameters<Directory['list']>) =>
          (await ledger.list(...page)).map((entry) => entry.id);
        expect(await ids(null, 10, null)).toEqual(used);
        expect(await ids('alice', 10, null)).toEqual(['c_4', 'c_2', 'c_0']);
        expect(await ids('alice', 1, null)).toEqual(['c_4']);
        expect(await ids('alice', 2, 1_004)).toEqual(['c_2', 'c_0']);
        now = 2_000;
        await ledger.closeTurn(
          closeOf({ ...callOf('1', endOf('a >b')), conversation: 'c_0' }, [], {
            conversation: { ...alice, id: 'c_0' },
          }),
        );
        await ledger.commitSummary(commitOf('s', idsOf('a >b'), 1, { conversation: { ...alice, id: 'c_0' } }));
        const [latest] = await ledger.list('alice', 1, null);
        expect(latest).toEqual({
          ...alice,
          id: 'c_0',
          head: endOf('a >b'),
          activeSummary: 'summary_s',
          createdAt: 1_000,
          usedAt: 2_000,
          nodes: 3,
          calls: 1,
          summaries: 1,
        });
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
        learnedAt: now,
        expiresAt: now + 1_000,
        ...changes,
      });

      it('are kept by tenant, upstream and model, and listed latest first, SPEC 6.5', async () => {
        const learned = [
          window(),
          window({ model: 'model-b\0\ud800', learnedAt: now + 1 }),
          window({ upstream: 'https://other.example.test', tokens: 4_096, learnedAt: now + 2 }),
          window({ tenant: 'bob', tokens: 2_048, source: 'usage', rule: 'cut-prompt', learnedAt: now + 3 }),
        ];
        for (const one of learned) await ledger.learnWindow(one);
        expect(await ledger.learnedWindows(null, 10)).toEqual(learned.toReversed());
        expect(await ledger.learnedWindows('alice', 10)).toEqual(learned.slice(0, 3).toReversed());
        expect(await ledger.learnedWindows('alice', 1)).toEqual([learned[2]]);
        expect(await ledger.learnedWindows('mallory', 10)).toEqual([]);
      });

      it('keep the smaller of two until it expires, and take the newer of two alike, SPEC 6.5', async () => {
        await ledger.learnWindow(window());
        await ledger.learnWindow(window({ tokens: 16_384, rule: 'later', expiresAt: now + 9_000 }));
        expect(await ledger.learnedWindows('alice', 10)).toEqual([window()]);
        const again = window({ rule: 'again', learnedAt: now + 5, expiresAt: now + 2_000 });
        await ledger.learnWindow(again);
        expect(await ledger.learnedWindows('alice', 10)).toEqual([again]);
        await ledger.learnWindow(window({ tokens: 4_096 }));
        expect(await ledger.learnedWindows('alice', 10)).toEqual([window({ tokens: 4_096 })]);

        now += 1_000;
        expect(await ledger.learnedWindows('alice', 10)).toEqual([]);
        const larger = window({ tokens: 16_384 });
        await ledger.learnWindow(larger);
        expect(await ledger.learnedWindows(null, 10)).toEqual([larger]);
      });

      it('are raised by what went through, never lowered, and none is made up, SPEC 6.5', async () => {
        await ledger.widenWindow(window(), 10_000);
        expect(await ledger.learnedWindows(null, 10)).toEqual([]);
        await ledger.learnWindow(window());
        await ledger.learnWindow(window({ model: 'model-b' }));
        now += 10;
        await ledger.widenWindow(window(), 8_000);
        await ledger.widenWindow(window(), 8_192);
        await ledger.widenWindow(window(), 10_000);
        const raised = window({ tokens: 10_000, source: 'success', expiresAt: 2_000 });
        const other = window({ model: 'model-b', learnedAt: 1_000, expiresAt: 2_000 });
        expect(await ledger.learnedWindows(null, 10)).toEqual([raised, other]);
        now += 1_000;
        await ledger.widenWindow(window(), 20_000);
        expect(await ledger.learnedWindows(null, 10)).toEqual([]);
      });

      it('are forgotten one at a time', async () => {
        await ledger.learnWindow(window());
        await ledger.learnWindow(window({ model: 'model-b' }));
        expect(await ledger.forgetWindow(window({ tenant: 'bob' }))).toBe(false);
        expect(await ledger.forgetWindow(window())).toBe(true);
        expect(await ledger.forgetWindow(window())).toBe(false);
        expect(await ledger.learnedWindows(null, 10)).toEqual([window({ model: 'model-b' })]);
        now += 1_000;
        expect(await ledger.forgetWindow(window({ model: 'model-b' }))).toBe(false);
      });

      it('outlive a restart', async ({ skip }) => {
        const { reopen } = harness;
        if (reopen === undefined) return skip('nothing outlives this driver');
        await ledger.learnWindow(window());
        ledger = await reopen();
        expect(await ledger.learnedWindows(null, 10)).toEqual([window()]);
      });

      it('with a key or a count that is none are refused', async () => {
        for (const field of ['tenant', 'upstream', 'model'] as const) {
          const refused = { code: 'invalid_request', field: `window.${field}` };
          expect(await refusal(ledger.learnWindow(window({ [field]: '' })))).toEqual(refused);
          expect(await refusal(ledger.widenWindow(window({ [field]: '' }), 1))).toEqual(refused);
        }
        for (const tokens of [-1, 0.5, Number.NaN]) {
          const refused = { code: 'invalid_request', field: 'window.tokens' };
          expect(await refusal(ledger.learnWindow(window({ tokens })))).toEqual(refused);
          expect(await refusal(ledger.widenWindow(window(), tokens))).toEqual(refused);
        }
        await expectRefusal(() => ledger.learnedWindows(null, 0), 'invalid_request', 'limit');
        expect(await ledger.learnedWindows(null, 10)).toEqual([]);
      });
    });

    describe('tenants', () => {
      const mallory = { ...alice, tenant: 'mallory' };

      it("never read another's conversation, SPEC 1.1", async () => {
        await open('a', { instructions: [{ digest: 'd1', content: 'secret' }] });
        await ledger.closeTurn(closeOf(callOf('call-1', endOf('a')), [nodeAfter(endOf('a'), '>b')]));
        expect(await ledger.conversation(alice.id, 'mallory')).toBeNull();
        expect(await ledger.nodes(mallory, 0, 10)).toEqual([]);
        expect(await ledger.node(mallory, endOf('a'))).toBeNull();
        expect(await ledger.call(mallory, 'call-1')).toBeNull();
        expect(await ledger.calls(mallory, 10)).toEqual([]);
        expect(await ledger.callsOfReply(mallory, endOf('a >b'))).toEqual([]);
        expect(await ledger.instruction(mallory, 'd1')).toBeNull();
        expect(await ledger.list('mallory', 10, null)).toEqual([]);
        expect(await refusal(ledger.spine(mallory, null, 'spine'))).toMatchObject({ code: 'conversation_not_found' });
      });

      it("never write into another's conversation, SPEC 1.1", async () => {
        await open('a >b');
        await expectRefusal(() => open('a >b c', { conversation: mallory }), 'conversation_not_found');
        await expectRefusal(
          () => ledger.closeTurn(closeOf(callOf('1', endOf('a >b')), [], { conversation: mallory })),
          'conversation_not_found',
        );
        await expectRefusal(
          () => ledger.commitSummary(commitOf('s', idsOf('a >b'), 1, { conversation: mallory })),
          'conversation_not_found',
        );
        await expectRefusal(() => ledger.moveHead(mallory, endOf('a'), null), 'conversation_not_found');
        await expectRefusal(
          () => ledger.setMark(mallory, { kind: 'latched', head: endOf('a'), tokens: 1, scope: 's' }),
          'conversation_not_found',
        );
      });

      it('meet in the same nodes only inside one conversation', async () => {
        await open('a >b');
        const bob = { ...alice, tenant: 'bob', id: 'c_bob' };
        expect((await open('a >b c', { conversation: bob })).known).toBe(0);
        expect(await ledger.nodes(alice, 0, 10)).toHaveLength(2);
      });
    });

    it('is as it was after a restart, HEAD included, SPEC 8.5', async ({ skip }) => {
      const { reopen } = harness;
      if (reopen === undefined) return skip('nothing outlives this driver');
      await open('a >b c >d e', { instructions: [{ digest: 'd1', content: 'Be brief.' }] });
      const call = callOf('call-1', endOf('a >b c >d e'), { estimatedTokens: 10, usage: usageOf(12) });
      const marks: Mark[] = [{ kind: 'overflowed', head: endOf('a >b c'), tokens: 5, scope: 's' }];
      await ledger.closeTurn(closeOf(call, [nodeAfter(endOf('a >b c >d e'), '>f')], { marks }));
      await ledger.commitSummary(commitOf('s', idsOf('a >b c >d e >f'), 2));
      const before = await everything();
      const opened = await open('a >b c >d e >f');
      ledger = await reopen();
      expect(await everything()).toEqual(before);
      expect(await open('a >b c >d e >f')).toEqual(opened);
      expect(opened).toMatchObject({ active: { id: 'summary_s' }, match: { measuredTokens: 12 }, marks });
      expect(await ledger.instruction(alice, 'd1')).toEqual({ digest: 'd1', content: 'Be brief.' });
    });

    it('answers every sequence of commands as the reference does', { timeout: 60_000 }, async ({ skip }) => {
      if (ledger instanceof MemoryLedger) return skip('this driver is the reference');
      await agreesWithTheReference(makeHarness);
    });
  });
}
