import type { Clock, Directory, Ledger, SharedCache } from '../core/ports.js';
import { RedisCache } from './redis-cache.js';
import type { RedisConnection } from './redis-connection.js';
import { RedisConversations } from './redis-conversations.js';
import { RedisDirectory } from './redis-directory.js';
import type { RedisKeys } from './redis-keys.js';
import { RedisReads } from './redis-reads.js';
import { RedisTurns } from './redis-turns.js';
import { RedisUpkeep } from './redis-upkeep.js';

export interface RedisLedgerOptions {
  readonly connection: RedisConnection;
  readonly keys: RedisKeys;
  readonly clock: Clock;
  /** How long after its last use a conversation expires; null keeps it for ever. */
  readonly retentionMs: number | null;
}

/**
 * The ports on one connection, each method where its kind is. What a turn costs Redis grows with its new messages and with log2
 * of its history.
 */
export function redisLedger(options: RedisLedgerOptions): Ledger & Directory & SharedCache {
  const conversations = new RedisConversations({
    ...options,
    onState: (conversation, state) => directory.note(conversation, state),
  });
  const reads = new RedisReads(conversations);
  const directory = new RedisDirectory({ ...options, entry: (id) => reads.entry(id, null) });
  const turns = new RedisTurns(conversations);
  const upkeep = new RedisUpkeep({
    conversations,
    onErased: (conversation, nodes) => directory.forget(conversation, nodes),
  });
  const cache = new RedisCache(conversations);
  return {
    openTurn: (turn) => turns.openTurn(turn),
    closeTurn: (turn) => turns.closeTurn(turn),
    commitSummary: (commit) => turns.commitSummary(commit),
    moveHead: (key, to, expected) => turns.moveHead(key, to, expected),
    setMark: (key, mark) => turns.setMark(key, mark),
    acquireLease: (key, chain, durationMs) => turns.acquireLease(key, chain, durationMs),
    renewLease: (key, lease, durationMs) => turns.renewLease(key, lease, durationMs),
    releaseLease: (key, lease) => turns.releaseLease(key, lease),

    conversation: (id, tenant) => reads.conversation(id, tenant),
    spine: (key, head, policy) => reads.spine(key, head, policy),
    nodes: (key, afterSeq, limit) => reads.nodes(key, afterSeq, limit),
    node: (key, id) => reads.node(key, id),
    call: (key, id) => reads.call(key, id),
    calls: (key, limit) => reads.calls(key, limit),
    callsOfReply: (key, reply) => reads.callsOfReply(key, reply),
    instruction: (key, digest) => reads.instruction(key, digest),

    deleteBranch: (key, from, expected) => upkeep.deleteBranch(key, from, expected),
    restoreBranch: (key, node) => upkeep.restoreBranch(key, node),
    eraseBranch: (key, from, expected) => upkeep.eraseBranch(key, from, expected),
    deleteConversation: (key) => upkeep.deleteConversation(key),
    restoreConversation: (key) => upkeep.restoreConversation(key),
    eraseConversation: (key, unusedSince) => upkeep.eraseConversation(key, unusedSince),
    exportPage: (key, next) => upkeep.exportPage(key, next),
    importPage: (page) => upkeep.importPage(page),

    list: (tenant, limit, before) => directory.list(tenant, limit, before),
    oldest: (tenant, limit) => directory.oldest(tenant, limit),
    tenants: () => directory.tenants(),
    refer: (tenant, references) => directory.refer(tenant, references),
    resolve: (tenant, ids) => directory.resolve(tenant, ids),
    learnedWindows: (tenant, limit) => directory.learnedWindows(tenant, limit),
    learnWindow: (window) => directory.learnWindow(window),
    widenWindow: (key, tokens) => directory.widenWindow(key, tokens),
    forgetWindow: (key) => directory.forgetWindow(key),
    forgetWindows: (tenant) => directory.forgetWindows(tenant),

    get: (conversation, field) => cache.get(conversation, field),
    set: (conversation, field, value, durationMs) => cache.set(conversation, field, value, durationMs),
    delete: (conversation, field) => cache.delete(conversation, field),

    async close() {
      await directory.settled();
      options.connection.close();
    },
  };
}
