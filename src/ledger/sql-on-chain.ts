import type { Mark, Match, Summary } from '../core/ports.js';
import { integer, integerOrNull, type SqlDatabase, type SqlRow } from './sql-database.js';
import { markOf, summaryOf } from './sql-rows.js';

/*
 * What was set at the nodes of a chain, found by their ids. A conversation holds every dialogue that opens alike, so
 * other branches share these tables, and none is read as a whole.
 */

/** What is set on a chain, each thing at its deepest node there. */
export interface OnChain {
  /** Those that reach deepest, and perhaps some that reach less deep; in the order written. */
  readonly summaries: readonly Summary[];
  /** Of the calls of the model that teach something (SPEC 9.4), the last one. */
  readonly match: Match | null;
  /** One of each kind at most. */
  readonly marks: readonly Mark[];
}

export function onChain(db: SqlDatabase, conversation: string, model: string, chain: readonly string[]): OnChain {
  const values = [conversation, chain.length] as const;
  // One statement tells of most chains that there is nothing to be looked for.
  const [reach] = db.all(REACH, ...values, conversation, model, chain.length, ...values, ...values);
  const depthOf = (column: string): number => (reach === undefined ? 0 : (integerOrNull(reach, column) ?? 0));
  const [match] = deepest(db, chain, MATCHES, depthOf('match'), conversation, model);
  return {
    summaries: deepest(db, chain, SUMMARIES, depthOf('summary'), conversation).map(summaryOf),
    match:
      match === undefined
        ? null
        : { estimatedTokens: integer(match, 'estimated'), measuredTokens: integer(match, 'measured') },
    marks: KINDS.flatMap((kind) => deepest(db, chain, MARKS, depthOf(kind), conversation, kind).map(markOf)),
  };
}

export function deepestSummaries(db: SqlDatabase, conversation: string, chain: readonly string[]): readonly Summary[] {
  return deepest(db, chain, SUMMARIES, chain.length, conversation).map(summaryOf);
}

const KINDS: readonly Mark['kind'][] = ['latched', 'overflowed'];

/** How many ids, back from the deepest one at which there may be anything, are tried first. */
const FIRST_WINDOW = 4;

/** `reach`: how deep there is anything, not deeper than a depth. `rows`: what is found at a JSON list of ids. */
interface Search {
  readonly reach: string;
  readonly rows: string;
}

const SUMMARIES: Search = {
  reach: 'SELECT max(depth) AS depth FROM summary WHERE conversation = ? AND depth <= ?',
  // Without being told, SQLite would take the primary key and so all summaries of the conversation.
  rows: `SELECT summary.*, content, tokens, tokenizer FROM json_each(?) AS listed
         CROSS JOIN summary INDEXED BY summary_head ON summary.conversation = ? AND summary.head = listed.value
         CROSS JOIN node ON node.conversation = summary.conversation AND node.id = summary.id
         ORDER BY summary.seq`,
};

const MATCHES: Search = {
  reach: `SELECT max(depth) AS depth FROM call
          WHERE conversation = ? AND model = ? AND measured IS NOT NULL AND depth <= ?`,
  rows: `SELECT estimated, measured FROM json_each(?) AS listed
         CROSS JOIN call INDEXED BY call_head
           ON conversation = ? AND model = ? AND head = listed.value AND measured IS NOT NULL
         ORDER BY listed.key DESC, seq DESC LIMIT 1`,
};

const MARKS: Search = {
  reach: 'SELECT max(depth) AS depth FROM mark WHERE conversation = ? AND kind = ? AND depth <= ?',
  rows: `SELECT mark.* FROM json_each(?) AS listed
         CROSS JOIN mark ON conversation = ? AND kind = ? AND mark.head = listed.value
         ORDER BY listed.key DESC LIMIT 1`,
};

const REACH = `SELECT (${SUMMARIES.reach}) AS summary, (${MATCHES.reach}) AS match,
  (${MARKS.reach.replace('kind = ?', "kind = 'latched'")}) AS latched,
  (${MARKS.reach.replace('kind = ?', "kind = 'overflowed'")}) AS overflowed`;

/**
 * The rows at the deepest ids of a chain that have any, in windows that double: one window in an ordinary turn, and never
 * more statements than twice the doublings. `reach`: how deep there may be any.
 */
function deepest(
  db: SqlDatabase,
  chain: readonly string[],
  search: Search,
  reach: number,
  ...values: readonly string[]
): readonly SqlRow[] {
  let end = reach;
  for (let window = FIRST_WINDOW; end > 0; window *= 2) {
    const start = Math.max(0, end - window);
    const rows = db.all(search.rows, JSON.stringify(chain.slice(start, end)), ...values);
    if (rows.length > 0) return rows;
    const [next] = db.all(search.reach, ...values, start);
    end = next === undefined ? 0 : (integerOrNull(next, 'depth') ?? 0);
  }
  return [];
}
