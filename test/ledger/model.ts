import fc from 'fast-check';
import { expect } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import { ROOT, type NewNode } from '../../src/core/node.js';
import type { Directory, Lease, Ledger, SummaryPolicy } from '../../src/core/ports.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { alice, callOf, closeOf, commitOf, nodeAfter, openOf, spineOf, usageOf } from './builders.js';
import { contentOf, exportOf, importPagesOf } from './conformance/transfer.js';
import type { MakeHarness } from './conformance/world.js';

type Store = Ledger & Directory;
type Spine = readonly NewNode[];

/** The last one is never opened. */
const conversations = [
  alice,
  { ...alice, id: 'c_second' },
  { ...alice, tenant: 'bob', id: 'c_third' },
  { ...alice, id: 'c_none' },
];
const models = ['gpt-test', 'other'];

const word = fc.constantFrom('a', 'b', '>r', '>s', '!compact', '=t');
const policy = fc.constantFrom<SummaryPolicy>('spine', 'session');
/** Which conversation, which of the spines made so far, and how much of it. */
const place = {
  which: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2, 3),
  spine: fc.nat(),
  length: fc.nat(),
  model: fc.constantFrom('gpt-test', 'gpt-test', 'other'),
};
const tokens = fc.option(fc.nat(500), { freq: 5 });

/** An ordinary object, as every instruction is: one without a prototype cannot be sent to a store elsewhere. */
const instruction = fc.record({ digest: fc.constantFrom('d1', 'd2'), content: fc.string() }, { noNullPrototype: true });

const open = fc.record({
  ...place,
  kind: fc.constant('open' as const),
  words: fc.array(word, { maxLength: 6 }),
  policy,
  tokens,
  tokenizer: fc.constantFrom(null, 'o200k_base', 'cl100k_base'),
  advanceHead: fc.boolean(),
  stranger: fc.nat(9).map((n) => n === 0),
  expects: fc.constantFrom(null, null, null, 'truth', 'another'),
  instructions: fc.array(instruction, { maxLength: 2 }),
});
const command = fc.oneof(
  open,
  open,
  fc.record({
    ...place,
    kind: fc.constant('close' as const),
    id: fc.nat(30),
    byItself: fc.boolean(),
    replies: fc.array(word, { maxLength: 3 }),
    chained: fc.boolean(),
    outcome: fc.constantFrom('complete', 'complete', 'cancelled', 'failed'),
    advanceHead: fc.boolean(),
    estimatedTokens: tokens,
    measuredTokens: tokens,
    tokenizer: fc.constantFrom(null, 'o200k_base', 'cl100k_base'),
  }),
  fc.record({
    ...place,
    kind: fc.constant('commit' as const),
    id: fc.nat(30),
    count: fc.nat(6),
    policy,
    expects: fc.constantFrom('truth', 'truth', 'truth', 'nothing', 'another'),
    headMustDescend: fc.boolean(),
    lease: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat() }),
  }),
  fc.record({ ...place, kind: fc.constant('move' as const), expects: fc.constantFrom(null, 'truth', 'another') }),
  fc.record({
    ...place,
    kind: fc.constant('mark' as const),
    mark: fc.constantFrom('latched', 'overflowed'),
    tokens: fc.nat(9),
  }),
  fc.record({
    ...place,
    kind: fc.constantFrom('delete branch' as const, 'delete branch' as const, 'erase branch' as const),
    expects: fc.constantFrom(null, null, 'truth', 'another'),
  }),
  fc.record({ ...place, kind: fc.constant('restore branch' as const) }),
  fc.record({ ...place, kind: fc.constantFrom('delete' as const, 'restore' as const) }),
  fc.record({
    ...place,
    kind: fc.constant('erase' as const),
    unusedFor: fc.constantFrom(null, 0, 3, 10, 10, 20, 20, 20),
  }),
  fc.record({ ...place, kind: fc.constant('acquire' as const), durationMs: fc.constantFrom(1, 3, 10) }),
  fc.record({ ...place, kind: fc.constantFrom('renew' as const, 'release' as const), lease: fc.nat() }),
  fc.record({ ...place, kind: fc.constant('move over' as const), breaksOff: fc.boolean() }),
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

export const MODEL_RUNS = Number(process.env['LEDGER_MODEL_RUNS'] ?? 50);

/** Random commands to a driver and to the memory ledger: every answer, and everything readable at the end, is equal. */
export async function agreesWithTheReference(makeHarness: MakeHarness): Promise<void> {
  const property = fc.asyncProperty(
    fc.array(command, { minLength: 10, maxLength: 40, size: 'max' }),
    async (commands) => {
      let now = 1_000;
      const harness = await makeHarness(() => now);
      const reference = new MemoryLedger(() => now);
      try {
        const spines: Spine[][] = conversations.map(() => []);
        const leases: Lease[] = [];
        for (const [index, conversation] of conversations.slice(0, -1).entries()) {
          const spine = spineOf('a >r b >s');
          spines[index]?.push(spine);
          for (const store of [harness.ledger, reference]) await store.openTurn(openOf(spine, { conversation }));
        }
        for (const step of commands) {
          now += 1;
          const work = await workOf(step, reference, spines, leases, now);
          const answer = await answerOf(work(reference));
          expect(await answerOf(work(harness.ledger))).toEqual(answer);
          if (step.kind === 'acquire' && isLease(answer)) leases.push(answer);
        }
        expect(await everythingIn(harness.ledger, spines)).toEqual(await everythingIn(reference, spines));
      } finally {
        await harness.dispose();
      }
    },
  );
  await fc.assert(property, { numRuns: MODEL_RUNS });
}

/** A command as a call to either store, with what it takes from the present looked up in the reference. */
async function workOf(
  step: Command,
  reference: Store,
  spines: Spine[][],
  leases: readonly Lease[],
  now: number,
): Promise<(store: Store) => Promise<unknown>> {
  const conversation = conversations[step.which] ?? alice;
  const known = spines[step.which] ?? [];
  const whole = known.length === 0 ? [] : (known[step.spine % known.length] ?? []);
  // Mostly the whole spine, as in life; otherwise a part of it.
  const base = step.length % 2 === 0 ? whole : whole.slice(0, step.length % (whole.length + 1));
  const chain = base.map((node) => node.id);
  const last = chain.at(-1) ?? 'nobody';
  const head = (await reference.conversation(conversation.id, null))?.head ?? null;
  const leaseAt = (index: number): Lease => leases[index % leases.length] ?? { head: last, fence: 1 };

  switch (step.kind) {
    case 'open': {
      const nodes = [...base];
      for (const text of step.words) {
        const counted = step.tokens === null ? {} : { tokens: step.tokens, tokenizer: 'o200k_base' };
        nodes.push(nodeAfter(nodes.at(-1)?.id ?? ROOT, text, counted));
      }
      if (!step.stranger && conversation.id !== 'c_none') known.push(nodes);
      const tenant = step.stranger ? 'stranger' : conversation.tenant;
      const expectedHead = step.expects === 'truth' ? (head ?? ROOT) : step.expects;
      const { tokenizer, advanceHead, model, instructions } = step;
      const changes = { policy: step.policy, tokenizer, advanceHead, model, instructions, expectedHead };
      return (store) => store.openTurn(openOf(nodes, { ...changes, conversation: { ...conversation, tenant } }));
    }
    case 'close': {
      const replies: NewNode[] = [];
      for (const text of step.replies) {
        replies.push(nodeAfter(step.chained ? (replies.at(-1)?.id ?? last) : last, text));
        known.push([...base, ...(step.chained ? replies : replies.slice(-1))]);
      }
      const usage = usageOf(step.measuredTokens);
      const { outcome, estimatedTokens, model } = step;
      const call = callOf(`call-${step.id}`, last, {
        conversation: conversation.id,
        outcome,
        estimatedTokens,
        model,
        usage,
      });
      const counts = new Map(step.tokenizer === null ? [] : chain.map((id, index) => [id, index]));
      const { advanceHead, tokenizer } = step;
      return (store) =>
        store.closeTurn(
          closeOf(step.byItself ? null : call, replies, { conversation, advanceHead, counts, tokenizer }),
        );
    }
    case 'commit': {
      const truth = await reference.spine(conversation, last, step.policy).then(
        (spine) => spine.active?.id ?? null,
        () => null,
      );
      const expectedActive = step.expects === 'truth' ? truth : step.expects === 'nothing' ? null : 'summary_0';
      const { headMustDescend } = step;
      const lease = step.lease === null ? null : leaseAt(step.lease);
      const changes = { conversation, policy: step.policy, expectedActive, headMustDescend, lease };
      return (store) => store.commitSummary(commitOf(String(step.id), chain, step.count, changes));
    }
    case 'move': {
      const expected = step.expects === 'truth' ? head : step.expects;
      return (store) => store.moveHead(conversation, last, expected);
    }
    case 'mark': {
      const mark = { kind: step.mark, head: last, tokens: step.tokens, scope: step.model };
      return (store) => store.setMark(conversation, mark);
    }
    case 'delete branch':
    case 'erase branch': {
      const expected = step.expects === 'truth' ? head : step.expects;
      return step.kind === 'delete branch'
        ? (store) => store.deleteBranch(conversation, last, expected)
        : (store) => store.eraseBranch(conversation, last, expected);
    }
    case 'restore branch':
      return (store) => store.restoreBranch(conversation, last);
    case 'delete':
      return (store) => store.deleteConversation(conversation);
    case 'restore':
      return (store) => store.restoreConversation(conversation);
    case 'erase': {
      const unusedSince = step.unusedFor === null ? null : now - step.unusedFor;
      return (store) => store.eraseConversation(conversation, unusedSince);
    }
    case 'acquire':
      return (store) => store.acquireLease(conversation, chain, step.durationMs);
    case 'renew':
      return (store) => store.renewLease(conversation, leaseAt(step.lease), 5);
    case 'release':
      return (store) => store.releaseLease(conversation, leaseAt(step.lease));
    case 'move over': {
      // Out of each store, whose exports must be alike, and the reference's into both; perhaps at the second attempt.
      const exported = await exportOf(reference, conversation).catch(() => []);
      return async (store) => {
        const own = contentOf(await exportOf(store, conversation));
        await store.eraseConversation(conversation, null);
        const pages = importPagesOf(exported);
        const [first] = pages;
        if (step.breaksOff && first !== undefined) await store.importPage({ ...first, last: false });
        for (const page of pages) await store.importPage(page);
        return own;
      };
    }
  }
}

function isLease(answer: unknown): answer is Lease {
  return typeof answer === 'object' && answer !== null && 'fence' in answer;
}

/** What a caller can tell: the value, or code and field of the refusal. */
async function answerOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error;
    return { code: error.code, field: error.field };
  }
}

async function everythingIn(store: Store, spines: readonly (readonly Spine[])[]): Promise<unknown> {
  const seen: unknown[] = [await store.list(null, 10, null), await store.oldest(null, 10)];
  for (const [index, conversation] of conversations.entries()) {
    seen.push(await store.nodes(conversation, 0, 1_000), await store.calls(conversation, 1_000));
    seen.push(await answerOf(exportOf(store, conversation).then(contentOf)));
    seen.push(await store.instruction(conversation, 'd1'), await store.instruction(conversation, 'd2'));
    for (const spine of spines[index] ?? []) {
      const head = spine.at(-1)?.id ?? ROOT;
      seen.push(await answerOf(store.spine(conversation, head, 'spine')));
      seen.push(await answerOf(store.spine(conversation, null, 'session')));
      seen.push(await store.callsOfReply(conversation, head));
      for (const model of models) {
        // A chain that is known whole, on a turn that moves nothing: it only reads.
        seen.push(await answerOf(store.openTurn(openOf(spine, { conversation, model, advanceHead: false }))));
      }
    }
  }
  return seen;
}
