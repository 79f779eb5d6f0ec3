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
  return (index) => {
    const node = input.spine[index];
    if (node === undefined) throw new RangeError(`no node at ${index}`);
    const caller = callerOf(input.spine, index) ?? (first ? input.spawner : null);
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

/** The assistant node whose call a tool result answers: the latest one before it that made such a call. */
function callerOf(spine: readonly SpineNode[], index: number): string | null {
  const callId = spine[index]?.message.results[0]?.callId;
  if (callId === undefined) return null;
  for (let at = index - 1; at >= 0; at--) {
    const node = spine[at];
    if (node?.message.calls.some((call) => call.id === callId) === true) return node.id;
  }
  return null;
}
