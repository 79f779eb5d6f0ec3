import { ROOT } from '../core/node.js';
import type { ConversationKey } from '../core/ports.js';
import type { ConversationRecord, ExportPage, ImportPage, LedgerUpkeep } from '../core/upkeep.js';
import { checkImportPage } from './check-writes.js';
import { firstCursor, readCursor, writeCursor, type ExportCursor, type Position } from './export-cursor.js';
import type { RedisConversations } from './redis-conversations.js';
import { readExport, readFields } from './redis-read-scripts.js';
import {
  callOf,
  callValues,
  entryOf,
  fixedOf,
  importedNodeValues,
  instructionOf,
  markOf,
  markValues,
  nodesOf,
  textValues,
} from './redis-records.js';
import { integerAt, listAt, textAt, textsAt, unexpected } from './redis-reply.js';
import type { Argument } from './redis-script.js';
import * as scripts from './redis-upkeep-scripts.js';

/** A page of an export ends behind the record that reaches one of these. */
const PAGE_RECORDS = 500;
const PAGE_BYTES = 1024 * 1024;

export interface RedisUpkeepOptions {
  readonly conversations: RedisConversations;
  /** Told of what is erased: a conversation, or of one that stays the nodes. */
  onErased(conversation: ConversationKey, nodes: readonly string[] | null): void;
}

/** Deletion, and moving between stores; each method one script. */
export class RedisUpkeep implements LedgerUpkeep {
  readonly #conversations: RedisConversations;
  readonly #onErased: RedisUpkeepOptions['onErased'];

  constructor({ conversations, onErased }: RedisUpkeepOptions) {
    this.#conversations = conversations;
    this.#onErased = onErased;
  }

  async deleteBranch(key: ConversationKey, from: string, expected: string | null) {
    const fields = { from, expected, now: this.#conversations.now(), operation: this.#conversations.operation() };
    return removedOf(await this.#conversations.write(key, scripts.removeBranch, fields));
  }

  async restoreBranch(key: ConversationKey, node: string): Promise<{ readonly nodes: number }> {
    const fields = { node, operation: this.#conversations.operation() };
    return { nodes: removedOf(await this.#conversations.write(key, scripts.restoreBranch, fields)).nodes };
  }

  async eraseBranch(key: ConversationKey, from: string, expected: string | null) {
    const fields = { from, expected, erase: '1', operation: this.#conversations.operation() };
    const reply = await this.#conversations.write(key, scripts.removeBranch, fields);
    // One that was done before its answer got lost no longer knows which nodes those were.
    if (reply.length > 5) this.#onErased(key, textsAt(reply, 5));
    return removedOf(reply);
  }

  async deleteConversation(key: ConversationKey): Promise<void> {
    await this.#conversations.write(key, scripts.markDeleted, { now: this.#conversations.now() });
  }

  async restoreConversation(key: ConversationKey): Promise<void> {
    await this.#conversations.write(key, scripts.markDeleted);
  }

  async eraseConversation(key: ConversationKey, unusedSince: number | null): Promise<boolean> {
    const [answer] = await this.#conversations.write(key, scripts.eraseConversation, { unusedSince });
    if (answer === 'erased') this.#onErased(key, null);
    return answer === 'erased';
  }

  async exportPage(key: ConversationKey, next: string | null): Promise<ExportPage> {
    const fields = listAt(await this.#conversations.run(key, readFields), 1);
    const revision = counterOf(fields, 'revision');
    const entry = entryOf(key.id, fields);
    const cursor =
      next !== null && entry !== null
        ? readCursor(next, revision)
        : firstCursor(entry ?? NOBODY, {
            revision,
            until: {
              instruction: counterOf(fields, 'textSeq'),
              node: counterOf(fields, 'seq'),
              call: counterOf(fields, 'callSeq'),
            },
          });
    const reply = await this.#conversations.run(key, readExport, {
      type: cursor.after.type,
      position: cursor.after.position,
      revision: cursor.revision,
      instructionUntil: cursor.until.instruction,
      nodeUntil: cursor.until.node,
      callUntil: cursor.until.call,
      records: PAGE_RECORDS,
      bytes: PAGE_BYTES,
    });
    // Deleted or erased between the two: the cursor is refused as a later page's would be.
    if (reply[0] === 'changed') readCursor(writeCursor(cursor), integerAt(reply, 1));
    return pageOf(key, cursor, reply);
  }

  async importPage(page: ImportPage): Promise<void> {
    checkImportPage(page);
    const { conversation, records, first, last } = page;
    const fields = {
      now: this.#conversations.now(),
      operation: this.#conversations.operation(),
      first: first ? '1' : null,
      last: last ? '1' : null,
      fixed: fixedOf(conversation),
      createdAt: conversation.createdAt,
      usedAt: conversation.usedAt,
      head: conversation.head,
      active: conversation.activeSummary,
      deletedAt: conversation.deletedAt,
    };
    await this.#conversations.write(conversation, scripts.importPage, fields, records.flatMap(importedValues));
  }
}

/** Stands for a conversation that is not there, until the script says so. */
const NOBODY = {
  tenant: '',
  id: '',
  dialect: '',
  canonicalVersion: 0,
  name: null,
  session: null,
  head: ROOT,
  activeSummary: null,
  createdAt: 0,
  usedAt: 0,
  deletedAt: null,
};

function removedOf(reply: readonly unknown[]): { readonly nodes: number; readonly head: string } {
  return { nodes: integerAt(reply, 3), head: textAt(reply, 4) };
}

function counterOf(fields: readonly unknown[], name: string): number {
  const at = fields.indexOf(name);
  return at < 0 ? 0 : integerAt(fields, at + 1);
}

function pageOf(key: ConversationKey, cursor: ExportCursor, reply: readonly unknown[]): ExportPage {
  const entry = entryOf(key.id, listAt(reply, 1));
  if (entry === null) throw unexpected();
  const { nodes: _, calls: __, summaries: ___, bytes: ____, ...conversation } = entry;
  const nodes = new Map(nodesOf(key.id, listAt(reply, 3)).map((node) => [node.id, node]));
  const given = listAt(reply, 2).map((_value, index) => listAt(listAt(reply, 2), index));
  const records = given.map((record): ConversationRecord => {
    const value = textAt(record, 2);
    switch (record[0]) {
      case 'instruction':
        return { type: 'instruction', instruction: instructionOf(textAt(record, 1), value) };
      case 'node': {
        const node = nodes.get(value);
        if (node === undefined) throw unexpected();
        return { type: 'node', node };
      }
      case 'call':
        return { type: 'call', call: callOf(value) };
      case 'mark':
        return { type: 'mark', mark: markOf(value) };
      default:
        throw unexpected();
    }
  });
  const end = records.at(-1)?.type;
  const position = given.at(-1)?.[1];
  const isLast = reply[4] !== 1 || end === undefined;
  return {
    conversation: { ...conversation, ...cursor.seen },
    records,
    next: isLast ? null : writeCursor({ ...cursor, after: { type: end, position: positionOf(end, position) } }),
  };
}

function positionOf(type: ConversationRecord['type'], position: unknown): Position {
  return type === 'node' || type === 'call' ? Number(position) : String(position);
}

function importedValues(record: ConversationRecord): readonly Argument[] {
  switch (record.type) {
    case 'instruction':
      return counted('text', textValues(record.instruction));
    case 'node':
      return counted('node', importedNodeValues(record.node));
    case 'call':
      return counted('call', [...callValues(record.call), ...new Set(record.call.replies)]);
    case 'mark':
      return counted('mark', markValues(record.mark));
  }
}

function counted(type: string, values: readonly Argument[]): readonly Argument[] {
  return [type, values.length, ...values];
}
