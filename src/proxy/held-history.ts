import { SpillwayError } from '../core/errors.js';
import type { Node } from '../core/node.js';
import type { Conversation, Directory, Ledger, Reference, SummaryPolicy } from '../core/ports.js';
import type { ReadRequest } from '../dialects/dialect.js';

/** What of a request's history the upstream holds, as the ledger knows it (SPEC 1.7). */
export interface HeldHistory {
  readonly conversation: Conversation;
  /** The spine that the request continues, first node first; empty where it names single items alone. */
  readonly before: readonly Node[];
  /** The node that each reference of the request names, by its index in `ReadRequest.messages`. */
  readonly items: ReadonlyMap<number, Node>;
}

export interface HeldHistoryDeps {
  readonly ledger: Ledger;
  readonly directory: Pick<Directory, 'resolve'>;
}

/** Whether a request refers to history that it does not carry. */
export function refersToHistory(read: ReadRequest): boolean {
  return read.continues !== null || read.references.size > 0;
}

/**
 * Resolves what a request refers to. Null if the ledger does not hold all of it: then nothing can be rendered, and nothing is
 * substituted. Rejects with `store_unavailable`.
 */
export async function heldHistory(
  tenant: string,
  read: ReadRequest,
  policy: SummaryPolicy,
  deps: HeldHistoryDeps,
): Promise<HeldHistory | null> {
  const names = [...(read.continues === null ? [] : [read.continues]), ...read.references.values()];
  const found = await deps.directory.resolve(tenant, names);
  const references = names.flatMap((name) => found.get(name) ?? []);
  const last = references.at(-1);
  if (last === undefined || references.length < names.length) return null;
  if (references.some(({ conversation }) => conversation !== last.conversation)) return null;
  try {
    const key = { tenant, id: last.conversation };
    const start = read.continues === null ? undefined : found.get(read.continues);
    // Items of one history mostly lie on one spine, so one walk finds them all.
    const { conversation, nodes } = await deps.ledger.spine(key, (start ?? last).node, policy);
    if (conversation.deletedAt !== null) return null;
    const known = new Map(nodes.map((node) => [node.id, node]));
    const items = new Map<number, Node>();
    for (const [index, name] of read.references) {
      const node = await nodeOf(found.get(name), known, deps.ledger, key);
      if (node === null) return null;
      items.set(index, node);
    }
    return { conversation, before: start === undefined ? [] : nodes, items };
  } catch (error) {
    if (error instanceof SpillwayError && error.code.endsWith('_not_found')) return null;
    throw error;
  }
}

async function nodeOf(
  reference: Reference | undefined,
  known: ReadonlyMap<string, Node>,
  ledger: Ledger,
  key: { readonly tenant: string; readonly id: string },
): Promise<Node | null> {
  if (reference === undefined) return null;
  const node = known.get(reference.node) ?? (await ledger.node(key, reference.node));
  return node?.deletedAt === null ? node : null;
}
