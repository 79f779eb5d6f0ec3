import { isCommand, isSummary, ROOT, type Node } from '../core/node.js';
import type { Mark, Match, OpenedTurn, OpenTurn, Summary, SummaryPolicy } from '../core/ports.js';
import { activeSummary } from '../core/summary.js';
import { matchOfCall } from './match-of-call.js';
import { nodesNamed, type Book } from './memory-book.js';

/** What a turn is told of its chain, once all of it is stored. */
export function openedTurn(book: Book, turn: OpenTurn, known: number): OpenedTurn {
  const { chain } = turn;
  const active = activeOn(book, chain, turn.policy);
  const behind = active === null ? chain : chain.slice(chain.indexOf(active.last) + 1);
  const nodeAt = (id: string): readonly Node[] => nodesNamed(book, [id]);
  return {
    head: book.conversation.head,
    known,
    active,
    commands: chain
      .flatMap(nodeAt)
      .filter(isCommand)
      .map((node) => node.id),
    counts: new Map(
      behind
        .flatMap(nodeAt)
        .flatMap(({ id, tokens, tokenizer }) =>
          tokens !== null && tokenizer !== null && tokenizer === turn.tokenizer ? [[id, tokens] as const] : [],
        ),
    ),
    match: matchOn(book, chain, turn.model),
    marks: (['latched', 'overflowed'] as const).flatMap((kind) => deepestMark(book, chain, kind)),
  };
}

export function activeOn(book: Book, chain: readonly string[], policy: SummaryPolicy): Summary | null {
  const summaries = [...book.nodes.values()].flatMap((node): readonly Summary[] => {
    if (!isSummary(node)) return [];
    const { id, content, tokens, tokenizer, metadata } = node;
    const [first = ROOT] = metadata.covers_ids;
    const last = metadata.covers_ids.at(-1) ?? ROOT;
    return [{ id, first, last, count: metadata.covers_ids.length, content, tokens, tokenizer }];
  });
  return activeSummary(chain, summaries, policy, book.conversation.activeSummary);
}

/** Of the calls of a model that teach something, the last one of the deepest head on a chain. */
function matchOn(book: Book, chain: readonly string[], model: string): Match | null {
  const calls = [...book.calls.values()].filter((call) => call.model === model && matchOfCall(call) !== null);
  const head = chain.findLast((id) => calls.some((call) => call.manifest.head === id));
  const call = calls.findLast((candidate) => candidate.manifest.head === head);
  return call === undefined ? null : matchOfCall(call);
}

function deepestMark(book: Book, chain: readonly string[], kind: Mark['kind']): readonly Mark[] {
  const marks = book.marks.filter((mark) => mark.kind === kind && chain.includes(mark.head));
  return marks.toSorted((a, b) => chain.indexOf(b.head) - chain.indexOf(a.head)).slice(0, 1);
}
