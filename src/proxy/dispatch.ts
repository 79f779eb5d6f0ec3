import { newFaults } from '../core/check.js';
import { SpillwayError } from '../core/errors.js';
import type { Instruction, Manifest, Summary } from '../core/ports.js';
import { manifestOf, render, substitutes, viewMessages } from '../core/render.js';
import type { Entry, View } from '../core/render.js';
import { isEmptyReduction, NO_REDUCTION } from '../core/request/reduction.js';
import type { Reduction } from '../core/request/reduction.js';
import type { WireItem } from '../dialects/dialect.js';
import { insistsOnAlternation } from '../dialects/vendors.js';
import type { Turn } from './turn.js';

/** A request ready to leave. */
export interface Dispatch {
  readonly body: Uint8Array;
  /** False: the very bytes that came in (SPEC 4.3). */
  readonly rewritten: boolean;
  readonly view: View;
  readonly manifest: Manifest;
  /** The view's reduction as it is stored; null if there is none. */
  readonly reduction: Instruction | null;
  /** A usage chunk was asked for that the client did not ask for, so it is not shown to the client. */
  readonly hidesUsage: boolean;
}

/**
 * The request as the model shall read it: rendered from the spine (SPEC 4.1) and written over the client's own body. Where
 * the rendered list has a fault that the client's does not, the client's is sent (SPEC 4.7). Throws `thread_not_found` for a request
 * that would have to be rewritten and cannot be.
 */
export function dispatchOf(turn: Turn, active: Summary | null, reduction: Reduction = NO_REDUCTION): Dispatch {
  const view = render(turn.spine, active, reduction);
  if (!substitutes(view) && !turn.thin) return untouched(turn, view);
  if (substitutes(view)) {
    const raw = viewMessages(turn.spine, render(turn.spine, null), turn.dialect);
    if (newFaults(raw, viewMessages(turn.spine, view, turn.dialect)).length > 0)
      return withoutLastSubstitution(turn, view);
  }

  if (!turn.read.rewritable) throw mustSendAll();
  const hidesUsage = turn.read.stream && !turn.read.includesUsage;
  const text = turn.dialect.write(turn.body.text, itemsOf(turn, view), {
    askForUsage: hidesUsage,
    alternate: insistsOnAlternation(new URL(turn.request.upstream.baseUrl).hostname),
  });
  return {
    body: new TextEncoder().encode(text),
    rewritten: true,
    ...frozen(turn, view),
    hidesUsage,
  };
}

/** SPEC 1.7: what only the upstream holds cannot be rendered, but the client has it and sends it all when told so. */
function mustSendAll(): SpillwayError {
  const reason = 'what this thread holds no longer fits and has to be shortened: send its whole history';
  return new SpillwayError('thread_not_found', reason, 'thread');
}

function untouched(turn: Turn, view: View): Dispatch {
  return {
    body: turn.body.original,
    rewritten: turn.body.rewritten,
    ...frozen(turn, view),
    hidesUsage: false,
  };
}

/** How many tool results and runs of a dispatched view stand shortened (SPEC 7). */
export function replacedIn({ view }: Dispatch): number {
  return view.reduction.results.length + view.reduction.checkpoints.length;
}

/** Request-local substitutions go first, then the summary: what is left is the client's own list. */
function withoutLastSubstitution(turn: Turn, view: View): Dispatch {
  return dispatchOf(turn, isEmptyReduction(view.reduction) ? null : view.summary);
}

/** A view with all that it takes to render it again (SPEC 4.6). */
function frozen(turn: Turn, view: View): Pick<Dispatch, 'view' | 'manifest' | 'reduction'> {
  const content = isEmptyReduction(view.reduction) ? null : JSON.stringify(view.reduction);
  const reduction = content === null ? null : { digest: turn.hash(content), content };
  const digests = { instructions: turn.instructionDigests, reduction: reduction?.digest ?? null };
  return { view, manifest: manifestOf(turn.spine, view, digests), reduction };
}

function itemsOf(turn: Turn, view: View): readonly WireItem[] {
  const at = (indices: readonly number[]): readonly WireItem[] => indices.flatMap((index) => turn.wire[index] ?? []);
  return [
    ...turn.read.instructions.map((_, index): WireItem => ({ kind: 'kept', index })),
    ...at(view.pinned),
    ...(view.summary === null ? [] : [{ kind: 'summary', content: view.summary.content } as const]),
    ...view.tail.flatMap((entry) => tailItem(turn, entry) ?? []),
  ];
}

function tailItem(turn: Turn, entry: Entry): WireItem | null {
  if (entry.kind === 'checkpoint') return { kind: 'summary', content: entry.checkpoint.content };
  const item = turn.wire[entry.index];
  if (item === undefined || entry.kind === 'message') return item ?? null;
  return { kind: 'reduced', item, results: new Map(entry.results.map((result) => [result.callId, result.text])) };
}
