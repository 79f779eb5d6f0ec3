import type { Role } from './message.js';

/** The predecessor of a conversation's first chain node. */
export const ROOT = 'ROOT';

/** Name of a summary node; recognised by its stored id, never by its text (SPEC 3.1, 3.3). */
export const SUMMARY_NAME = 'context/summary';

/** First line of a summary node's content (SPEC 3.1). */
export const SUMMARY_MARKER = '[Previous conversation summary]';

/** What started a compaction (SPEC 5). */
export type Trigger = 'manual' | 'auto' | 'reactive';

export interface SummaryMetadata {
  readonly compaction: true;
  /** The covered chain nodes, in order: a contiguous segment of one spine, never a summary (SPEC 3.2). */
  readonly covers_ids: readonly string[];
  readonly covered_count: number;
  readonly tokens_before: number;
  readonly tokens_after: number;
  readonly model: string;
  readonly trigger: Trigger;
  readonly duration_ms: number;
}

/** A command of Spillway's own or the answer to one: a chain node that no model ever reads (SPEC 4.9). */
export interface CommandMetadata {
  readonly command: true;
}

export type NodeMetadata = SummaryMetadata | CommandMetadata | Readonly<Record<string, never>>;

/** What is written; the store adds `seq` and `createdAt` (SPEC 2.1). */
export interface NewNode {
  /** 32 characters of base64url for a chain node (SPEC 1.4), `summary_<unique>` for a summary. */
  readonly id: string;
  /** A node id or ROOT. */
  readonly predecessor: string;
  /** The assistant node that called this tool, or the node that spawned this branch; null otherwise (SPEC 2.2). */
  readonly caller: string | null;
  readonly role: Role;
  readonly name: string | null;
  /** The wire message as JSON; for a summary, its text with the marker line. */
  readonly content: string;
  readonly metadata: NodeMetadata;
  /** Tokens of the message as sent, by `tokenizer`; null until somebody had to count it. */
  readonly tokens: number | null;
  readonly tokenizer: string | null;
}

export interface Node extends NewNode {
  readonly conversation: string;
  /** Orders rows for people; no rule reads it (SPEC 2.1). */
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** When it was deleted; null while it was not. Every node behind a deleted one is deleted too (SPEC 2.6). */
  readonly deletedAt: number | null;
}

export function isSummary<N extends NewNode>(node: N): node is N & { readonly metadata: SummaryMetadata } {
  return 'compaction' in node.metadata;
}

export function isCommand(node: NewNode): boolean {
  return 'command' in node.metadata;
}
