/** What surrounds a command line. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard output: what was asked for. */
  say(text: string): void;
  /** Standard output, as it is: resolves once it was taken, rejects if nobody takes it any more. */
  write(text: string): Promise<void>;
  /** Standard input. */
  input(): AsyncIterable<Uint8Array>;
  /** Standard error: everything else. */
  note(text: string): void;
  /** Resolves when the user wants a server to stop, and asked for again, when they want it once more. */
  untilStopped(): Promise<void>;
}
