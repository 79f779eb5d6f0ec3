/** Bytes of a text in UTF-8; a lone surrogate counts as the replacement that UTF-8 has for it. */
export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}
