import type { Clock } from '../core/ports.js';
import type { WindowScope } from '../core/windows.js';
import { discoverWindows } from './discover-windows.js';
import type { SendUpstream } from './upstream.js';
import { withinTime } from './within-time.js';

/** A window that an upstream's list of models told of. */
export interface DiscoveredWindow {
  readonly tokens: number;
  readonly discoveredAt: number;
  /** When the list will be asked for again. */
  readonly expiresAt: number;
}

/** How the list is asked for: with the credential of a request that the upstream has just served. */
export interface ModelListRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The lists of models of upstreams, as each tenant sees them (SPEC 6.5). */
export interface Discovery {
  /** What is known now; null if nothing is. Never waits and never asks. */
  windowOf(scope: WindowScope, model: string): DiscoveredWindow | null;
  /** Asks in the background for a list that is missing or old, unless somebody does already. */
  refresh(scope: WindowScope, request: () => ModelListRequest): void;
  /** Breaks off what is under way. */
  close(): Promise<void>;
}

/** Local servers load models anew with other windows. */
const KEEP_MS = 60 * 60_000;
/** A list that could not be had or read is not asked for again this long. */
const RETRY_MS = 10 * 60_000;
const TIMEOUT_MS = 10_000;
const LIMIT_BYTES = 8 * 1024 * 1024;
/** The longest unasked go first. */
const MOST_LISTS = 200;

interface List {
  readonly windows: ReadonlyMap<string, number>;
  readonly askedAt: number;
  readonly askAgainAt: number;
}

export function createDiscovery(deps: { readonly send: SendUpstream; readonly clock: Clock }): Discovery {
  const lists = new Map<string, List>();
  /** Each with a signal of its own: in a Worker none may be shared by requests. */
  const running = new Map<string, { readonly done: Promise<void>; readonly closing: AbortController }>();
  let closed = false;

  const keep = (key: string, list: List): void => {
    lists.delete(key);
    lists.set(key, list);
    const [oldest] = lists.keys();
    if (lists.size > MOST_LISTS && oldest !== undefined) lists.delete(oldest);
  };
  const ask = async (key: string, request: ModelListRequest, closing: AbortSignal): Promise<void> => {
    const windows = await withinTime(TIMEOUT_MS, closing, (signal) => fetchWindows(request, deps.send, signal)).catch(
      () => null,
    );
    const now = deps.clock();
    // What was known is better than nothing.
    const known = lists.get(key)?.windows ?? new Map<string, number>();
    keep(key, { windows: windows ?? known, askedAt: now, askAgainAt: now + (windows === null ? RETRY_MS : KEEP_MS) });
  };
  return {
    windowOf(scope, model) {
      const list = lists.get(keyOf(scope));
      const tokens = list?.windows.get(model);
      if (list === undefined || tokens === undefined) return null;
      return { tokens, discoveredAt: list.askedAt, expiresAt: list.askAgainAt };
    },
    refresh(scope, request) {
      const key = keyOf(scope);
      const list = lists.get(key);
      const isFresh = list !== undefined && list.askAgainAt > deps.clock();
      if (isFresh || running.has(key) || closed) return;
      const closing = new AbortController();
      const done = ask(key, request(), closing.signal).finally(() => running.delete(key));
      running.set(key, { done, closing });
    },
    async close() {
      closed = true;
      for (const { closing } of running.values()) closing.abort();
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}

/** Null if the upstream answers with anything but a list in JSON; rejects as `send` and the body do. */
async function fetchWindows(
  request: ModelListRequest,
  send: SendUpstream,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number> | null> {
  const headers = { ...request.headers, 'accept-encoding': 'identity' };
  const response = await send({ method: 'GET', url: request.url, headers, body: null, signal });
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  // Leaving the loop ends the request.
  for await (const chunk of response.body) {
    bytes += chunk.byteLength;
    if (bytes > LIMIT_BYTES || response.status !== 200) return null;
    text += decoder.decode(chunk, { stream: true });
  }
  return response.status === 200 ? discoverWindows(JSON.parse(text + decoder.decode())) : null;
}

function keyOf({ tenant, upstream }: WindowScope): string {
  return JSON.stringify([tenant, upstream]);
}
