import { newFaults } from '../core/check.js';
import type { Manifest, Summary } from '../core/ports.js';
import { manifestOf, render, substitutes, viewMessages } from '../core/render.js';
import type { View } from '../core/render.js';
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
  /** A usage chunk was asked for that the client did not ask for, so it is not shown to the client. */
  readonly hidesUsage: boolean;
}

/**
 * The request as the model shall read it: rendered from the spine (SPEC 4.1) and written over the client's own body. Where
 * the rendered list has a fault that the client's does not, the client's is sent (SPEC 4.7).
 */
export function dispatchOf(turn: Turn, active: Summary | null): Dispatch {
  const view = render(turn.spine, active);
  if (!substitutes(view) && !turn.thin) return untouched(turn, view);
  if (view.summary !== null) {
    const raw = viewMessages(turn.spine, render(turn.spine, null), turn.dialect.summaryMessage);
    if (newFaults(raw, viewMessages(turn.spine, view, turn.dialect.summaryMessage)).length > 0)
      return dispatchOf(turn, null);
  }

  const hidesUsage = turn.read.stream && !turn.read.includesUsage;
  const text = turn.dialect.write(turn.body.text, itemsOf(turn, view), {
    askForUsage: hidesUsage,
    alternate: insistsOnAlternation(new URL(turn.request.upstream.baseUrl).hostname),
  });
  return {
    body: new TextEncoder().encode(text),
    rewritten: true,
    view,
    manifest: manifestOf(turn.spine, view, turn.instructionDigests),
    hidesUsage,
  };
}

function untouched(turn: Turn, view: View): Dispatch {
  return {
    body: turn.body.original,
    rewritten: false,
    view,
    manifest: manifestOf(turn.spine, view, turn.instructionDigests),
    hidesUsage: false,
  };
}

function itemsOf(turn: Turn, view: View): readonly WireItem[] {
  const at = (indices: readonly number[]): readonly WireItem[] => indices.flatMap((index) => turn.wire[index] ?? []);
  return [
    ...turn.read.instructions.map((_, index): WireItem => ({ kind: 'kept', index })),
    ...at(view.pinned),
    ...(view.summary === null ? [] : [{ kind: 'summary', content: view.summary.content } as const]),
    ...at(view.tail),
  ];
}
