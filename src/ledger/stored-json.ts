import { z } from 'zod';
import { SpillwayError } from '../core/errors.js';
import type { NodeMetadata } from '../core/node.js';
import type { Call } from '../core/ports.js';

export const metadataSchema = z.union([
  z.strictObject({
    compaction: z.literal(true),
    covers_ids: z.array(z.string()),
    covered_count: z.number(),
    tokens_before: z.number(),
    tokens_after: z.number(),
    model: z.string(),
    trigger: z.enum(['manual', 'auto', 'reactive']),
    duration_ms: z.number(),
  }),
  z.strictObject({ command: z.literal(true) }),
  z.strictObject({}),
]) satisfies z.ZodType<NodeMetadata>;

export const callSchema = z.strictObject({
  id: z.string(),
  conversation: z.string(),
  model: z.string(),
  upstream: z.string(),
  action: z.string(),
  manifest: z.strictObject({
    version: z.literal(1),
    head: z.string(),
    summary: z.string().nullable(),
    pinned: z.array(z.string()),
    omitted: z.array(z.string()),
    instructions: z.array(z.string()),
    reduction: z.string().nullable(),
  }),
  replies: z.array(z.string()),
  outcome: z.enum(['complete', 'cancelled', 'failed', 'unread']),
  status: z.number().nullable(),
  stopReason: z.string().nullable(),
  // Records of the first version have none.
  overflow: z.string().nullable().default(null),
  estimatedTokens: z.number().nullable(),
  usage: z
    .strictObject({
      inputTokens: z.number().nullable(),
      outputTokens: z.number().nullable(),
      cachedTokens: z.number().nullable(),
      reasoningTokens: z.number().nullable(),
    })
    .nullable(),
  bodyDigest: z.string(),
  startedAt: z.number(),
  overheadMs: z.number(),
  durationMs: z.number(),
}) satisfies z.ZodType<Call>;

/** A node's metadata as it was written; anything else in its place is a broken store. */
export function readMetadata(json: string): NodeMetadata {
  return read(metadataSchema, json, 'metadata of a node');
}

/** A call record as it was written; anything else in its place is a broken store. */
export function readCall(json: string): Call {
  return read(callSchema, json, 'call');
}

function read<T>(schema: z.ZodType<T>, json: string, what: string): T {
  try {
    return schema.parse(JSON.parse(json));
  } catch (error) {
    throw new SpillwayError('store_unavailable', `The store holds a ${what} that cannot be read.`, null, error);
  }
}
