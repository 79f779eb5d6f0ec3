/**
 * Runs `work` with a signal that aborts with `outer`, or with a `TimeoutError` after `limitMs`. It holds the timer and the listener
 * itself: Node may collect the sources of a composite signal while somebody waits for it, and then it never aborts.
 */
export async function withinTime<T>(
  limitMs: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const leave = (): void => limit.abort(outer.reason);
  const timer = setTimeout(() => limit.abort(new DOMException('The time is over.', 'TimeoutError')), limitMs);
  if (outer.aborted) leave();
  else outer.addEventListener('abort', leave, { once: true });
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener('abort', leave);
  }
}
