import type { Message } from './message.js';
import type { Manifest, Summary } from './ports.js';
import { segmentOn } from './summary.js';

/** A chain node as a view needs it. */
export interface SpineNode {
  readonly id: string;
  readonly message: Message;
  /** A command of Spillway's own or the answer to one: no model reads it (SPEC 4.9). */
  readonly command: boolean;
}

/**
 * What a model reads when rendered from the end of a spine, as indices into it (SPEC 4.1): `pinned`, then the summary if
 * there is one, then `tail`. Nothing else decides this.
 */
export interface View {
  readonly summary: Summary | null;
  /** System and developer messages of the covered segment: instructions, not history (SPEC 4.8). */
  readonly pinned: readonly number[];
  readonly tail: readonly number[];
  /** Commands and their answers, wherever they stand. */
  readonly omitted: readonly number[];
}

/**
 * The one view function, SPEC 4.1 and 4.2: pure, and independent of HEAD. If the active summary's segment lies wholly on
 * the spine, the summary stands where the segment began; otherwise the spine is rendered raw.
 */
export function render(spine: readonly SpineNode[], active: Summary | null): View {
  const segment =
    active === null
      ? null
      : segmentOn(
          spine.map((node) => node.id),
          active,
        );
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
  // Coverage begins at a spine's first node (SPEC 3.2), so `before` is empty but for a store that says otherwise.
  return { summary: segment === null ? null : active, pinned: [...before, ...pinned], tail, omitted };
}

/** True if the view differs from the spine it was rendered from, so that the request has to be rewritten. */
export function substitutes(view: View): boolean {
  return view.summary !== null || view.omitted.length > 0;
}

/** The messages of a view, in the order sent; `summaryMessage` is the dialect's form of a summary (SPEC 4.4). */
export function viewMessages(
  spine: readonly SpineNode[],
  view: View,
  summaryMessage: (content: string) => Message,
): readonly Message[] {
  const at = (indices: readonly number[]): readonly Message[] =>
    indices.flatMap((index) => spine[index]?.message ?? []);
  const summary = view.summary === null ? [] : [summaryMessage(view.summary.content)];
  return [...at(view.pinned), ...summary, ...at(view.tail)];
}

export function manifestOf(spine: readonly SpineNode[], view: View, instructionDigests: readonly string[]): Manifest {
  const ids = (indices: readonly number[]): readonly string[] => indices.flatMap((index) => spine[index]?.id ?? []);
  return {
    version: 1,
    head: spine.at(-1)?.id ?? '',
    summary: view.summary?.id ?? null,
    pinned: view.summary === null ? [] : ids(view.pinned),
    omitted: ids(view.omitted),
    instructions: instructionDigests,
  };
}

/**
 * The ids of every node whose content entered a call's prompt, in the order read (SPEC 2.5), from its manifest and the
 * chain up to its head. `summary` is the manifest's summary; the same manifest gives the same ids whatever is active now.
 */
export function readsOf(chain: readonly string[], manifest: Manifest, summary: Summary | null): readonly string[] {
  const omitted = new Set(manifest.omitted);
  const segment = summary === null ? null : segmentOn(chain, summary);
  if (summary === null || segment === null) return chain.filter((id) => !omitted.has(id));
  const tail = chain.slice(segment.to).filter((id) => !omitted.has(id));
  return [...manifest.pinned, summary.id, ...tail];
}
