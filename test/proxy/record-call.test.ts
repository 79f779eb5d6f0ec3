import { describe, expect, it } from 'vitest';
import type { Overflow } from '../../src/core/overflow/verdict.js';
import { NO_COUNTS } from '../../src/core/overflow/verdict.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { dispatchOf } from '../../src/proxy/dispatch.js';
import { createRecordCall } from '../../src/proxy/record-call.js';
import { createWorld } from '../support/in-memory.js';
import { completion } from '../support/provider.js';

const said: Overflow = { ...NO_COUNTS, kind: 'context', reason: 'said-so' };
/** Drawn from the usage of a reply that stands. */
const suspected = { ...said, reason: 'cut-prompt', when: 'next-turn' as const };

/** The kinds of the marks that stand on a spine after a call of it was recorded. */
async function marksAfter(overflow: Overflow | null, latched: boolean): Promise<readonly string[]> {
  const world = createWorld({ windowTokens: null, send: () => Promise.reject(new Error('not asked for')) });
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };
  if (latched) {
    const { writer, spine } = await world.open(body);
    await writer.setMark({ kind: 'latched', head: spine.at(-1)?.id ?? '', tokens: 1, scope: 's' });
  }
  const turn = await world.open(body);
  const record = createRecordCall({
    directory: world.ledger,
    hash: turn.hash,
    digest: () => 'digest',
    clock: () => 0,
    onGap: (_, reason) => expect.unreachable(reason),
  });
  const dispatch = dispatchOf(turn, null);
  const reply = chatCompletions.readReply(JSON.parse(completion('Aye.')));
  await record(
    turn,
    {
      prepared: { dispatch, action: 'none', before: null, after: null, report: null },
      callId: 'call_1',
      startedAt: 0,
      overheadMs: 0,
    },
    { relayed: { outcome: 'complete', reply, lateError: null, unread: null }, status: 200, overflow },
  );
  return (await world.open(body)).opened.marks.map((mark) => mark.kind);
}

describe('the mark of an overflow that was seen too late to be retried', () => {
  it('is set by what the provider said and by what its usage suggests, SPEC 6.3', async () => {
    expect(await marksAfter(said, false)).toEqual(['overflowed']);
    expect(await marksAfter(suspected, false)).toEqual(['overflowed']);
    expect(await marksAfter(null, false)).toEqual([]);
  });

  it('is not set by usage alone where a compaction has not helped: it would be tried with every turn, SPEC 5.11', async () => {
    expect(await marksAfter(suspected, true)).toEqual(['latched']);
  });

  it('is set by what the provider said all the same, SPEC 6.3', async () => {
    expect((await marksAfter(said, true)).toSorted()).toEqual(['latched', 'overflowed']);
  });
});
