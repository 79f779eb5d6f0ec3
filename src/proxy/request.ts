import type { DialectName } from '../dialects/dialect.js';
import type { Sink } from './sink.js';

/** Where requests of one path prefix or dialect go. */
export interface UpstreamRoute {
  /** Path prefix that selects it, for example `/groq`; empty for the default one. */
  readonly prefix: string;
  /** What a client of that provider would set as its base URL, without a trailing slash. */
  readonly baseUrl: string;
  /** Sent instead of the client's own credential, if set. */
  readonly apiKey: string | null;
}

/** A request of a client, its prefix already taken off. */
export interface ProxyRequest {
  readonly method: string;
  /** Begins with `/v1/`. */
  readonly path: string;
  /** With its `?`, or empty. */
  readonly query: string;
  /** Lower-case names; repeated ones joined as HTTP says. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Uint8Array> | null;
  /** The dialect that the path and method belong to, or null: then it passes through untouched. */
  readonly dialect: DialectName | null;
  readonly upstream: UpstreamRoute;
  /** When the request arrived, by the monotonic clock, in milliseconds. */
  readonly arrivedAt: number;
}

/** Serves one request to its end; rejects only for a defect of our own. Errors it says itself go to the sink. */
export type Proxy = (request: ProxyRequest, sink: Sink) => Promise<void>;
