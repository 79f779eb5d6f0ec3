import type { Mark, Match, Summary } from '../core/ports.js';
import { integer, integerOrNull, text, type SqlDatabase, type SqlRow } from './sql-database.js';
import { summaryOf } from './sql-rows.js';

/*
 * What was set at the nodes of a chain, found by their ids. A conversation holds every dialogue that opens alike, so
 * other branches share these tables, and none is read as a whole.
 */

/** The summaries that reach deepest on a chain, and perhaps some that reach less deep; in the order written. */
export function deepestSummaries(db: SqlDatabase, conversation: string, chain: readonly string[]): readonly Summary[] {
  return deepest(db, chain, SUMMARIES, conversation).map(summaryOf);
}

/** Of the calls of a model that teach something (SPEC 9.4), the last one of the deepest head on a chain. */
export function deepestMatch(
  db: SqlDatabase,
  conversation: string,
  model: string,
  chain: readonly string[],
): Match | null {
  const [row] = deepest(db, chain, MATCHES, conversation, model);
  if (row === undefined) return null;
  return { estimatedTokens: integer(row, 'estimated'), measuredTokens: integer(row, 'measured') };
}

/** The mark of each kind whose head lies deepest on a chain. */
export function deepestMarks(db: SqlDatabase, conversation: string, chain: readonly string[]): readonly Mark[] {
  return KINDS.flatMap((kind) =>
    deepest(db, chain, MARKS, conversation, kind).map((row) => ({
      kind,
      head: text(row, 'head'),
      tokens: integer(row, 'tokens'),
      scope: text(row, 'scope'),
    })),
  );
}

const KINDS: readonly Mark['kind'][] = ['latched', 'overflowed'];

/** How many ids, back from the deepest one at which there may be anything, are tried first. */
const FIRST_WINDOW = 32;

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
  rows: `SELECT mark.head, tokens, scope FROM json_each(?) AS listed
         CROSS JOIN mark ON conversation = ? AND kind = ? AND mark.head = listed.value
         ORDER BY listed.key DESC LIMIT 1`,
};

/**
 * The rows at the deepest ids of a chain that have any, in windows that double: one window in an ordinary turn, and never
 * more statements than twice the doublings.
 */
function deepest(
  db: SqlDatabase,
  chain: readonly string[],
  search: Search,
  ...values: readonly string[]
): readonly SqlRow[] {
  let start = chain.length;
  for (let window = FIRST_WINDOW; start > 0; window *= 2) {
    const [reach] = db.all(search.reach, ...values, start);
    const end = reach === undefined ? 0 : (integerOrNull(reach, 'depth') ?? 0);
    if (end === 0) return [];
    start = Math.max(0, end - window);
    const rows = db.all(search.rows, JSON.stringify(chain.slice(start, end)), ...values);
    if (rows.length > 0) return rows;
  }
  return [];
}
