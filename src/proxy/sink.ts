/** Where a response goes: a Node response, or a Workers stream. Its owner decides when the client has left. */
export interface Sink {
  /** Status and headers; once, before any byte of the body. */
  start(status: number, headers: readonly (readonly [name: string, value: string])[]): void;
  /** Resolves when more may be written; also once the client has left, after which writes do nothing. */
  write(chunk: Uint8Array): Promise<void>;
  end(): Promise<void>;
  /** Breaks the response off in a way the client can tell from an ordinary end. */
  abort(): void;
  /** Aborted when the client leaves before the end. */
  readonly closed: AbortSignal;
}
