/**
 * What a stated limit bounds, which decides what may be remembered of it (SPEC 6.5).
 * `window`: input and output together; may be learned as the model's window.
 * `input`: the input alone; the window is at least this, and a prompt of this size fits.
 * `tier`: what this account, plan or server allows at this moment; true for the retry, not for the model.
 * `other`: implausible, of unknown nature, or contradicted by the other numbers; nothing may be learned from it.
 */
export type LimitTrust = 'window' | 'input' | 'tier' | 'other';

/** The numbers of an overflow, in tokens, as the provider stated them; null is "not stated". */
export interface StatedCounts {
  readonly limit: number | null;
  /** Null exactly if `limit` is. */
  readonly limitTrust: LimitTrust | null;
  /** What the request needed: input and requested output together where both are stated. */
  readonly used: number | null;
  readonly usedInput: number | null;
  readonly usedOutput: number | null;
  /** The provider stopped counting early: it used at least this. */
  readonly usedIsFloor: boolean;
  /** By how much the limit was passed, where only that or that too is stated. */
  readonly excess: number | null;
}

/**
 * `context`: the prompt does not fit. `fit`: the prompt alone would, but not with the output that was asked for.
 * `bytes`: a cap on the body's size, in bytes or characters; its counts are null, since none of them is in tokens.
 * `reason` names the rule for the log; it never holds text of the body (SPEC 6.1).
 */
export interface Overflow extends StatedCounts {
  readonly kind: 'context' | 'fit' | 'bytes';
  readonly reason: string;
}

export type Verdict = Overflow | { readonly kind: 'none'; readonly reason: string };

export const NO_COUNTS: StatedCounts = {
  limit: null,
  limitTrust: null,
  used: null,
  usedInput: null,
  usedOutput: null,
  usedIsFloor: false,
  excess: null,
};
