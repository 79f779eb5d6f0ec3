import type { Sink } from '../proxy/sink.js';
import type { Caller } from './auth.js';

export interface Incoming extends Caller {
  /** Null where the request has none. Leaving its loop early keeps the connection, so that an answer still arrives. */
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** What differs between the homes of the app; `Bindings` is what a home passes along with each request. */
export interface Platform<Bindings extends object> {
  /** The request as it came; repeated headers joined as HTTP says. */
  incoming(request: Request, bindings: Bindings): Incoming;
  /** Lets `serve` write the response itself. Rejects if it failed before a byte was sent. */
  respond(bindings: Bindings, serve: (sink: Sink) => Promise<void>): Promise<Response>;
}
