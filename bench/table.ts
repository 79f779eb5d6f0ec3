/** One result of the bench: for people as it is, for programs as JSON. */
export interface Table {
  readonly title: string;
  /** What was compared, and what the figures are. */
  readonly note: string;
  readonly rows: readonly Readonly<Record<string, string | number>>[];
}
