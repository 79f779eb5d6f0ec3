/** What surrounds a command line. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard output: what was asked for. */
  say(text: string): void;
  /** Standard error: everything else. */
  note(text: string): void;
  /** Resolves when the user wants a server to stop. */
  untilStopped(): Promise<void>;
}
