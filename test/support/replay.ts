import { join } from 'node:path';
import type { Message } from '../../src/core/message.js';
import { isSummary } from '../../src/core/node.js';
import type { Node } from '../../src/core/node.js';
import type { Call, Ledger, Summary } from '../../src/core/ports.js';
import { render, viewMessages } from '../../src/core/render.js';
import type { Reduction } from '../../src/core/request/reduction.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { openSqliteLedger } from '../../src/ledger/sqlite.js';

/** What the ledger in a data folder holds, read through a connection of its own. */
export async function lookIntoLedger<T>(folder: string, look: (ledger: Ledger) => Promise<T>): Promise<T> {
  const file = join(folder, 'spillway.db');
  const ledger = await openSqliteLedger({ file, durability: 'normal', busyTimeoutMs: 2_000, clock: Date.now });
  try {
    return await look(ledger);
  } finally {
    await ledger.close();
  }
}

/** The chain's messages of a call as it was sent, rendered again from its manifest and the store alone (SPEC 4.6). */
export async function replay(ledger: Ledger, nodes: readonly Node[], call: Call): Promise<readonly Message[]> {
  const { manifest, conversation } = call;
  const key = { tenant: 'local', id: conversation };
  const omitted = new Set(manifest.omitted);
  const to = nodes.findIndex((node) => node.id === manifest.head) + 1;
  const spine = nodes
    .slice(0, to)
    .map((node) => ({ id: node.id, message: readWire(JSON.parse(node.content)), command: omitted.has(node.id) }));
  const stored = manifest.reduction === null ? null : await ledger.instruction(key, manifest.reduction);
  const reduction = stored === null ? undefined : (JSON.parse(stored.content) as Reduction);
  const summary = manifest.summary === null ? null : summaryOf(await ledger.node(key, manifest.summary));
  return viewMessages(spine, render(spine, summary, reduction), chatCompletions);
}

/** A wire message that has to be readable. */
export function readWire(source: unknown): Message {
  const message = chatCompletions.readMessage(source);
  if (message === null) throw new Error('unreadable');
  return message;
}

function summaryOf(node: Node | null): Summary | null {
  if (node === null || !isSummary(node)) return null;
  const covered = node.metadata.covers_ids;
  const { id, content, tokens, tokenizer } = node;
  return { id, first: covered[0] ?? '', last: covered.at(-1) ?? '', count: covered.length, content, tokens, tokenizer };
}
