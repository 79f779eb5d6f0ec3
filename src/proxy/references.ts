import type { Message } from '../core/message.js';
import type { NewNode } from '../core/node.js';
import type { Reference } from '../core/ports.js';
import type { Reply } from '../dialects/dialect.js';

/**
 * Where the ids lead that a provider gave a reply and its items (SPEC 1.2). `recorded` are the messages of it that were recorded, in
 * order, and `nodes` theirs.
 */
export function referencesTo(
  conversation: string,
  reply: Reply | null,
  recorded: readonly Message[],
  nodes: readonly NewNode[],
): readonly Reference[] {
  const nodeOf = new Map(recorded.map((message, index) => [message, nodes[index]?.id]));
  return (reply?.references ?? []).flatMap(({ id, message }): readonly Reference[] => {
    const said = reply?.messages[message];
    const node = said === undefined ? undefined : nodeOf.get(said);
    return node === undefined ? [] : [{ id, conversation, node }];
  });
}
