import { SpillwayError } from '../core/errors.js';
import type { Conversation, Ledger } from '../core/ports.js';
import type { ConversationRecord } from '../core/upkeep.js';
import { faultyLine, readExportLine } from './export-line.js';

/** Why a conversation of an export was left as it is in the store. */
export type LeftBecause = 'deleted' | 'another_tenant' | 'older';

export interface ImportReport {
  readonly conversations: number;
  readonly records: number;
  /** There before, in this or a later state. */
  readonly skipped: number;
  /** There before, and not what the export holds: nothing was changed. `older`: the export's was used later. */
  readonly left: readonly { readonly id: string; readonly because: LeftBecause }[];
  /** When the least lately used conversation of all was used; null if there was none. */
  readonly oldestUse: number | null;
}

export interface ImportDeps {
  readonly ledger: Pick<Ledger, 'importPage' | 'conversation' | 'eraseConversation'>;
  /** Told of the conversations and records read so far, after each page. */
  onProgress(read: { readonly conversations: number; readonly records: number }): void;
}

/** A page ends with the line that reaches one of these. */
const PAGE_CHARS = 1024 * 1024;
const PAGE_RECORDS = 500;

/**
 * Takes the lines of an export over into a store, with a page of one conversation in memory. A conversation shows once all of it is
 * there; one that was there before stays as it is. So a repeated import goes on where one broke off. Rejects with
 * `invalid_request` that names the line at fault, also where the end is missing, and as the store does.
 */
export async function importConversations(lines: AsyncIterable<string>, deps: ImportDeps): Promise<ImportReport> {
  const reader = new ExportReader(deps);
  for await (const text of lines) await reader.take(text);
  return reader.end();
}

/** A conversation of which not all is in the store yet. */
interface Open {
  readonly conversation: Conversation;
  /** The number of its line. */
  readonly line: number;
  /** What was not sent to the store yet. */
  page: { readonly records: ConversationRecord[]; chars: number };
  /** Records so far, sent or not. */
  count: number;
  begun: boolean;
  /** It was there before. */
  skipped: boolean;
}

class ExportReader {
  readonly #deps: ImportDeps;
  /** What was read, of conversations only whole ones. */
  readonly #read = { conversations: 0, records: 0 };
  readonly #taken = { conversations: 0, records: 0 };
  readonly #left: { readonly id: string; readonly because: LeftBecause }[] = [];
  #skipped = 0;
  #oldestUse = Infinity;
  #open: Open | null = null;
  #line = 0;
  #ended = false;

  constructor(deps: ImportDeps) {
    this.#deps = deps;
  }

  async take(text: string): Promise<void> {
    this.#line += 1;
    if (this.#ended) throw this.#fault(null, 'stands behind the end');
    const line = readExportLine(text, this.#line);
    if ((line.type === 'export') !== (this.#line === 1)) {
      throw this.#fault('type', this.#line === 1 ? 'is not that of a header' : 'is that of a second header');
    }
    switch (line.type) {
      case 'export':
        return;
      case 'conversation':
        this.#requireClosed();
        this.#open = newlyOpened(line.conversation, this.#line);
        return;
      case 'conversation_end':
        return this.#finish(line.records);
      case 'abandoned':
        return this.#abandon();
      case 'end':
        this.#requireClosed();
        this.#requireCount('conversations', line.conversations, this.#read.conversations);
        this.#requireCount('records', line.records, this.#read.records);
        this.#ended = true;
        return;
      case 'instruction':
      case 'node':
      case 'call':
      case 'mark':
        return this.#add(line, text.length);
    }
  }

  end(): ImportReport {
    if (!this.#ended) throw faultyLine(this.#line + 1, null, 'is missing: the file is cut off before its end');
    const oldestUse = this.#oldestUse === Infinity ? null : this.#oldestUse;
    return { ...this.#taken, skipped: this.#skipped, left: this.#left, oldestUse };
  }

  async #add(record: ConversationRecord, chars: number): Promise<void> {
    const open = this.#requireOpen();
    if (ownerOf(record, open.conversation) !== open.conversation.id) {
      throw this.#fault(`${record.type}.conversation`, 'is another one than the conversation above');
    }
    open.page.records.push(record);
    open.page.chars += chars;
    open.count += 1;
    this.#read.records += 1;
    if (open.page.chars >= PAGE_CHARS || open.page.records.length >= PAGE_RECORDS) await this.#send(open, false);
  }

  async #abandon(): Promise<void> {
    const open = this.#requireOpen();
    if (open.begun && !open.skipped) await this.#deps.ledger.eraseConversation(open.conversation, null);
    this.#read.records -= open.count;
    this.#open = null;
  }

  async #finish(records: number): Promise<void> {
    const open = this.#requireOpen();
    this.#requireCount('records', records, open.count);
    this.#read.conversations += 1;
    await this.#send(open, true);
    this.#open = null;
    this.#oldestUse = Math.min(this.#oldestUse, open.conversation.usedAt);
    if (open.skipped) return;
    this.#taken.conversations += 1;
    this.#taken.records += open.count;
  }

  async #send(open: Open, last: boolean): Promise<void> {
    const { conversation, page } = open;
    try {
      if (!open.skipped) {
        await this.#deps.ledger.importPage({ conversation, records: page.records, first: !open.begun, last });
      }
    } catch (error) {
      if (!(error instanceof SpillwayError) || error.code === 'store_unavailable') throw error;
      if (error.code !== 'conversation_exists') {
        const message = `conversation ${conversation.id}, which begins at line ${open.line}: ${error.message}`;
        throw new SpillwayError('invalid_request', message, error.field, error);
      }
      open.skipped = true;
      const because = differenceOf(conversation, await this.#deps.ledger.conversation(conversation.id, null));
      if (because === null) this.#skipped += 1;
      else this.#left.push({ id: conversation.id, because });
    }
    open.begun = true;
    open.page = { records: [], chars: 0 };
    this.#deps.onProgress(this.#read);
  }

  #requireOpen(): Open {
    if (this.#open !== null) return this.#open;
    throw this.#fault('type', 'is that of a part of a conversation, and none has begun');
  }

  #requireClosed(): void {
    if (this.#open !== null) throw this.#fault('type', 'follows a conversation that has not ended: lines are missing');
  }

  #requireCount(field: string, told: number, counted: number): void {
    if (told !== counted) throw this.#fault(field, `is ${told}, and there are ${counted}: lines are missing`);
  }

  #fault(field: string | null, reason: string): SpillwayError {
    return faultyLine(this.#line, field, reason);
  }
}

function newlyOpened(conversation: Conversation, line: number): Open {
  return { conversation, line, page: { records: [], chars: 0 }, count: 0, begun: false, skipped: false };
}

function ownerOf(record: ConversationRecord, { id }: Conversation): string {
  if (record.type === 'node') return record.node.conversation;
  return record.type === 'call' ? record.call.conversation : id;
}

/** What an import would have changed of a conversation that is there; null if nothing. */
function differenceOf(exported: Conversation, there: Conversation | null): LeftBecause | null {
  if (there === null || there.tenant !== exported.tenant) return 'another_tenant';
  if (there.deletedAt !== null) return 'deleted';
  return there.usedAt < exported.usedAt ? 'older' : null;
}
