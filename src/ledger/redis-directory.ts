import { z } from 'zod';
import type {
  Clock,
  ConversationEntry,
  ConversationKey,
  Directory,
  ListPosition,
  Reference,
  TenantUsage,
} from '../core/ports.js';
import type { LearnedWindow, WindowKey } from '../core/windows.js';
import { checkLimit, checkReferences, checkWindow } from './check-writes.js';
import type { RedisConnection } from './redis-connection.js';
import * as scripts from './redis-directory-scripts.js';
import { keyPart, type RedisKeys } from './redis-keys.js';
import { RedisLearnedWindows } from './redis-learned-windows.js';
import { RedisNotes } from './redis-notes.js';
import { integerAt, textsAt, unexpected } from './redis-reply.js';
import { runScript, type Argument, type Fields, type RedisScript } from './redis-script.js';

export interface RedisDirectoryOptions {
  readonly connection: RedisConnection;
  readonly keys: RedisKeys;
  readonly clock: Clock;
  readonly retentionMs: number | null;
  /** The conversation as it is now, whoever owns it. */
  entry(id: string): Promise<ConversationEntry | null>;
}

/** What a conversation's entry in the order of use says; null: it is no more. */
interface Note {
  readonly conversation: ConversationKey;
  readonly use: { readonly usedAt: number; readonly bytes: number } | null;
  /** Of one that stays, the nodes that are no more. */
  readonly erased: readonly string[];
}

/** Entries looked at together, at least. */
const BATCH = 20;
/** Sixteen digits and a colon. */
const ID_AT = 17;

const referenceSchema = z.strictObject({
  id: z.string(),
  conversation: z.string(),
  node: z.string(),
}) satisfies z.ZodType<Reference>;

/**
 * What crosses conversations, one slot for each tenant and a set of their names (SPEC 2.7). It holds the order of use and sizes
 * alone: every row of a list is read from its conversation, so that only the order may lag and what has expired vanishes.
 */
export class RedisDirectory implements Directory {
  readonly #options: RedisDirectoryOptions;
  readonly #windows: RedisLearnedWindows;
  readonly #notes: RedisNotes<Note>;

  constructor(options: RedisDirectoryOptions) {
    this.#options = options;
    this.#windows = new RedisLearnedWindows((...call) => this.#run(...call), options.clock);
    this.#notes = new RedisNotes((note) => this.#send(note));
  }

  /** Takes note of a use; never waits. */
  note(conversation: ConversationKey, use: { readonly usedAt: number; readonly bytes: number }): void {
    this.#notes.put(conversation.id, { conversation, use, erased: [] });
  }

  /** Takes note of what was erased: nodes, or with null the whole conversation; never waits. */
  forget(conversation: ConversationKey, nodes: readonly string[] | null): void {
    if (nodes === null) this.#notes.put(conversation.id, { conversation, use: null, erased: [] });
    else this.#notes.put(`${conversation.id} ${nodes[0] ?? ''}`, { conversation, use: null, erased: nodes });
  }

  /** Resolves when the directory knows what it was told, or the store failed. */
  settled(): Promise<void> {
    return this.#notes.settled();
  }

  async list(tenant: string | null, limit: number, before: ListPosition | null): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    const position = before === null ? null : memberOf(before);
    const isListed = (entry: ConversationEntry): boolean =>
      entry.deletedAt === null && (position === null || memberOf(entry) < position);
    const found = await this.#inOrder(tenant, limit, { ascending: false, position }, isListed);
    return found.toSorted((a, b) => (memberOf(a) < memberOf(b) ? 1 : -1));
  }

  async oldest(tenant: string | null, limit: number): Promise<readonly ConversationEntry[]> {
    checkLimit(limit);
    const found = await this.#inOrder(tenant, limit, { ascending: true, position: null }, () => true);
    return found.toSorted((a, b) => (memberOf(a) < memberOf(b) ? -1 : 1));
  }

  async tenants(): Promise<readonly TenantUsage[]> {
    await this.settled();
    const usages = await Promise.all(
      (await this.#tenantNames(null)).map(async (tenant) => {
        // What has expired is the oldest, and is dropped on the way to the first that has not.
        await this.oldest(tenant, 1);
        await this.settled();
        const reply = await this.#run(tenant, scripts.readUsage);
        const usage = { tenant, conversations: integerAt(reply, 1), bytes: integerAt(reply, 2) };
        if (usage.conversations === 0 && reply[3] === 0) await this.#dropTenant(tenant);
        return usage;
      }),
    );
    return usages.filter((usage) => usage.conversations > 0);
  }

  async refer(tenant: string, references: readonly Reference[]): Promise<void> {
    checkReferences(tenant, references);
    if (references.length === 0) return;
    const { retentionMs } = this.#options;
    const values = references.flatMap((reference) => [
      reference.id,
      JSON.stringify(reference),
      keyPart(reference.conversation),
      keyPart(reference.node),
    ]);
    await this.#run(tenant, scripts.refer, { retentionMs }, values);
  }

  async resolve(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, Reference>> {
    await this.settled();
    if (ids.length === 0) return new Map();
    const found = textsAt(await this.#run(tenant, scripts.resolve, {}, ids), 1).map(referenceOf);
    return new Map(found.map((reference) => [reference.id, reference]));
  }

  async learnedWindows(tenant: string | null, limit: number): Promise<readonly LearnedWindow[]> {
    checkLimit(limit);
    return this.#windows.list(await this.#tenantNames(tenant), limit);
  }

  async learnWindow(window: LearnedWindow): Promise<void> {
    checkWindow(window, window.tokens);
    await this.#addTenant(window.tenant);
    return this.#windows.learn(window);
  }

  async widenWindow(key: WindowKey, tokens: number): Promise<void> {
    checkWindow(key, tokens);
    return this.#windows.widen(key, tokens);
  }

  forgetWindow(key: WindowKey): Promise<boolean> {
    return this.#windows.forget(key);
  }

  forgetWindows(tenant: string): Promise<void> {
    return this.#windows.forgetAll(tenant);
  }

  /** The first entries in an order that are wanted, of one tenant or merged from all. */
  async #inOrder(
    tenant: string | null,
    limit: number,
    from: { readonly ascending: boolean; readonly position: string | null },
    isWanted: (entry: ConversationEntry) => boolean,
  ): Promise<readonly ConversationEntry[]> {
    await this.settled();
    const tenants = await this.#tenantNames(tenant);
    const size = Math.max(limit, BATCH);
    const wanted: ConversationEntry[] = [];
    let { position } = from;
    while (wanted.length < limit) {
      const members = await this.#members(tenants, { ...from, position, limit: size });
      const entries = await Promise.all(members.map((member) => this.#entryAt(member)));
      wanted.push(...entries.flatMap((entry) => (entry !== null && isWanted(entry) ? [entry] : [])));
      position = members.at(-1)?.member ?? null;
      if (members.length < size) break;
    }
    return wanted.slice(0, limit);
  }

  async #members(
    tenants: readonly string[],
    page: { readonly ascending: boolean; readonly position: string | null; readonly limit: number },
  ): Promise<readonly { readonly tenant: string; readonly member: string }[]> {
    const { ascending, position, limit } = page;
    const fields = { ascending: ascending ? '1' : null, position, limit };
    const pages = await Promise.all(
      tenants.map(async (tenant) => {
        const reply = await this.#run(tenant, scripts.readUsed, fields);
        return textsAt(reply, 1).map((member) => ({ tenant, member }));
      }),
    );
    const sign = ascending ? 1 : -1;
    return pages
      .flat()
      .toSorted((a, b) => (a.member < b.member ? -sign : sign))
      .slice(0, limit);
  }

  /** What stands there now; what has expired, or became another tenant's, is forgotten. */
  async #entryAt({ tenant, member }: { tenant: string; member: string }): Promise<ConversationEntry | null> {
    const id = member.slice(ID_AT);
    const entry = await this.#options.entry(id);
    if (entry?.tenant === tenant) return entry;
    this.#notes.put(id, { conversation: { tenant, id }, use: null, erased: [] });
    return null;
  }

  async #send({ conversation, use, erased }: Note): Promise<void> {
    const { tenant, id } = conversation;
    const { retentionMs } = this.#options;
    if (use !== null) {
      const noted = this.#run(tenant, scripts.noteUse, { id, ...use, retentionMs });
      await Promise.all([this.#addTenant(tenant), noted]);
      return;
    }
    const fields = { id, part: keyPart(id), keeps: erased.length > 0 ? '1' : null };
    await this.#run(tenant, scripts.forgetConversation, fields, erased.map(keyPart));
  }

  async #tenantNames(tenant: string | null): Promise<readonly string[]> {
    if (tenant !== null) return [tenant];
    return this.#options.connection.send((client) => client.smembers(this.#options.keys.tenants));
  }

  async #addTenant(tenant: string): Promise<void> {
    await this.#options.connection.send((client) => client.sadd(this.#options.keys.tenants, tenant));
  }

  /** Another process may have begun a conversation of it meanwhile; then the name comes back. */
  async #dropTenant(tenant: string): Promise<void> {
    await this.#options.connection.send((client) => client.srem(this.#options.keys.tenants, tenant));
    const reply = await this.#run(tenant, scripts.readUsage);
    if (integerAt(reply, 1) > 0 || reply[3] !== 0) await this.#addTenant(tenant);
  }

  #run(
    tenant: string,
    script: RedisScript,
    fields: Fields = {},
    values: readonly Argument[] = [],
  ): Promise<readonly unknown[]> {
    const { connection, keys } = this.#options;
    return runScript(connection, script, keys.directory(tenant), fields, values);
  }
}

function memberOf({ usedAt, id }: ListPosition): string {
  return `${String(usedAt).padStart(ID_AT - 1, '0')}:${id}`;
}

function referenceOf(json: string): Reference {
  try {
    return referenceSchema.parse(JSON.parse(json));
  } catch {
    throw unexpected();
  }
}
