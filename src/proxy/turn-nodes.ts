import { nodeId } from '../core/canonical.js';
import { messageTokens } from '../core/estimate.js';
import type { Message } from '../core/message.js';
import { ROOT } from '../core/node.js';
import type { NewNode } from '../core/node.js';
import type { Hash, TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';

export interface ChainNodes {
  readonly spine: readonly SpineNode[];
  /** The node that spawned this branch: caller of the first node that is new (SPEC 2.2), or null. */
  readonly spawner: string | null;
  /** Counts as it goes; null while nothing has to be counted. */
  readonly counter: TokenCounter | null;
  /** Filled with the counts that were written along. */
  readonly written: Map<string, number>;
}

/** Builds the nodes of a chain that a store lacks, see `OpenTurn.node`. */
export function chainNodeBuilder(input: ChainNodes): (index: number) => NewNode {
  let first = true;
  const callerOf = createCallerLookup(input.spine);
  return (index) => {
    const node = input.spine[index];
    if (node === undefined) throw new RangeError(`no node at ${index}`);
    const caller = callerOf(index) ?? (first ? input.spawner : null);
    first = false;
    const built = newNode(node, input.spine[index - 1]?.id ?? ROOT, caller, input.counter);
    if (built.tokens !== null) input.written.set(node.id, built.tokens);
    return built;
  };
}

/** The node of a reply, one per choice; each follows the request's last node. */
export function replyNode(
  hash: Hash,
  predecessor: string,
  message: Message,
  options: { readonly command: boolean; readonly counter: TokenCounter | null },
): NewNode {
  const node: SpineNode = { id: nodeId(hash, predecessor, message), message, command: options.command };
  return newNode(node, predecessor, null, options.counter);
}

function newNode(node: SpineNode, predecessor: string, caller: string | null, counter: TokenCounter | null): NewNode {
  return {
    id: node.id,
    predecessor,
    caller,
    role: node.message.role,
    name: node.message.name,
    content: JSON.stringify(node.message.source),
    metadata: node.command ? { command: true } : {},
    tokens: counter === null ? null : messageTokens(node.message, counter),
    tokenizer: counter?.tokenizer ?? null,
  };
}

/**
 * The assistant node whose call a tool result answers: the latest one before it that made such a call. Asked in ascending
 * order, each node's calls are looked at once.
 */
function createCallerLookup(spine: readonly SpineNode[]): (index: number) => string | null {
  const callers = new Map<string, string>();
  let seen = 0;
  return (index) => {
    const callId = spine[index]?.message.results[0]?.callId;
    if (callId === undefined) return null;
    for (; seen < index; seen++) {
      const node = spine[seen];
      for (const call of node?.message.calls ?? []) if (node !== undefined) callers.set(call.id, node.id);
    }
    return callers.get(callId) ?? null;
  };
}
