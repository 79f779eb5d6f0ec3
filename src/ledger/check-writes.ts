import { SpillwayError } from '../core/errors.js';
import { isSummary, ROOT, SUMMARY_MARKER, SUMMARY_NAME, type NewNode } from '../core/node.js';
import type { CloseTurn, CommitSummary, ConversationKey, Mark, OpenTurn, Reference } from '../core/ports.js';
import type { ConversationRecord, ImportPage } from '../core/upkeep.js';
import type { WindowKey } from '../core/windows.js';

/*
 * What every driver refuses before it looks at its store: calls that no correct caller makes. All throw
 * SpillwayError('invalid_request') with the field at fault.
 */

export function checkOpenTurn(turn: OpenTurn): void {
  checkKey(turn.conversation);
  checkChain(turn.chain);
  for (const instruction of turn.instructions) requireText(instruction.digest, 'instructions');
}

/** A node built for a place in a chain; it must be the node that its place says. */
export function checkChainNode(node: NewNode, id: string, predecessor: string, field: string): void {
  if (node.id !== id) throw invalid(field, 'has an id other than the one announced');
  if (node.predecessor !== predecessor) throw invalid(field, 'does not follow the node before it');
  if (isSummary(node)) throw invalid(field, 'is a summary, which never stands in a chain');
  requireText(id, field);
  if (id === ROOT) throw invalid(field, 'is named ROOT');
  checkCount(node.tokens, node.tokenizer, field);
}

export function checkCloseTurn(turn: CloseTurn): void {
  checkKey(turn.conversation);
  if (turn.call !== null) {
    requireText(turn.call.id, 'call.id');
    if (turn.call.conversation !== turn.conversation.id) throw invalid('call.conversation', 'is another conversation');
    const ids = turn.replies.map((reply) => reply.id);
    if (ids.length !== turn.call.replies.length || ids.some((id, index) => id !== turn.call?.replies[index])) {
      throw invalid('call.replies', 'does not name the replies, in order');
    }
  }
  for (const [index, reply] of turn.replies.entries()) {
    // A choice beside the one before it, or an item behind it.
    const before = turn.replies[index - 1]?.id;
    const follows = reply.predecessor === before ? before : (headOf(turn) ?? '');
    checkChainNode(reply, reply.id, follows, 'replies');
  }
  for (const tokens of turn.counts.values()) checkCount(tokens, turn.tokenizer, 'counts');
  for (const mark of turn.marks) checkMark(mark);
}

/** The chain node that a turn's replies follow: its call's head, or what Spillway itself answered to; null without either. */
export function headOf(turn: CloseTurn): string | null {
  return turn.call?.manifest.head ?? turn.replies[0]?.predecessor ?? null;
}

/** The last of the replies that follow one another from the first: where a reply of several items ends. */
export function endOfReplies(replies: readonly NewNode[]): string {
  return replies.reduce((end, reply) => (reply.predecessor === end ? reply.id : end), replies[0]?.id ?? ROOT);
}

/** Whether the coverage is right is for the commit to find out; this is about the node's form (SPEC 3.1). */
export function checkCommitSummary(commit: CommitSummary): void {
  checkKey(commit.conversation);
  checkChain(commit.chain);
  checkSummaryNode(commit.node);
}

function checkSummaryNode(node: CommitSummary['node']): void {
  if (!node.id.startsWith('summary_')) throw invalid('node.id', 'does not begin with summary_');
  if (node.role !== 'llm') throw invalid('node.role', 'is not llm');
  if (node.name !== SUMMARY_NAME) throw invalid('node.name', `is not ${SUMMARY_NAME}`);
  if (!node.content.startsWith(`${SUMMARY_MARKER}\n`)) throw invalid('node.content', 'lacks the marker line');
  if (node.metadata.covers_ids.length === 0) throw invalid('node.metadata.covers_ids', 'is empty');
  if (node.metadata.covered_count !== node.metadata.covers_ids.length) {
    throw invalid('node.metadata.covered_count', 'is not the number of covered nodes');
  }
  // Coverage starts at the spine's first node, whose predecessor is ROOT (SPEC 3.1, 3.2).
  if (node.predecessor !== ROOT) throw invalid('node.predecessor', 'is not that of the first covered node');
  checkCount(node.tokens, node.tokenizer, 'node.tokens');
}

export function checkMark(mark: Mark): void {
  requireText(mark.head, 'mark.head');
  if (!isCount(mark.tokens)) throw invalid('mark.tokens', 'is not a count');
}

export function checkLease(chain: readonly string[], durationMs: number): void {
  checkChain(chain);
  if (!isCount(durationMs) || durationMs === 0) throw invalid('durationMs', 'is not a positive number of milliseconds');
}

export function checkReferences(tenant: string, references: readonly Reference[]): void {
  requireText(tenant, 'tenant');
  for (const { id, conversation, node } of references) {
    requireText(id, 'reference.id');
    requireText(conversation, 'reference.conversation');
    requireText(node, 'reference.node');
  }
}

/** The form of what is imported; whether each record stands on those before it is for the store to find out. */
export function checkImportPage({ conversation, records }: ImportPage): void {
  checkKey(conversation);
  for (const record of records) checkRecord(record, conversation.id);
}

function checkRecord(record: ConversationRecord, conversation: string): void {
  switch (record.type) {
    case 'instruction':
      return requireText(record.instruction.digest, 'records');
    case 'node': {
      const { node } = record;
      if (node.conversation !== conversation) throw invalid('records', 'has a node of another conversation');
      if (!isCount(node.seq) || node.seq === 0) throw invalid('records', 'has a node whose seq is no positive integer');
      return isSummary(node) ? checkSummaryNode(node) : checkChainNode(node, node.id, node.predecessor, 'records');
    }
    case 'call':
      requireText(record.call.id, 'records');
      if (record.call.conversation !== conversation) throw invalid('records', 'has a call of another conversation');
      return;
    case 'mark':
      checkMark(record.mark);
  }
}

export function checkWindow(key: WindowKey, tokens: number): void {
  requireText(key.tenant, 'window.tenant');
  requireText(key.upstream, 'window.upstream');
  requireText(key.model, 'window.model');
  if (!isCount(tokens)) throw invalid('window.tokens', 'is not a count');
}

export function checkLimit(limit: number): void {
  if (!Number.isSafeInteger(limit) || limit < 1) throw invalid('limit', 'is not a positive integer');
}

function checkKey(key: ConversationKey): void {
  requireText(key.id, 'conversation.id');
  requireText(key.tenant, 'conversation.tenant');
}

function checkChain(chain: readonly string[]): void {
  if (chain.length === 0) throw invalid('chain', 'is empty');
}

function checkCount(tokens: number | null, tokenizer: string | null, field: string): void {
  if (tokens === null) return;
  if (!isCount(tokens)) throw invalid(field, 'has a token count that is no count');
  if (tokenizer === null) throw invalid(field, 'has a token count without its tokenizer');
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function requireText(value: string, field: string): void {
  if (value === '') throw invalid(field, 'is empty');
}

/** An `invalid_request` about one field of a call to the ledger. */
export function invalid(field: string, problem: string): SpillwayError {
  return new SpillwayError('invalid_request', `"${field}" ${problem}.`, field);
}
