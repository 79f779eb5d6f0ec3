/**
 * A write load to be killed in the middle of. Says on stdout, a JSON line each, what it is about to write and that it was
 * acknowledged; runs until it is killed. Arguments: data file, seed.
 */
import { writeSync } from 'node:fs';
import { ROOT, type NewNode } from '../../src/core/node.js';
import { openSqliteLedger } from '../../src/ledger/sqlite.js';
import { alice, callOf, closeOf, commitOf, nodeAfter, openOf, spineOf } from './builders.js';
import { randomNumbers } from './random-numbers.js';

/** What is to be there once it is done: all of it, or none. */
export interface Announcement {
  readonly nodes: readonly string[];
  readonly head: string;
  readonly activeSummary: string | null;
}

const [, , file = '', seed = '0'] = process.argv;
const random = randomNumbers(Number(seed));
const say = (line: Announcement | 'done') => void writeSync(1, `${JSON.stringify(line)}\n`);

const ledger = await openSqliteLedger({ file, durability: 'normal', busyTimeoutMs: 1_000, clock: Date.now });
if ((await ledger.conversation(alice.id, null)) === null) await ledger.openTurn(openOf(spineOf('first')));

for (let step = 0; ; step += 1) {
  const { conversation, nodes, active } = await ledger.spine(alice, null, 'spine');
  const spine: readonly NewNode[] = nodes;
  const { head, activeSummary } = conversation;
  const word = `${seed}-${step}`;

  switch (random(6)) {
    case 0:
    case 1: {
      // A turn, on the whole spine or as a fork; spawned ones leave HEAD.
      const base = spine.length > 60 || random(4) === 0 ? spine.slice(0, 1 + random(spine.length)) : spine;
      const added: NewNode[] = [];
      for (let n = random(3); n >= 0; n -= 1)
        added.push(nodeAfter([...base, ...added].at(-1)?.id ?? ROOT, `${word}-${n}`));
      const advanceHead = random(4) > 0;
      const end = added.at(-1)?.id ?? head;
      say({ nodes: added.map((node) => node.id), head: advanceHead ? end : head, activeSummary });
      await ledger.openTurn(openOf([...base, ...added], { advanceHead }));
      break;
    }
    case 2:
    case 3: {
      const reply = nodeAfter(head, `>${word}`);
      const outcome = random(3) > 0 ? 'complete' : 'failed';
      say({ nodes: [reply.id], head: outcome === 'complete' ? reply.id : head, activeSummary });
      await ledger.closeTurn(closeOf(callOf(word, head, { outcome }), [reply]));
      break;
    }
    case 4: {
      const count = (active?.count ?? 0) + 1;
      if (count > spine.length) continue;
      const chain = spine.map((node) => node.id);
      const commit = commitOf(word, chain, count, { expectedActive: active?.id ?? null });
      say({ nodes: [commit.node.id], head, activeSummary: commit.node.id });
      const { outcome } = await ledger.commitSummary(commit);
      if (outcome !== 'committed') throw new Error(`a commit alone on its store was ${outcome}`);
      break;
    }
    default: {
      const to = spine[random(spine.length)]?.id ?? head;
      say({ nodes: [], head: to, activeSummary });
      await ledger.moveHead(alice, to, head);
    }
  }
  say('done');
}
