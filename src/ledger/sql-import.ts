import { isSummary, ROOT, type Node } from '../core/node.js';
import type { Call } from '../core/ports.js';
import type { ConversationRecord, ImportPage } from '../core/upkeep.js';
import { invalid } from './check-writes.js';
import type { SqlNodes } from './sql-nodes.js';
import type { SqlRecords } from './sql-records.js';
import { isSummaryPlace, stateFrom, type ConversationState, type Place } from './sql-rows.js';
import type { SqlStore } from './sql-store.js';

/** The row that an import begins with: deleted, and without what its records have yet to bring. */
export function importedState({ conversation }: ImportPage, now: number): ConversationState {
  const nothing = { head: ROOT, activeSummary: null, nodes: 0, calls: 0, summaries: 0, bytes: 0 };
  return { ...stateFrom({ ...conversation, ...nothing, deletedAt: now }), importing: true };
}

/** Writes a page of an import, inside a transaction, and gives the row to be written. Throws `invalid_request`. */
export function sqlImportPage(store: SqlStore, before: ConversationState, page: ImportPage): ConversationState {
  const { nodes, records } = store;
  const places = new Map(nodes.places(before.id, [...new Set(page.records.flatMap(namedBy)), page.conversation.head]));
  let state = before;
  for (const record of page.records) state = importRecord(nodes, records, places, state, record);
  if (!page.last) return state;

  const { head, activeSummary } = page.conversation;
  if (head !== ROOT) requireImported(places, head, 'conversation.head');
  if (activeSummary !== null && nodes.summary(state.id, activeSummary) === null) {
    throw invalid('conversation.activeSummary', 'is not among the records');
  }
  return { ...state, ...page.conversation, importing: false };
}

function namedBy(record: ConversationRecord): readonly string[] {
  switch (record.type) {
    case 'instruction':
      return [];
    case 'node': {
      const { node } = record;
      return [node.id, node.predecessor, ...(isSummary(node) ? node.metadata.covers_ids : [])];
    }
    case 'call':
      return [record.call.manifest.head, ...record.call.replies];
    case 'mark':
      return [record.mark.head];
  }
}

function importRecord(
  nodes: SqlNodes,
  records: SqlRecords,
  places: Map<string, Place>,
  state: ConversationState,
  record: ConversationRecord,
): ConversationState {
  switch (record.type) {
    case 'instruction':
      return { ...state, bytes: state.bytes + records.storeInstructions(state.id, [record.instruction]) };
    case 'node': {
      const { node } = record;
      if (node.seq <= state.lastSeq) throw invalid('records', 'has nodes out of the order of their seq');
      if (places.has(node.id)) throw invalid('records', 'has a node twice');
      const { place, bytes } = isSummary(node)
        ? importSummary(nodes, places, node)
        : nodes.insert(state.id, node, { ...node, ...followed(places, node) });
      places.set(node.id, place);
      const summaries = state.summaries + (isSummary(node) ? 1 : 0);
      return { ...state, nodes: state.nodes + 1, summaries, bytes: state.bytes + bytes, lastSeq: node.seq };
    }
    case 'call': {
      const { call } = record;
      const { depth } = requireImported(places, call.manifest.head, 'records');
      if (records.hasCall(state.id, call.id)) throw invalid('records', 'has a call twice');
      const seq = state.lastCall + 1;
      records.insertCall(call, { seq, depth }, laterReplies(places, call));
      return { ...state, calls: state.calls + 1, lastCall: seq };
    }
    case 'mark':
      records.saveMark(state.id, record.mark, requireImported(places, record.mark.head, 'records').depth);
      return state;
  }
}

function importSummary(
  nodes: SqlNodes,
  places: ReadonlyMap<string, Place>,
  node: Node & { readonly metadata: { readonly covers_ids: readonly string[] } },
) {
  const covered = node.metadata.covers_ids;
  const [first] = covered;
  const last = covered.at(-1);
  if (first === undefined || last === undefined || !isSegment(places, covered)) {
    throw invalid('records', 'has a summary of nodes that are not before it');
  }
  nodes.insertSummary(node.conversation, { id: node.id, seq: node.seq, first, last, count: covered.length });
  return nodes.insert(node.conversation, node, { ...node, depth: 0, lastCommand: null });
}

/** Whether these are the nodes of one spine, from its first node on. */
export function isSegment(places: ReadonlyMap<string, Place>, ids: readonly string[]): boolean {
  return ids.every((id, index) => {
    const place = places.get(id);
    return place?.depth === index + 1 && place.predecessor === (ids[index - 1] ?? ROOT);
  });
}

/** What a node takes from the one it follows. */
function followed(
  places: ReadonlyMap<string, Place>,
  node: Node,
): { readonly depth: number; readonly lastCommand: string | null } {
  if (node.predecessor === ROOT) return { depth: 1, lastCommand: null };
  const { depth, lastCommand, deletedAt } = requireImported(places, node.predecessor, 'records');
  if (deletedAt !== null && node.deletedAt === null) throw invalid('records', 'has a node behind a deleted one');
  return { depth: depth + 1, lastCommand };
}

/** Those that are not seen to follow the head of the call. */
function laterReplies(places: ReadonlyMap<string, Place>, call: Call): readonly string[] {
  return call.replies.filter((reply) => places.get(reply)?.predecessor !== call.manifest.head);
}

function requireImported(places: ReadonlyMap<string, Place>, id: string, field: string): Place {
  const place = places.get(id);
  if (place === undefined || isSummaryPlace(place)) {
    throw invalid(field, 'names a node that is not among the records before it');
  }
  return place;
}
