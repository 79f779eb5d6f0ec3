import { isSummary, ROOT, type Node } from '../core/node.js';
import type { Instruction, Mark } from '../core/ports.js';
import type { ConversationRecord, ExportPage, ImportPage } from '../core/upkeep.js';
import { invalid } from './check-writes.js';
import { firstCursor, readCursor, type ExportCursor, type Position, type RecordType } from './export-cursor.js';
import { exportPageOf, type ExportSource } from './export-page.js';
import { branchOf, isSpine, newBook, nodesNamed, saveMark, type Book } from './memory-book.js';
import { utf8Length } from './utf8-length.js';

/** Takes a branch out of a book with all that was derived from it (SPEC 2.6); how many chain nodes that were. */
export function eraseBranchOf(book: Book, from: string): number {
  const erased = new Set(branchOf(book, from).map((node) => node.id));
  for (const node of book.nodes.values()) {
    // Coverage starts at the spine's first node: what covers an erased node ends in one.
    if (isSummary(node) && erased.has(node.metadata.covers_ids.at(-1) ?? ROOT)) {
      book.nodes.delete(node.id);
      if (book.conversation.activeSummary === node.id)
        book.conversation = { ...book.conversation, activeSummary: null };
    }
  }
  for (const id of erased) book.nodes.delete(id);
  book.marks.splice(0, Infinity, ...book.marks.filter((mark) => !erased.has(mark.head)));
  for (const head of erased) book.leases.delete(head);
  const calls = [...book.calls.values()].filter((call) => erased.has(call.manifest.head));
  for (const call of calls) book.calls.delete(call.id);
  const stillNamed = new Set([...book.calls.values()].flatMap(({ manifest }) => digestsOf(manifest)));
  for (const digest of calls.flatMap(({ manifest }) => digestsOf(manifest))) {
    if (!stillNamed.has(digest)) book.instructions.delete(digest);
  }
  book.revision += 1;
  return erased.size;
}

function digestsOf(manifest: { readonly instructions: readonly string[]; readonly reduction: string | null }) {
  return manifest.reduction === null ? manifest.instructions : [...manifest.instructions, manifest.reduction];
}

export function exportPageOfBook(book: Book, next: string | null): ExportPage {
  const { conversation, revision } = book;
  const until = { instruction: book.instructions.size, node: book.lastSeq, call: book.calls.size };
  const cursor = next === null ? firstCursor(conversation, { revision, until }) : readCursor(next, revision);
  return exportPageOf(conversation, sourcesOf(book), cursor);
}

interface Placed {
  readonly position: Position;
  readonly bytes: number;
  readonly record: ConversationRecord;
}

/** What an export holds of each type, in the order of its positions. */
function sourcesOf(book: Book): Readonly<Record<RecordType, ExportSource>> {
  const instructions = ({ until }: ExportCursor): readonly Placed[] =>
    [...book.instructions.values()]
      .slice(0, until.instruction)
      .toSorted((a, b) => (a.digest < b.digest ? -1 : 1))
      .map((instruction: Instruction) => ({
        position: instruction.digest,
        bytes: utf8Length(instruction.content),
        record: { type: 'instruction', instruction },
      }));
  const nodes = ({ until }: ExportCursor): readonly Placed[] =>
    [...book.nodes.values()]
      .filter((node) => node.seq <= until.node)
      .map((node) => ({ position: node.seq, bytes: utf8Length(node.content), record: { type: 'node', node } }));
  const calls = ({ until }: ExportCursor): readonly Placed[] =>
    [...book.calls.values()]
      .slice(0, until.call)
      .map((call, index) => ({ position: index + 1, bytes: 1_000, record: { type: 'call', call } }));
  const marks = ({ until }: ExportCursor): readonly Placed[] =>
    book.marks
      .filter((mark) => (book.nodes.get(mark.head)?.seq ?? Infinity) <= until.node)
      .map((mark): Placed => ({ position: keyOf(mark), bytes: 100, record: { type: 'mark', mark } }))
      .toSorted((a, b) => (a.position < b.position ? -1 : 1));
  return {
    instruction: sourceOf(instructions),
    node: sourceOf(nodes),
    call: sourceOf(calls),
    mark: sourceOf(marks),
  };
}

function sourceOf(placed: (cursor: ExportCursor) => readonly Placed[]): ExportSource {
  return {
    sizes: (cursor, after, limit) =>
      placed(cursor)
        .filter(({ position }) => position > after)
        .slice(0, limit),
    records: (cursor, after, last) =>
      placed(cursor)
        .filter(({ position }) => position > after && position <= last)
        .map(({ record }) => record),
  };
}

function keyOf({ kind, head }: Mark): string {
  return `${kind} ${head}`;
}

/** The book that an import begins with. */
export function importedBook({ conversation }: ImportPage, now: number): Book {
  const { head: _, activeSummary: __, ...rest } = conversation;
  const book = newBook(rest, now);
  book.conversation = { ...conversation, head: ROOT, activeSummary: null, deletedAt: now };
  book.importing = true;
  return book;
}

/** Takes over a page into a copy of its book, so that a page with a fault leaves nothing. Throws `invalid_request`. */
export function withImported(before: Book, { conversation, records, last }: ImportPage): Book {
  const book: Book = {
    ...before,
    nodes: new Map(before.nodes),
    calls: new Map(before.calls),
    marks: [...before.marks],
    instructions: new Map(before.instructions),
  };
  for (const record of records) importRecord(book, record);
  if (last) {
    if (conversation.head !== ROOT) requireImported(book, conversation.head, 'conversation.head');
    const { activeSummary } = conversation;
    if (activeSummary !== null && !nodesNamed(book, [activeSummary]).some(isSummary)) {
      throw invalid('conversation.activeSummary', 'is not among the records');
    }
    book.conversation = conversation;
    book.importing = false;
  }
  return book;
}

function importRecord(book: Book, record: ConversationRecord): void {
  switch (record.type) {
    case 'instruction':
      if (!book.instructions.has(record.instruction.digest)) {
        book.instructions.set(record.instruction.digest, record.instruction);
      }
      return;
    case 'node': {
      const { node } = record;
      if (node.seq <= book.lastSeq) throw invalid('records', 'has nodes out of the order of their seq');
      if (book.nodes.has(node.id)) throw invalid('records', 'has a node twice');
      if (isSummary(node) && !isSpine(book, node.metadata.covers_ids)) {
        throw invalid('records', 'has a summary of nodes that are not before it');
      }
      if (node.predecessor !== ROOT) {
        const { deletedAt } = requireImported(book, node.predecessor, 'records');
        if (deletedAt !== null && node.deletedAt === null) throw invalid('records', 'has a node behind a deleted one');
      }
      book.nodes.set(node.id, node);
      book.lastSeq = node.seq;
      return;
    }
    case 'call':
      requireImported(book, record.call.manifest.head, 'records');
      if (book.calls.has(record.call.id)) throw invalid('records', 'has a call twice');
      book.calls.set(record.call.id, record.call);
      return;
    case 'mark':
      requireImported(book, record.mark.head, 'records');
      saveMark(book, record.mark);
  }
}

function requireImported(book: Book, id: string, field: string): Node {
  const node = book.nodes.get(id);
  if (node === undefined || isSummary(node))
    throw invalid(field, 'names a node that is not among the records before it');
  return node;
}
