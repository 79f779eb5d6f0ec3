/** Waits that many milliseconds, or until the signal aborts; never rejects. */
export type Sleep = (durationMs: number, signal: AbortSignal) => Promise<void>;

export const sleep: Sleep = (durationMs, signal) =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, durationMs);
    signal.addEventListener('abort', end);
  });
