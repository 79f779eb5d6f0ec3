/** Reads a body to its end; null if it is longer than `limitBytes`, and then the rest is left unread. */
export async function readWhole(body: AsyncIterable<Uint8Array>, limitBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > limitBytes) return null;
    chunks.push(chunk);
  }
  return concatenate(chunks);
}

export function concatenate(chunks: readonly Uint8Array[]): Uint8Array {
  const only = chunks[0];
  if (chunks.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
