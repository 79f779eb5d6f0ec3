import type { Server, ServerResponse } from 'node:http';

/** How long a client may still take to send the rest of its request. */
const GRACE_MS = 5_000;

/**
 * Resolves when no request is being answered any more. One that has not come in full after a short grace is dropped, since nothing can
 * have been said to it; when `limit` aborts, all are: their clients see the connection end.
 */
export type Drain = (limit: AbortSignal) => Promise<void>;

/** Follows a server's requests from now on, so that it can be emptied. */
export function watchRequests(server: Server, graceMs: number = GRACE_MS): Drain {
  const open = new Set<ServerResponse>();
  const idle: (() => void)[] = [];
  server.on('request', ({ socket }, response: ServerResponse) => {
    // A response that waits for the one before it on its connection hears nothing when that closes.
    const gone = (): void => {
      socket.off('close', gone);
      open.delete(response);
      if (open.size === 0) for (const resolve of idle.splice(0)) resolve();
    };
    open.add(response);
    response.once('close', gone);
    socket.once('close', gone);
  });
  const drop = (isDropped: (response: ServerResponse) => boolean): void => {
    for (const { req } of [...open].filter(isDropped)) req.socket.destroy();
  };
  return async (limit) => {
    if (open.size === 0) return;
    const ended = new Promise<void>((resolve) => idle.push(resolve));
    const dropAll = (): void => drop(() => true);
    const grace = setTimeout(() => drop(({ req, headersSent }) => !req.complete && !headersSent), graceMs);
    limit.addEventListener('abort', dropAll);
    if (limit.aborted) dropAll();
    await ended;
    clearTimeout(grace);
    limit.removeEventListener('abort', dropAll);
  };
}
