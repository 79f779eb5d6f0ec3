/**
 * Reads `source` without ever closing it. Leaving the loop over a Node request destroys its socket, and with it the answer
 * that the client still has to get: of a body that is too large, or of an upstream that refused it half way. `onError` is
 * told of the source's own failure, and of no other.
 */
export function leaveOpen(
  source: AsyncIterable<Uint8Array>,
  onError?: (error: unknown) => void,
): AsyncIterable<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  async function next(): Promise<IteratorResult<Uint8Array, unknown>> {
    try {
      return await iterator.next();
    } catch (error) {
      onError?.(error);
      throw error;
    }
  }
  return { [Symbol.asyncIterator]: () => ({ next }) };
}
