/** How the bytes of an answer are handed over, faults included. */
export interface Delivery {
  /** Wait before the status line. */
  readonly headerDelayMs?: number | undefined;
  /** Wait before each piece of the body but the first. */
  readonly pieceDelayMs?: number | undefined;
  /** Most bytes in one write, wherever that cuts: events and UTF-8 sequences are split. */
  readonly splitBytes?: number | undefined;
  /**
   * Stops short: after so many pieces of the body (0: after the headers; at the latest before the last piece), or before
   * anything was sent. `close` destroys the socket; `stall` sends nothing more until the client leaves.
   */
  readonly cut?: { readonly after: 'nothing' | number; readonly how: 'close' | 'stall' } | undefined;
}

/** An answer in bytes. Each piece is one write. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly pieces: readonly (string | Uint8Array)[];
  readonly delivery?: Delivery | undefined;
}

/** An error as a provider would send it; text and bytes are sent as they are, anything else as JSON. */
export interface Refusal {
  readonly kind: 'refusal';
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body: unknown;
  readonly delivery?: Delivery | undefined;
}

/** A whole JSON document, in two pieces so that it can be cut in the middle. */
export function jsonAnswer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const bytes = Buffer.from(isRaw ? body : JSON.stringify(body));
  const middle = Math.floor(bytes.length / 2);
  return {
    status,
    headers: { 'content-type': 'application/json', 'content-length': String(bytes.length), ...headers },
    pieces: [bytes.subarray(0, middle), bytes.subarray(middle)],
  };
}

/** A stream of server-sent events, one piece each. */
export function eventsAnswer(events: readonly string[]): Answer {
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
    pieces: events,
  };
}

export function refusalAnswer({ status, headers, body, delivery }: Refusal): Answer {
  return { ...jsonAnswer(status, body, headers), delivery };
}
