import { ROOT, type NewNode } from '../core/node.js';
import type {
  CloseTurn,
  CommitOutcome,
  CommitSummary,
  ConversationKey,
  Lease,
  Mark,
  OpenedTurn,
  OpenTurn,
} from '../core/ports.js';
import {
  checkChainNode,
  checkCloseTurn,
  checkCommitSummary,
  checkLease,
  checkMark,
  checkOpenTurn,
  endOfReplies,
  headOf,
  invalid,
} from './check-writes.js';
import { packedChain } from './redis-chain.js';
import type { RedisConversations } from './redis-conversations.js';
import { keyPart } from './redis-keys.js';
import {
  callValues,
  fixedOf,
  markValues,
  marksOf,
  matchOf,
  nodeValues,
  summaryOf,
  textValues,
} from './redis-records.js';
import { groupsOf, integerAt, listAt, textAt, textsAt, unexpected } from './redis-reply.js';
import type { Argument } from './redis-script.js';
import * as scripts from './redis-turn-scripts.js';

/** What a script of a turn found missing may be gone again when it is asked for; so often is too often. */
const MOST_ATTEMPTS = 5;

/** The writes of turns and compactions, each one atomic script. */
export class RedisTurns {
  readonly #conversations: RedisConversations;

  constructor(conversations: RedisConversations) {
    this.#conversations = conversations;
  }

  /** One round trip where everything is there, else two: what is missing is only known then. */
  async openTurn(turn: OpenTurn): Promise<OpenedTurn> {
    checkOpenTurn(turn);
    const { conversation, chain } = turn;
    const now = this.#conversations.now();
    const fields = {
      ...packedChain(chain),
      now,
      operation: this.#conversations.operation(),
      createdAt: now,
      fixed: fixedOf(conversation),
      policy: turn.policy,
      expectedHead: turn.expectedHead,
      advanceHead: flag(turn.advanceHead),
      model: keyPart(turn.model),
      tokenizer: turn.tokenizer,
    };
    const texts = new Map(turn.instructions.toReversed().map((text) => [text.digest, text]));
    const built = new Map<number, NewNode>();
    const missing = new Set<string>();
    let from = chain.length;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      const brought = [...missing].flatMap((digest) => textValues(texts.get(digest) ?? unknownText()));
      const nodes = chain.slice(from).flatMap((_, index) => {
        const node = built.get(from + index) ?? buildNode(turn, from + index);
        built.set(from + index, node);
        return nodeValues(node, now);
      });
      const digests = [...texts.keys()];
      const counts = { digests: digests.length, texts: missing.size, from: from + 1 };
      const values = [...digests, ...brought, ...nodes];
      const reply = await this.#conversations.write(conversation, scripts.openTurn, { ...fields, ...counts }, values);
      if (reply[0] === 'opened') return openedOf(chain, reply);
      const known = integerAt(reply, 1);
      if (attempt === 0 && new Set(chain.slice(known)).size < chain.length - known) {
        throw invalid('chain', 'is not one spine');
      }
      from = Math.min(from, known);
      for (const digest of textsAt(reply, 2)) missing.add(digest);
    }
    throw unexpected();
  }

  async closeTurn(turn: CloseTurn): Promise<{ readonly head: string }> {
    checkCloseTurn(turn);
    const { conversation, call, replies, reduction, marks, counts } = turn;
    const now = this.#conversations.now();
    const isComplete = call === null || call.outcome === 'complete';
    const [reductionDigest, reductionBytes, reductionText] = reduction === null ? [] : textValues(reduction);
    const fields = {
      now,
      head: headOf(turn),
      headTo: turn.advanceHead && isComplete && replies.length > 0 ? endOfReplies(replies) : null,
      call: call?.id ?? null,
      replies: replies.length,
      marks: marks.length,
      tokenizer: turn.tokenizer ?? '',
      reduction: reductionDigest ?? null,
      reductionBytes: reductionBytes ?? null,
      reductionText: reductionText ?? null,
    };
    const values: Argument[] = [
      ...replies.flatMap((reply) => nodeValues(reply, now)),
      ...(call === null ? [] : callValues(call)),
      ...marks.flatMap(markValues),
    ];
    if (turn.tokenizer !== null) for (const [id, tokens] of counts) values.push(id, tokens);
    const reply = await this.#conversations.write(conversation, scripts.closeTurn, fields, values);
    return { head: textAt(reply, 3) };
  }

  async commitSummary(commit: CommitSummary): Promise<CommitOutcome> {
    checkCommitSummary(commit);
    const { node, chain, lease } = commit;
    const covered = node.metadata.covers_ids;
    const fields = {
      ...packedChain(chain),
      operation: this.#conversations.operation(),
      policy: commit.policy,
      covered: covered.length,
      lastCovered: covered.at(-1) ?? ROOT,
      isStart: flag(covered.every((id, index) => id === chain[index])),
      expectedActive: commit.expectedActive ?? '',
      headMustDescend: flag(commit.headMustDescend),
      leaseHead: lease?.head ?? null,
      fence: lease?.fence ?? null,
    };
    const values = nodeValues(node, this.#conversations.now());
    const reply = await this.#conversations.write(commit.conversation, scripts.commitSummary, fields, values);
    return reply[0] === 'committed' ? { outcome: 'committed' } : { outcome: 'stale', reason: textAt(reply, 1) };
  }

  async moveHead(conversation: ConversationKey, to: string, expected: string | null): Promise<void> {
    const operation = this.#conversations.operation();
    await this.#conversations.write(conversation, scripts.moveHead, { to, expected, operation });
  }

  async setMark(conversation: ConversationKey, mark: Mark): Promise<void> {
    checkMark(mark);
    await this.#conversations.write(conversation, scripts.setMark, {}, markValues(mark));
  }

  async acquireLease(
    conversation: ConversationKey,
    chain: readonly string[],
    durationMs: number,
  ): Promise<Lease | null> {
    checkLease(chain, durationMs);
    const now = this.#conversations.now();
    const operation = this.#conversations.operation();
    const fields = { ...packedChain(chain), now, endsAt: now + durationMs, operation };
    const reply = await this.#conversations.write(conversation, scripts.acquireLease, fields);
    return reply[0] === 'given' ? { head: chain.at(-1) ?? ROOT, fence: integerAt(reply, 1) } : null;
  }

  async renewLease(conversation: ConversationKey, { head, fence }: Lease, durationMs: number): Promise<boolean> {
    checkLease([head], durationMs);
    const fields = { head, fence, endsAt: this.#conversations.now() + durationMs };
    return (await this.#conversations.write(conversation, scripts.changeLease, fields))[0] === 'held';
  }

  async releaseLease(conversation: ConversationKey, { head, fence }: Lease): Promise<void> {
    await this.#conversations.write(conversation, scripts.changeLease, { head, fence });
  }
}

function buildNode(turn: OpenTurn, index: number): NewNode {
  const node = turn.node(index);
  checkChainNode(node, turn.chain[index] ?? '', turn.chain[index - 1] ?? ROOT, 'chain');
  return node;
}

function openedOf(chain: readonly string[], reply: readonly unknown[]): OpenedTurn {
  const active = listAt(reply, 5);
  const counts = groupsOf(listAt(reply, 7), 2);
  return {
    head: textAt(reply, 3),
    known: integerAt(reply, 4),
    active: summaryOf(active, chain[0] ?? ROOT, chain[integerAt(active, 1) - 1] ?? ROOT),
    commands: textsAt(reply, 6),
    counts: new Map(counts.map((count) => [chain[integerAt(count, 0) - 1] ?? ROOT, integerAt(count, 1)])),
    match: matchOf(textAt(reply, 8)),
    marks: marksOf(reply, 9),
  };
}

function flag(value: boolean): string | null {
  return value ? '1' : null;
}

function unknownText(): never {
  throw unexpected();
}
