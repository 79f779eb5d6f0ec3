import { z } from 'zod';

/** A node as Spillway's API tells it, as far as the graph needs it. */
export const graphNode = z.object({
  id: z.string(),
  predecessor: z.string(),
  role: z.string(),
  metadata: z.object({ covers_ids: z.array(z.string()).optional() }),
});

type GraphNode = z.output<typeof graphNode>;

/**
 * A conversation's graph as text: runs of nodes in one line each, indented under the place where they branch off (a reply
 * was regenerated there), with HEAD and what each summary covers.
 */
export function graphText(nodes: readonly GraphNode[], head: string): string {
  const children = new Map<string, GraphNode[]>();
  for (const node of nodes.filter((candidate) => candidate.metadata.covers_ids === undefined)) {
    children.set(node.predecessor, [...(children.get(node.predecessor) ?? []), node]);
  }
  const lines = ['● a run of messages   ◎ a summary, beside what it stands for   ◀ where the conversation goes on'];
  const walk = (from: GraphNode, depth: number, name = ''): void => {
    const run = [from];
    let next = children.get(from.id) ?? [];
    while (next.length === 1 && next[0] !== undefined) {
      run.push(next[0]);
      next = children.get(next[0].id) ?? [];
    }
    const last = run.at(-1) ?? from;
    const mark = last.id === head ? '  ◀ HEAD' : '';
    lines.push(
      `${'  '.repeat(depth)}● ${run.length} messages  ${short(from.id)} … ${short(last.id)} (${last.role})${name}${mark}`,
    );
    next.forEach((child, index) =>
      walk(child, depth + 1, index === 0 ? ', the first reply' : ', the regenerated reply'),
    );
  };
  for (const first of children.get('ROOT') ?? []) walk(first, 0);
  for (const node of nodes) {
    const covers = node.metadata.covers_ids;
    if (covers !== undefined)
      lines.push(`◎ ${node.id.slice(0, 14)} stands for ${covers.length} messages, up to ${short(covers.at(-1) ?? '')}`);
  }
  return lines.join('\n');
}

function short(id: string): string {
  return id.slice(0, 6);
}
