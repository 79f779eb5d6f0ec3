const PIECE_CHARACTERS = 24;

/** A value as one event without a name. */
export function sseData(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** A value as one event that bears the name of its `type`. */
export function sseTyped(value: Readonly<Record<string, unknown>> & { readonly type: string }): string {
  return `event: ${value.type}\n${sseData(value)}`;
}

/** Text in pieces of whole characters, as a stream brings it; none for no text. */
export function piecesOf(text: string): readonly string[] {
  return text.match(new RegExp(`[^]{1,${PIECE_CHARACTERS}}`, 'gu')) ?? [];
}
