import type { Segment } from '../ports.js';

/** A tool result that is sent as other text. Plain data: it is stored with the call that was made with it (SPEC 4.6). */
export interface ReducedResult {
  /** The node that carries the result. */
  readonly node: string;
  readonly callId: string;
  readonly text: string;
  /** How much shorter the message is by it, in tokens of the estimator. */
  readonly savedTokens: number;
}

/** A task summary in the place of a run of execution history (SPEC 7.4). */
export interface Checkpoint extends Segment {
  readonly content: string;
  /** Of the message it is sent as. */
  readonly tokens: number;
}

/** What one request's view substitutes beside the active summary. Nothing of it is ever a node (SPEC 7.5). */
export interface Reduction {
  readonly results: readonly ReducedResult[];
  /** In the order of the spine; they do not overlap. */
  readonly checkpoints: readonly Checkpoint[];
}

export const NO_REDUCTION: Reduction = { results: [], checkpoints: [] };

export function isEmptyReduction(reduction: Reduction): boolean {
  return reduction.results.length === 0 && reduction.checkpoints.length === 0;
}
