import { SpillwayError } from '../core/errors.js';
import type { Conversation, Directory, Ledger, ListPosition } from '../core/ports.js';
import { EXPORT_VERSION } from './export-line.js';
import type { ExportLine } from './export-line.js';

export interface ExportSource {
  readonly ledger: Pick<Ledger, 'conversation' | 'exportPage'>;
  readonly directory: Pick<Directory, 'list'>;
}

export interface ExportSelection {
  /** Null: all that are not deleted. */
  readonly ids: readonly string[] | null;
  /** Null: of every tenant. */
  readonly tenant: string | null;
}

const LIST_PAGE = 200;

/** One that is deleted from so often while it is read fails the export: it is run again at a quieter time. */
const MOST_ATTEMPTS = 5;

/**
 * Conversations as the lines of an export, the latest used first, each as it was when its turn came. Holds a page of one
 * conversation at a time, and the ids of all. Rejects with `conversation_not_found` before the first line if a named one is not there.
 */
export async function* exportConversations(
  source: ExportSource,
  { ids, tenant }: ExportSelection,
): AsyncGenerator<ExportLine, void> {
  const selected = ids === null ? await idsInList(source.directory, tenant) : new Set(ids);
  if (ids !== null) for (const id of selected) await requireConversation(source.ledger, id, tenant);
  let conversations = 0;
  let records = 0;
  yield { type: 'export', version: EXPORT_VERSION };
  for (const id of selected) {
    // Deleted since it was listed.
    const conversation = await findConversation(source.ledger, id, tenant);
    if (conversation === null) continue;
    const written = yield* exportOne(source.ledger, conversation);
    if (written === null) continue;
    conversations += 1;
    records += written;
  }
  yield { type: 'end', conversations, records };
}

/** The lines of one conversation, with the number of its records; null if it was erased meanwhile. */
async function* exportOne(
  ledger: ExportSource['ledger'],
  conversation: Conversation,
): AsyncGenerator<ExportLine, number | null> {
  for (let attempt = 1; ; attempt += 1) {
    let records = 0;
    let next: string | null = null;
    try {
      do {
        const page = await ledger.exportPage(conversation, next);
        if (next === null) yield { type: 'conversation', conversation: page.conversation };
        yield* page.records;
        records += page.records.length;
        next = page.next;
      } while (next !== null);
      yield { type: 'conversation_end', records };
      return records;
    } catch (error) {
      const code = error instanceof SpillwayError ? error.code : null;
      const isGone = code === 'conversation_not_found';
      // A part of it was deleted or erased, so that its next page follows no more.
      const hasChanged = code === 'invalid_request' && next !== null && attempt < MOST_ATTEMPTS;
      if (!isGone && !hasChanged) throw error;
      if (next !== null) yield { type: 'abandoned' };
      if (isGone) return null;
    }
  }
}

/** The list moves while it is read: what is used goes to its top. So its top is read again until it shows nothing new. */
async function idsInList(directory: ExportSource['directory'], tenant: string | null): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  const latest = (await directory.list(tenant, 1, null)).at(0)?.usedAt ?? 0;
  let from = -Infinity;
  let known = -1;
  while (ids.size > known) {
    known = ids.size;
    let before: ListPosition | null = null;
    do {
      const page: readonly ListPosition[] = await directory.list(tenant, LIST_PAGE, before);
      for (const entry of page) ids.add(entry.id);
      const last = page.at(-1);
      before = last === undefined || page.length < LIST_PAGE || last.usedAt < from ? null : last;
    } while (before !== null);
    from = latest;
  }
  return ids;
}

async function findConversation(
  ledger: ExportSource['ledger'],
  id: string,
  tenant: string | null,
): Promise<Conversation | null> {
  const found = await ledger.conversation(id, tenant);
  return found?.deletedAt === null ? found : null;
}

async function requireConversation(ledger: ExportSource['ledger'], id: string, tenant: string | null): Promise<void> {
  if ((await findConversation(ledger, id, tenant)) !== null) return;
  throw new SpillwayError(
    'conversation_not_found',
    `There is no conversation ${JSON.stringify(id)}, or it was deleted.`,
    'id',
  );
}
