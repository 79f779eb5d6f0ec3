import { nodeId } from '../core/canonical.js';
import { messageTokens } from '../core/estimate.js';
import type { Message } from '../core/message.js';
import { ROOT } from '../core/node.js';
import type { NewNode } from '../core/node.js';
import type { Hash, TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';

/**
 * Builds the nodes of a chain that a store lacks, see `OpenTurn.node`. They are counted when somebody has to know, and not while a
 * store waits. `spawner` is the node that spawned this branch: caller of the first node that is new (SPEC 2.2), or null.
 */
export function chainNodeBuilder(spine: readonly SpineNode[], spawner: string | null): (index: number) => NewNode {
  let first = true;
  const callerOf = createCallerLookup(spine);
  return (index) => {
    const node = spine[index];
    if (node === undefined) throw new RangeError(`no node at ${index}`);
    const caller = callerOf(index) ?? (first ? spawner : null);
    first = false;
    return newNode(node, spine[index - 1]?.id ?? ROOT, caller, null);
  };
}

/** The nodes of a reply: choices beside each other behind `head`, or the items of one reply, one behind the other. */
export function replyNodes(
  hash: Hash,
  head: string,
  messages: readonly Message[],
  options: { readonly follows: boolean; readonly command: boolean; readonly counter: TokenCounter | null },
): readonly NewNode[] {
  let predecessor = head;
  return messages.map((message) => {
    const node: SpineNode = { id: nodeId(hash, predecessor, message), message, command: options.command };
    const built = newNode(node, predecessor, null, options.counter);
    if (options.follows) predecessor = node.id;
    return built;
  });
}

/** The node that a reply ends with: of choices beside each other, the first. */
export function endOfReply(replies: readonly NewNode[], follows: boolean): string | null {
  return (follows ? replies.at(-1) : replies[0])?.id ?? null;
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
