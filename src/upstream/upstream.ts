/** A request to a provider. Header names are lower case; hop-by-hop headers are already gone. */
export interface UpstreamRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | AsyncIterable<Uint8Array> | null;
  /** Aborting ends the upstream request at once, whatever state it is in. */
  readonly signal: AbortSignal;
}

export interface UpstreamResponse {
  readonly status: number;
  /** As received, in order, repeated names kept; lower-case names. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Back-pressure is the reader's pace; leaving the loop early ends the upstream request. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Sends one request. Rejects with `SpillwayError`: `upstream_unreachable` (no connection, or it broke before the
 * headers), `upstream_timeout`; with the signal's reason when aborted. A body that breaks rejects in the reader's loop.
 */
export type SendUpstream = (request: UpstreamRequest) => Promise<UpstreamResponse>;
