import type { HeaderPair } from '../upstream/headers.js';
import type { Prepared } from './prepare.js';

/** What a response says about Spillway's part in it. A field that does not apply is null and sends no header. */
export interface ResponseInfo {
  readonly conversation: string | null;
  /** The last node that is durable: the request's own end (SPEC 2.4). */
  readonly head: string | null;
  readonly call: string | null;
  readonly action: string;
  readonly prepared: (Pick<Prepared, 'before' | 'after'> & { readonly replaced: number }) | null;
  /** The rule by which an overflow was seen before the response began, recovered from or not; null without one. */
  readonly overflow: string | null;
  /** Most tokens of input that Spillway lets through, or null while the window is unknown. */
  readonly limitTokens: number | null;
  /** Milliseconds between the request's arrival and its leaving for the upstream, summaries included. */
  readonly overheadMs: number;
  /** Set when the ledger could not be written: with the request, or, where `head` is known, with the reply. */
  readonly storeUnavailable: boolean;
}

export function infoHeaders(info: ResponseInfo): readonly HeaderPair[] {
  const values: readonly (readonly [string, string | null])[] = [
    ['x-spillway-conversation', info.conversation],
    ['x-spillway-head', info.head],
    ['x-spillway-call', info.call],
    ['x-spillway-action', info.action],
    ['x-spillway-overflow', info.overflow],
    ['x-spillway-tokens-before', info.prepared?.before?.tokens.toString() ?? null],
    ['x-spillway-tokens-after', info.prepared?.after?.tokens.toString() ?? null],
    // `bound`: no tokenizer ran, the bytes alone show that it fits.
    ['x-spillway-tokens-kind', info.prepared?.after?.kind ?? null],
    ['x-spillway-tokens-saved', saved(info.prepared)],
    ['x-spillway-replaced', replaced(info.prepared)],
    ['x-spillway-limit', info.limitTokens?.toString() ?? null],
    ['x-spillway-overhead-ms', info.overheadMs.toFixed(1)],
    ['x-spillway-store', info.storeUnavailable ? 'unavailable' : null],
  ];
  return values.flatMap(([name, value]): readonly HeaderPair[] => (value === null ? [] : [[name, value]]));
}

/** Tokens that this request's own work took away; null if there was none. */
function saved(prepared: ResponseInfo['prepared']): string | null {
  const tokens = (prepared?.before?.tokens ?? 0) - (prepared?.after?.tokens ?? 0);
  return tokens > 0 ? tokens.toString() : null;
}

/** How many tool results and runs stand shortened in it, made now or earlier in its tool loop; null if none. */
function replaced(prepared: ResponseInfo['prepared']): string | null {
  const count = prepared?.replaced ?? 0;
  return count > 0 ? count.toString() : null;
}
