import { ROOT, type Node } from '../core/node.js';
import type {
  Call,
  Conversation,
  ConversationEntry,
  ConversationKey,
  Instruction,
  Spine,
  SummaryPolicy,
} from '../core/ports.js';
import { checkLimit } from './check-writes.js';
import type { RedisConversations } from './redis-conversations.js';
import * as scripts from './redis-read-scripts.js';
import { callOf, entryOf, instructionOf, nodesOf, summaryOf } from './redis-records.js';
import { listAt, textsAt, unexpected } from './redis-reply.js';

/** Nodes asked for at once: as many as Redis gives without making others wait. */
const BATCH = 500;
const MOST_ATTEMPTS = 3;

/** What is read of a conversation, one round trip each; a spine takes two, whatever its length. */
export class RedisReads {
  readonly #conversations: RedisConversations;

  constructor(conversations: RedisConversations) {
    this.#conversations = conversations;
  }

  async entry(id: string, tenant: string | null): Promise<ConversationEntry | null> {
    return entryOf(id, listAt(await this.#conversations.run({ id, tenant }, scripts.readFields), 1));
  }

  async conversation(id: string, tenant: string | null): Promise<Conversation | null> {
    const entry = await this.entry(id, tenant);
    return entry === null ? null : conversationOf(entry);
  }

  async spine(key: ConversationKey, head: string | null, policy: SummaryPolicy): Promise<Spine> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      const reply = await this.#conversations.run(key, scripts.readSpine, { head, policy });
      const entry = entryOf(key.id, listAt(reply, 1));
      if (entry === null) throw unexpected();
      const ids = textsAt(reply, 2);
      const active = listAt(reply, 3);
      const nodes = await this.#nodesNamed(key, ids);
      // Nodes never change, but a branch may have been erased between the two.
      if (nodes.length < ids.length) continue;
      return {
        conversation: conversationOf(entry),
        nodes,
        active: summaryOf(active, ids[0] ?? ROOT, ids[Number(active[1]) - 1] ?? ROOT),
      };
    }
    throw unexpected();
  }

  async nodes(key: ConversationKey, after: number, limit: number): Promise<readonly Node[]> {
    checkLimit(limit);
    const reply = await this.#conversations.run(key, scripts.readNodesInOrder, { after, limit });
    return nodesOf(key.id, listAt(reply, 1));
  }

  async node(key: ConversationKey, id: string): Promise<Node | null> {
    return (await this.#nodesNamed(key, [id]))[0] ?? null;
  }

  async call(key: ConversationKey, id: string): Promise<Call | null> {
    const record = await this.#value(key, 'call', id);
    return record === null ? null : callOf(record);
  }

  async calls(key: ConversationKey, limit: number): Promise<readonly Call[]> {
    checkLimit(limit);
    const reply = await this.#conversations.run(key, scripts.readCalls, { limit });
    return textsAt(reply, 1).map(callOf).toReversed();
  }

  async callsOfReply(key: ConversationKey, reply: string): Promise<readonly Call[]> {
    return textsAt(await this.#conversations.run(key, scripts.readCalls, { reply }), 1).map(callOf);
  }

  async instruction(key: ConversationKey, digest: string): Promise<Instruction | null> {
    const stored = await this.#value(key, 'text', digest);
    return stored === null ? null : instructionOf(digest, stored);
  }

  /** All batches are sent at once, which is one round trip. */
  async #nodesNamed(key: ConversationKey, ids: readonly string[]): Promise<readonly Node[]> {
    const batches = Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, index) =>
      this.#conversations.run(key, scripts.readNodes, {}, ids.slice(index * BATCH, (index + 1) * BATCH)),
    );
    return (await Promise.all(batches)).flatMap((reply) => nodesOf(key.id, listAt(reply, 1)));
  }

  async #value(key: ConversationKey, of: 'call' | 'text', field: string): Promise<string | null> {
    return textsAt(await this.#conversations.run(key, scripts.readValue, { of, field }), 1)[0] ?? null;
  }
}

function conversationOf({ nodes, calls, summaries, bytes, ...conversation }: ConversationEntry): Conversation {
  return conversation;
}
