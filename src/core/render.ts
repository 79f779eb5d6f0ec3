import type { Message } from './message.js';
import type { Manifest, Summary } from './ports.js';
import { NO_REDUCTION } from './request/reduction.js';
import type { Checkpoint, ReducedResult, Reduction } from './request/reduction.js';
import { segmentOn } from './summary.js';

/** A chain node as a view needs it. */
export interface SpineNode {
  readonly id: string;
  readonly message: Message;
  /** A command of Spillway's own or the answer to one: no model reads it (SPEC 4.9). */
  readonly command: boolean;
}

/** One place of a view's verbatim part. */
export type Entry =
  /** A message as it is; `index` into the spine. */
  | { readonly kind: 'message'; readonly index: number }
  /** A message some of whose tool results are sent as other text. */
  | { readonly kind: 'reduced'; readonly index: number; readonly results: readonly ReducedResult[] }
  /** A task summary in the place of a run of execution history. */
  | { readonly kind: 'checkpoint'; readonly checkpoint: Checkpoint };

/**
 * What a model reads when rendered from the end of a spine, as indices into it (SPEC 4.1): `pinned`, then the summary if
 * there is one, then `tail`. Nothing else decides this.
 */
export interface View {
  readonly summary: Summary | null;
  /** System and developer messages of the covered segment: instructions, not history (SPEC 4.8). */
  readonly pinned: readonly number[];
  readonly tail: readonly Entry[];
  /** Commands and their answers, wherever they stand. */
  readonly omitted: readonly number[];
  /** The request-local part of it; empty where nothing of the tail is substituted. */
  readonly reduction: Reduction;
}

/**
 * The one view function, SPEC 4.1 and 4.2: pure, and independent of HEAD. If the active summary's segment lies wholly on
 * the spine, the summary stands where the segment began; otherwise the spine is rendered raw. Behind the segment a
 * request-local reduction applies, as far as its nodes are there (SPEC 7.3, 7.4).
 */
export function render(spine: readonly SpineNode[], active: Summary | null, reduction: Reduction = NO_REDUCTION): View {
  const ids = spine.map((node) => node.id);
  const segment = active === null ? null : segmentOn(ids, active);
  const from = segment?.from ?? 0;
  const to = segment?.to ?? 0;
  const before: number[] = [];
  const pinned: number[] = [];
  const tail: number[] = [];
  const omitted: number[] = [];
  const pinnedTexts = new Set<string>();
  for (const [index, node] of spine.entries()) {
    if (node.command) omitted.push(index);
    else if (index < from) before.push(index);
    else if (index >= to) tail.push(index);
    else if (node.message.role === 'system' && !pinnedTexts.has(node.message.text)) {
      pinnedTexts.add(node.message.text);
      pinned.push(index);
    }
  }
  const reduced = reduceTail(ids, tail, reduction);
  // Coverage begins at a spine's first node (SPEC 3.2), so `before` is empty but for a store that says otherwise.
  return { summary: segment === null ? null : active, pinned: [...before, ...pinned], omitted, ...reduced };
}

/** The tail under a reduction, and what of the reduction found its place. */
function reduceTail(
  ids: readonly string[],
  tail: readonly number[],
  reduction: Reduction,
): { readonly tail: readonly Entry[]; readonly reduction: Reduction } {
  const inTail = new Set(tail);
  const checkpoints = reduction.checkpoints.flatMap((checkpoint) => {
    const segment = segmentOn(ids, checkpoint);
    return segment !== null && inTail.has(segment.from) && inTail.has(segment.to - 1)
      ? [{ checkpoint, ...segment }]
      : [];
  });
  const covering = (index: number) => checkpoints.find(({ from, to }) => index >= from && index < to);
  const byNode = new Map<string, ReducedResult[]>();
  for (const result of reduction.results) byNode.set(result.node, [...(byNode.get(result.node) ?? []), result]);
  const applied: ReducedResult[] = [];
  const entries = tail.flatMap((index): readonly Entry[] => {
    const run = covering(index);
    if (run !== undefined) return index === run.from ? [{ kind: 'checkpoint', checkpoint: run.checkpoint }] : [];
    const results = byNode.get(ids[index] ?? '');
    if (results === undefined) return [{ kind: 'message', index }];
    applied.push(...results);
    return [{ kind: 'reduced', index, results }];
  });
  return {
    tail: entries,
    reduction: { results: applied, checkpoints: checkpoints.map(({ checkpoint }) => checkpoint) },
  };
}

/** Places on the spine of the messages that a view's verbatim part still sends, in full or reduced. */
export function tailIndices(view: View): readonly number[] {
  return view.tail.flatMap((entry) => (entry.kind === 'checkpoint' ? [] : [entry.index]));
}

/** True if the view differs from the spine it was rendered from, so that the request has to be rewritten. */
export function substitutes(view: View): boolean {
  return view.summary !== null || view.omitted.length > 0 || view.tail.some((entry) => entry.kind !== 'message');
}

/** How a dialect sends what stands in for messages. */
export interface SubstituteForms {
  /** The message that a summary or a checkpoint is sent as (SPEC 4.4). */
  summaryMessage(content: string): Message;
  /** A message with other text in some of its tool results, by call id; everything else of it stays (SPEC 7.3). */
  withResults(message: Message, results: ReadonlyMap<string, string>): Message;
}

/** The messages of a view, in the order sent. */
export function viewMessages(spine: readonly SpineNode[], view: View, forms: SubstituteForms): readonly Message[] {
  const pinned = view.pinned.flatMap((index) => spine[index]?.message ?? []);
  const summary = view.summary === null ? [] : [forms.summaryMessage(view.summary.content)];
  const tail = view.tail.flatMap((entry) => entryMessage(spine, entry, forms) ?? []);
  return [...pinned, ...summary, ...tail];
}

/** The message that an entry is sent as; null for an index that is not on the spine. */
export function entryMessage(spine: readonly SpineNode[], entry: Entry, forms: SubstituteForms): Message | null {
  if (entry.kind === 'checkpoint') return forms.summaryMessage(entry.checkpoint.content);
  const message = spine[entry.index]?.message ?? null;
  if (message === null || entry.kind === 'message') return message;
  return forms.withResults(message, new Map(entry.results.map((result) => [result.callId, result.text])));
}

/** `digests`: of the request's instructions, and of the view's reduction as JSON if there is one. */
export function manifestOf(
  spine: readonly SpineNode[],
  view: View,
  digests: { readonly instructions: readonly string[]; readonly reduction: string | null },
): Manifest {
  const ids = (indices: readonly number[]): readonly string[] => indices.flatMap((index) => spine[index]?.id ?? []);
  return {
    version: 1,
    head: spine.at(-1)?.id ?? '',
    summary: view.summary?.id ?? null,
    pinned: view.summary === null ? [] : ids(view.pinned),
    omitted: ids(view.omitted),
    ...digests,
  };
}

/**
 * The ids of every node whose content entered a call's prompt, in the order read (SPEC 2.5), from its manifest and the
 * chain up to its head. `summary` and `reduction` are the manifest's; the same manifest gives the same ids whatever is
 * active now. What a checkpoint stood for was not read itself; a shortened result was, as far as its message goes.
 */
export function readsOf(
  chain: readonly string[],
  manifest: Manifest,
  summary: Summary | null,
  reduction: Reduction = NO_REDUCTION,
): readonly string[] {
  const omitted = new Set(manifest.omitted);
  for (const checkpoint of reduction.checkpoints) {
    const run = segmentOn(chain, checkpoint);
    for (const id of run === null ? [] : chain.slice(run.from, run.to)) omitted.add(id);
  }
  const segment = summary === null ? null : segmentOn(chain, summary);
  if (summary === null || segment === null) return chain.filter((id) => !omitted.has(id));
  const tail = chain.slice(segment.to).filter((id) => !omitted.has(id));
  return [...manifest.pinned, summary.id, ...tail];
}
