import { Hono } from 'hono';
import { z } from 'zod';
import { SpillwayError } from '../core/errors.js';
import { isSummary } from '../core/node.js';
import type { Call, Conversation, ConversationKey, Directory, Ledger, ListPosition, Summary } from '../core/ports.js';
import { readsOf } from '../core/render.js';
import type { CompactionReport } from '../proxy/compactor.js';
import type { Deletion } from '../proxy/deletion.js';
import { providerCredential, type AccessSettings } from './auth.js';
import type { Platform } from './platform.js';
import {
  callJson,
  conversationEntryJson,
  conversationJson,
  instructionJson,
  nodeJson,
  reportJson,
} from './serialise.js';
import { queryFlag, queryNumber, readJson, validate } from './validate.js';

export interface CompactRequest {
  /** What the person wants kept in mind; null for nothing. */
  readonly instructions: string | null;
  /** Null: HEAD. */
  readonly head: string | null;
  /** The request's own headers that are a provider's credential, perhaps none. */
  readonly credential: Readonly<Record<string, string>>;
}

export interface ConversationsDeps<Bindings extends object> {
  readonly ledger: Pick<
    Ledger,
    | 'conversation'
    | 'nodes'
    | 'node'
    | 'call'
    | 'instruction'
    | 'spine'
    | 'moveHead'
    | 'restoreConversation'
    | 'restoreBranch'
  >;
  readonly directory: Pick<Directory, 'list'>;
  readonly deletion: Pick<Deletion, 'removeConversation' | 'removeBranch'>;
  /** Rejects with `no_credential`, `node_not_found`; every other end is a report (SPEC 5.10). */
  readonly compact: (conversation: Conversation, request: CompactRequest) => Promise<CompactionReport>;
  readonly platform: Platform<Bindings>;
  readonly access: AccessSettings;
}

const listQuery = z.strictObject({
  limit: queryNumber(1, 200).prefault('50'),
  before: z
    .string()
    .regex(/^\d{1,15}_./, 'must be a next_before of an earlier page')
    .transform(positionOf)
    .optional(),
});
const nodesQuery = z.strictObject({
  limit: queryNumber(1, 1000).prefault('200'),
  after: queryNumber(0, 2 ** 53 - 1).prefault('0'),
});
const noQuery = z.strictObject({});
const nodeId = z.string().min(1).max(200);
const removalQuery = z.strictObject({ erase: queryFlag });
const branchQuery = z.strictObject({ erase: queryFlag, expected_head: nodeId.optional() });
const headBody = z.strictObject({ to: nodeId, expected_head: nodeId.nullish() });
const compactBody = z.strictObject({ instructions: z.string().max(10_000).nullish(), head: nodeId.nullish() });

/** The resources under `/conversations`, for the operator: every tenant's (SPEC 8.6). */
export function conversations<Bindings extends object>(
  deps: ConversationsDeps<Bindings>,
): Hono<{ Bindings: Bindings }> {
  const { ledger, directory, deletion, compact, platform, access } = deps;
  const app = new Hono<{ Bindings: Bindings }>();

  async function findDeletedToo(id: string): Promise<Conversation> {
    const found = await ledger.conversation(id, null);
    if (found === null) throw new SpillwayError('conversation_not_found', 'There is no such conversation.', 'id');
    return found;
  }

  async function find(id: string): Promise<Conversation> {
    const found = await findDeletedToo(id);
    if (found.deletedAt === null) return found;
    throw new SpillwayError('conversation_not_found', 'This conversation was deleted; it can be restored.', 'id');
  }

  app.get('/', async (c) => {
    const { limit, before } = validate(listQuery, c.req.query());
    // One more than asked tells whether there is another page.
    const entries = await directory.list(null, limit + 1, before ?? null);
    const page = entries.slice(0, limit);
    const last = entries.length > limit ? page.at(-1) : undefined;
    return c.json({
      data: page.map(conversationEntryJson),
      next_before: last === undefined ? null : `${last.usedAt}_${last.id}`,
    });
  });

  app.get('/:id', async (c) => {
    validate(noQuery, c.req.query());
    return c.json(conversationJson(await find(c.req.param('id'))));
  });

  app.delete('/:id', async (c) => {
    const { erase } = validate(removalQuery, c.req.query());
    const conversation = await (erase ? findDeletedToo : find)(c.req.param('id'));
    await deletion.removeConversation(conversation, erase);
    return c.body(null, 204);
  });

  app.post('/:id/restore', async (c) => {
    validate(noQuery, c.req.query());
    const conversation = await findDeletedToo(c.req.param('id'));
    await ledger.restoreConversation(conversation);
    return c.json(conversationJson(await find(conversation.id)));
  });

  app.delete('/:id/branches/:node', async (c) => {
    const { erase, expected_head: expected } = validate(branchQuery, c.req.query());
    const conversation = await find(c.req.param('id'));
    const removal = { from: c.req.param('node'), erase, expectedHead: expected ?? null };
    return c.json(await deletion.removeBranch(conversation, removal));
  });

  app.post('/:id/branches/:node/restore', async (c) => {
    validate(noQuery, c.req.query());
    return c.json(await ledger.restoreBranch(await find(c.req.param('id')), c.req.param('node')));
  });

  app.get('/:id/nodes', async (c) => {
    const { limit, after } = validate(nodesQuery, c.req.query());
    const nodes = await ledger.nodes(await find(c.req.param('id')), after, limit + 1);
    const page = nodes.slice(0, limit);
    return c.json({ data: page.map(nodeJson), next_after: nodes.length > limit ? (page.at(-1)?.seq ?? null) : null });
  });

  app.get('/:id/calls/:call', async (c) => {
    validate(noQuery, c.req.query());
    const conversation = await find(c.req.param('id'));
    const call = await ledger.call(conversation, c.req.param('call'));
    if (call === null) throw new SpillwayError('not_found', 'There is no such call in this conversation.', 'call');
    return c.json(callJson(call, await readsOfCall(conversation, call)));
  });

  app.get('/:id/instructions/:digest', async (c) => {
    validate(noQuery, c.req.query());
    const instruction = await ledger.instruction(await find(c.req.param('id')), c.req.param('digest'));
    if (instruction === null)
      throw new SpillwayError('not_found', 'There is no such instruction in this conversation.', 'digest');
    return c.json(instructionJson(instruction));
  });

  app.post('/:id/head', async (c) => {
    const { to, expected_head: expected } = validate(
      headBody,
      await readJson(platform.incoming(c.req.raw, c.env).body),
    );
    const conversation = await find(c.req.param('id'));
    await ledger.moveHead(conversation, to, expected ?? null);
    return c.json(conversationJson(await find(conversation.id)));
  });

  app.post('/:id/compact', async (c) => {
    const caller = platform.incoming(c.req.raw, c.env);
    const body = validate(compactBody, await readJson(caller.body));
    const report = await compact(await find(c.req.param('id')), {
      instructions: body.instructions?.trim() || null,
      head: body.head ?? null,
      credential: await providerCredential(caller, access),
    });
    return c.json(reportJson(report));
  });

  async function readsOfCall(conversation: ConversationKey, call: Call): Promise<readonly string[]> {
    const { head, summary } = call.manifest;
    // The manifest says which summary was read: the policy of this look-up plays no part in it (SPEC 4.6).
    const { nodes } = await ledger.spine(conversation, head, 'spine');
    const chain = nodes.map((node) => node.id);
    return readsOf(chain, call.manifest, summary === null ? null : await findSummary(conversation, summary));
  }

  async function findSummary(conversation: ConversationKey, id: string): Promise<Summary | null> {
    const node = await ledger.node(conversation, id);
    if (node === null || !isSummary(node)) return null;
    const covered = node.metadata.covers_ids;
    const { content, tokens, tokenizer } = node;
    return {
      id,
      first: covered[0] ?? '',
      last: covered.at(-1) ?? '',
      count: covered.length,
      content,
      tokens,
      tokenizer,
    };
  }

  return app;
}

/** The inverse of how a page's end is written: time and id, since several may have been used at one time. */
function positionOf(written: string): ListPosition {
  const split = written.indexOf('_');
  return { usedAt: Number(written.slice(0, split)), id: written.slice(split + 1) };
}
