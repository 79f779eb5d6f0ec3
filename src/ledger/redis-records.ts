import { z } from 'zod';
import { isCommand, isSummary, type NewNode, type Node } from '../core/node.js';
import type { Call, ConversationEntry, Instruction, Mark, Match, NewConversation, Summary } from '../core/ports.js';
import { matchOfCall } from './match-of-call.js';
import { keyPart } from './redis-keys.js';
import { groupsOf, integerAt, textAt, textsAt, unexpected } from './redis-reply.js';
import type { Argument } from './redis-script.js';
import { readCall, readMetadata } from './stored-json.js';
import { fromStoredText, toStoredText } from './stored-text.js';
import { utf8Length } from './utf8-length.js';

/*
 * What is stored, as the scripts write and give it. Records are text that no script looks into, but for numbers before the
 * first space and the first line of a call.
 */

const fixedSchema = z.strictObject({
  dialect: z.string(),
  canonicalVersion: z.number(),
  name: z.string().nullable(),
  session: z.string().nullable(),
});

const headerSchema = z.strictObject({
  predecessor: z.string(),
  caller: z.string().nullable(),
  role: z.enum(['user', 'llm', 'tool', 'system']),
  name: z.string().nullable(),
  createdAt: z.number(),
  metadata: z.string(),
});

const markSchema = z.strictObject({
  kind: z.enum(['latched', 'overflowed']),
  head: z.string(),
  tokens: z.number(),
  scope: z.string(),
});

/** What never changes of a conversation, beside its tenant and when it began. */
export function fixedOf({ dialect, canonicalVersion, name, session }: NewConversation): string {
  return JSON.stringify({ dialect, canonicalVersion, name, session });
}

/** From the fields as a flat list of names and values; null where there are none. */
export function entryOf(id: string, flat: readonly unknown[]): ConversationEntry | null {
  if (flat.length === 0) return null;
  const fields = new Map(groupsOf(flat, 2).map((pair) => [textAt(pair, 0), textAt(pair, 1)]));
  const number = (name: string): number => integerAt([fields.get(name) ?? '0'], 0);
  const tenant = fields.get('tenant');
  const head = fields.get('head');
  if (tenant === undefined || head === undefined) throw unexpected();
  return {
    tenant,
    id,
    ...parsed(fixedSchema, fields.get('fixed') ?? ''),
    head,
    activeSummary: fields.get('active') ?? null,
    createdAt: number('createdAt'),
    usedAt: number('usedAt'),
    deletedAt: fields.has('deletedAt') ? number('deletedAt') : null,
    nodes: number('nodes'),
    calls: number('calls'),
    summaries: number('summaries'),
    bytes: number('bytes'),
  };
}

/** The values of a node for a script. */
export function nodeValues(node: NewNode, createdAt: number): readonly Argument[] {
  const { predecessor, caller, role, name } = node;
  const header = { predecessor, caller, role, name, createdAt, metadata: JSON.stringify(node.metadata) };
  const bytes = utf8Length(node.content);
  return [
    node.id,
    predecessor,
    isCommand(node) ? '1' : '',
    node.tokens === null ? '' : `${node.tokens} ${node.tokenizer ?? ''}`,
    bytes,
    `${bytes} ${JSON.stringify(header)}\n${toStoredText(node.content)}`,
  ];
}

/** From a flat list of id, record, count and tombstone. */
export function nodesOf(conversation: string, flat: readonly unknown[]): readonly Node[] {
  return groupsOf(flat, 4).map((group) => {
    const record = recordOf(textAt(group, 1));
    const deleted = textAt(group, 3);
    const { metadata, ...header } = record.header;
    return {
      id: textAt(group, 0),
      conversation,
      seq: record.seq,
      ...header,
      content: record.content,
      metadata: readMetadata(metadata),
      ...countOf(textAt(group, 2)),
      deletedAt: deleted === '' ? null : integerAt([deleted], 0),
    };
  });
}

/** From its id, coverage, record and count, and the first node of the spine that it stands on; null where there is none. */
export function summaryOf(found: readonly unknown[], first: string, last: string): Summary | null {
  const id = textAt(found, 0);
  if (id === '') return null;
  const { content } = recordOf(textAt(found, 2));
  return { id, first, last, count: integerAt(found, 1), content, ...countOf(textAt(found, 3)) };
}

function recordOf(record: string) {
  const line = record.indexOf('\n');
  const [seq = '', , ...rest] = record.slice(0, line).split(' ');
  return {
    seq: integerAt([seq], 0),
    header: parsed(headerSchema, rest.join(' ')),
    content: fromStoredText(record.slice(line + 1)),
  };
}

function countOf(count: string): { readonly tokens: number | null; readonly tokenizer: string | null } {
  if (count === '') return { tokens: null, tokenizer: null };
  const space = count.indexOf(' ');
  return { tokens: integerAt([count.slice(0, space)], 0), tokenizer: count.slice(space + 1) };
}

/** The values of a call for a script; its first line says what erasing it needs to know. */
export function callValues(call: Call): readonly Argument[] {
  const { head, instructions, reduction } = call.manifest;
  const match = matchOfCall(call);
  const model = match === null ? null : keyPart(call.model);
  const texts = reduction === null ? instructions : [...instructions, reduction];
  const about = JSON.stringify({ head, texts, ...(model === null ? {} : { model }) });
  return [
    call.id,
    head,
    model ?? '',
    match === null ? '' : `${match.estimatedTokens} ${match.measuredTokens}`,
    `${about}\n${JSON.stringify(call)}`,
  ];
}

export function callOf(record: string): Call {
  return readCall(record.slice(record.indexOf('\n') + 1));
}

export function matchOf(written: string): Match | null {
  if (written === '') return null;
  const [estimatedTokens = NaN, measuredTokens = NaN] = written.split(' ').map(Number);
  if (Number.isNaN(estimatedTokens + measuredTokens)) throw unexpected();
  return { estimatedTokens, measuredTokens };
}

/** The values of a text for a script. */
export function textValues({ digest, content }: Instruction): readonly Argument[] {
  const bytes = utf8Length(content);
  return [digest, bytes, `${bytes} ${toStoredText(content)}`];
}

export function instructionOf(digest: string, stored: string): Instruction {
  return { digest, content: fromStoredText(stored.slice(stored.indexOf(' ') + 1)) };
}

/** The values of a mark for a script. */
export function markValues({ kind, head, tokens, scope }: Mark): readonly Argument[] {
  return [kind, head, JSON.stringify({ kind, head, tokens, scope })];
}

export function marksOf(reply: readonly unknown[], index: number): readonly Mark[] {
  return textsAt(reply, index).map(markOf);
}

export function markOf(json: string): Mark {
  return parsed(markSchema, json);
}

/** What an import's script asks of a node beside its values: seq, tombstone, and what a summary covers. */
export function importedNodeValues(node: Node): readonly Argument[] {
  const covers = isSummary(node) ? node.metadata.covers_ids : [];
  return [
    ...nodeValues(node, node.createdAt),
    node.seq,
    node.deletedAt ?? '',
    covers.length,
    covers[0] ?? '',
    covers.at(-1) ?? '',
    covers.at(-2) ?? 'ROOT',
  ];
}

function parsed<T>(schema: z.ZodType<T>, json: string): T {
  try {
    return schema.parse(JSON.parse(json));
  } catch {
    throw unexpected();
  }
}
