import { isSummary, type Node } from '../core/node.js';
import type { Call, Conversation, ConversationEntry, Instruction, TenantUsage } from '../core/ports.js';
import type { CompactionReport } from '../proxy/compactor.js';
import type { ModelKnowledge } from '../proxy/model-windows.js';

/** Everything the API answers passes through here: names become snake_case, times stay milliseconds since the epoch. */
export function conversationJson(conversation: Conversation) {
  return {
    id: conversation.id,
    tenant: conversation.tenant,
    dialect: conversation.dialect,
    canonical_version: conversation.canonicalVersion,
    name: conversation.name,
    session: conversation.session,
    head: conversation.head,
    active_summary: conversation.activeSummary,
    created_at: conversation.createdAt,
    used_at: conversation.usedAt,
  };
}

export function conversationEntryJson(entry: ConversationEntry) {
  const { nodes, calls, summaries, bytes } = entry;
  return { ...conversationJson(entry), nodes, calls, summaries, bytes };
}

/** `content` is the wire message; the text of a summary, or of what is no JSON, is a string. */
export function nodeJson(node: Node) {
  return {
    id: node.id,
    conversation: node.conversation,
    predecessor: node.predecessor,
    caller: node.caller,
    seq: node.seq,
    role: node.role,
    name: node.name,
    content: isSummary(node) ? node.content : parsedOrText(node.content),
    metadata: node.metadata,
    tokens: node.tokens,
    tokenizer: node.tokenizer,
    created_at: node.createdAt,
    deleted_at: node.deletedAt,
  };
}

/** What a tenant keeps: conversations, deleted ones included, and the bytes of their content. */
export function tenantJson({ tenant, conversations, bytes }: TenantUsage) {
  return { tenant, conversations, bytes };
}

/** A leading system or developer message by the digest that manifests name it with; `content` is the wire message. */
export function instructionJson({ digest, content }: Instruction) {
  return { digest, content: parsedOrText(content) };
}

/** `reads`: ids of every node whose content entered the prompt (SPEC 2.5). */
export function callJson(call: Call, reads: readonly string[]) {
  return {
    id: call.id,
    conversation: call.conversation,
    head: call.manifest.head,
    model: call.model,
    upstream: call.upstream,
    action: call.action,
    reads,
    manifest: call.manifest,
    replies: call.replies,
    outcome: call.outcome,
    status: call.status,
    stop_reason: call.stopReason,
    overflow: call.overflow,
    estimated_tokens: call.estimatedTokens,
    usage: call.usage && {
      input_tokens: call.usage.inputTokens,
      output_tokens: call.usage.outputTokens,
      cached_tokens: call.usage.cachedTokens,
      reasoning_tokens: call.usage.reasoningTokens,
    },
    body_digest: call.bodyDigest,
    started_at: call.startedAt,
    overhead_ms: call.overheadMs,
    duration_ms: call.durationMs,
  };
}

/** SPEC 5.10. Token counts are local estimates, null where none was made. */
export function reportJson(report: CompactionReport) {
  return {
    outcome: report.outcome,
    reason: report.reason,
    covered_count: report.coveredCount,
    tokens_before: report.tokensBefore,
    tokens_after: report.tokensAfter,
    calls: report.calls,
    duration_ms: report.durationMs,
    summary: report.summary?.id ?? null,
  };
}

/** What is believed of a model's window and why: the source, and what each of them says (SPEC 6.5). */
export function modelJson({ believed, opinions, learned, discovered, ...model }: ModelKnowledge) {
  return {
    id: model.id,
    tenant: model.tenant,
    upstream: model.upstream,
    model: model.model,
    window: believed.tokens,
    source: believed.source,
    max_output_tokens: model.outputTokens,
    configured: opinions.configured,
    learned: learned && {
      tokens: learned.tokens,
      source: learned.source,
      rule: learned.rule,
      learned_at: learned.learnedAt,
      expires_at: learned.expiresAt,
    },
    discovered: discovered && {
      tokens: discovered.tokens,
      discovered_at: discovered.discoveredAt,
      expires_at: discovered.expiresAt,
    },
    catalogue: opinions.catalogue,
  };
}

function parsedOrText(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return content;
  }
}
