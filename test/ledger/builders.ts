import { createHash } from 'node:crypto';
import { ROOT, SUMMARY_MARKER, SUMMARY_NAME, type NewNode, type SummaryMetadata } from '../../src/core/node.js';
import type { Call, CloseTurn, CommitSummary, NewConversation, OpenTurn } from '../../src/core/ports.js';

export const alice: NewConversation = {
  tenant: 'alice',
  id: 'c_alice',
  dialect: 'chat-completions',
  canonicalVersion: 1,
  name: 'planning',
  session: null,
};

/** A chain node whose id names its whole prefix; `!` starts a command, `>` a reply, `=` a tool result. */
export function nodeAfter(predecessor: string, text: string, changes: Partial<NewNode> = {}): NewNode {
  const roles = { '>': 'llm', '=': 'tool', '!': 'user' } as const;
  const mark = text.charAt(0);
  return {
    id: createHash('sha256').update(`${predecessor}\n${text}`).digest('base64url').slice(0, 32),
    predecessor,
    caller: null,
    role: mark === '>' || mark === '=' || mark === '!' ? roles[mark] : 'user',
    name: null,
    content: JSON.stringify({ content: text }),
    metadata: mark === '!' ? { command: true } : {},
    tokens: null,
    tokenizer: null,
    ...changes,
  };
}

/** The nodes of a spine, one for each word of `words`. */
export function spineOf(words: string | readonly string[], changes: Partial<NewNode> = {}): readonly NewNode[] {
  const nodes: NewNode[] = [];
  for (const word of typeof words === 'string' ? words.split(' ') : words) {
    nodes.push(nodeAfter(nodes.at(-1)?.id ?? ROOT, word, changes));
  }
  return nodes;
}

export function idsOf(words: string | readonly string[]): readonly string[] {
  return spineOf(words).map((node) => node.id);
}

/** The id of the last node of a spine. */
export function endOf(words: string | readonly string[]): string {
  return idsOf(words).at(-1) ?? ROOT;
}

export function openOf(nodes: readonly NewNode[], changes: Partial<OpenTurn> = {}): OpenTurn {
  return {
    conversation: alice,
    policy: 'spine',
    chain: nodes.map((node) => node.id),
    node: (index) => {
      const node = nodes[index];
      if (node === undefined) throw new RangeError(`no node ${index}`);
      return node;
    },
    instructions: [],
    advanceHead: true,
    expectedHead: null,
    model: 'gpt-test',
    tokenizer: 'o200k_base',
    ...changes,
  };
}

export function callOf(id: string, head: string, changes: Partial<Call> = {}): Call {
  return {
    id,
    conversation: alice.id,
    model: 'gpt-test',
    upstream: 'https://api.example.test/v1',
    action: 'none',
    manifest: { version: 1, head, summary: null, pinned: [], omitted: [], instructions: ['digest-1'], reduction: null },
    replies: [],
    outcome: 'complete',
    status: 200,
    stopReason: 'stop',
    overflow: null,
    estimatedTokens: null,
    usage: null,
    bodyDigest: 'digest-of-the-body',
    startedAt: 1_000,
    overheadMs: 0.5,
    durationMs: 12.25,
    ...changes,
  };
}

export function usageOf(inputTokens: number | null): Call['usage'] {
  return { inputTokens, outputTokens: 5, cachedTokens: null, reasoningTokens: null };
}

export function closeOf(call: Call | null, replies: readonly NewNode[], changes: Partial<CloseTurn> = {}): CloseTurn {
  return {
    conversation: alice,
    call: call === null ? null : { ...call, replies: replies.map((reply) => reply.id) },
    reduction: null,
    replies,
    advanceHead: true,
    counts: new Map(),
    tokenizer: null,
    marks: [],
    ...changes,
  };
}

/** A commit of a summary over the first `count` nodes of a chain. */
export function commitOf(
  id: string,
  chain: readonly string[],
  count: number,
  changes: Partial<CommitSummary> = {},
): CommitSummary {
  return {
    conversation: alice,
    policy: 'spine',
    node: summaryNode(id, chain.slice(0, count)),
    chain,
    expectedActive: null,
    headMustDescend: false,
    lease: null,
    ...changes,
  };
}

export function summaryNode(
  id: string,
  covered: readonly string[],
  changes: Partial<NewNode> = {},
): NewNode & { readonly metadata: SummaryMetadata } {
  return {
    id: `summary_${id}`,
    predecessor: ROOT,
    caller: null,
    role: 'llm',
    name: SUMMARY_NAME,
    content: `${SUMMARY_MARKER}\nwhat ${id} says`,
    tokens: 40,
    tokenizer: 'o200k_base',
    ...changes,
    metadata: {
      compaction: true,
      covers_ids: covered,
      covered_count: covered.length,
      tokens_before: 900,
      tokens_after: 90,
      model: 'gpt-test',
      trigger: 'auto',
      duration_ms: 7,
    },
  };
}
