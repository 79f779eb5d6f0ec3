import { SpillwayError } from '../core/errors.js';
import { requestHeaders, responseHeaders } from '../upstream/headers.js';
import { requestUrl } from '../upstream/request-url.js';
import type { SendUpstream } from '../upstream/upstream.js';
import { readWhole } from './read-whole.js';
import type { RequestLog } from './request-log.js';
import type { ProxyRequest } from './request.js';
import { infoHeaders } from './response-info.js';
import type { Sink } from './sink.js';

export interface PassThroughOptions {
  /** The bytes that were read already, or null to stream the request's own body. */
  readonly body: Uint8Array | null;
  /** `body` is no longer the client's bytes. */
  readonly rewritten: boolean;
  /** Why it passes: `none`, `unread`, `bypass`, … */
  readonly action: string;
  readonly storeUnavailable: boolean;
  /** Monotonic milliseconds, the clock of `ProxyRequest.arrivedAt`. */
  now(): number;
  /** Whether an error of the upstream is not to be passed on. */
  declines?(status: number, body: string): boolean;
}

/** Most bytes of an error that are read to judge it. */
const ERROR_LIMIT_BYTES = 32 * 1024 * 1024;

/** Forwards a request without recording it, and its answer as it comes. False: the answer was declined, and nothing was sent. */
export async function passThrough(
  request: ProxyRequest,
  sink: Sink,
  log: RequestLog,
  send: SendUpstream,
  options: PassThroughOptions,
): Promise<boolean> {
  const overheadMs = options.now() - request.arrivedAt;
  const { apiKey } = request.upstream;
  const response = await send({
    method: request.method,
    url: requestUrl(request.upstream.baseUrl, request.path, request.query),
    headers: requestHeaders(request.headers, {
      apiKey,
      readsReply: options.declines !== undefined,
      rewritten: options.rewritten,
    }),
    body: options.body ?? request.body,
    signal: sink.closed,
  });
  let { body } = response;
  if (options.declines !== undefined && response.status >= 400) {
    const error = await errorOf(response.body);
    if (options.declines(response.status, new TextDecoder().decode(error))) return false;
    body = chunksOf(error);
  }
  const info = infoHeaders({
    conversation: null,
    head: null,
    call: null,
    action: options.action,
    prepared: null,
    overflow: null,
    limitTokens: null,
    overheadMs,
    storeUnavailable: options.storeUnavailable,
  });
  sink.start(response.status, [...responseHeaders(response.headers, { rewritten: false }), ...info]);
  log.add({ status: response.status, action: options.action, overheadMs: Math.round(overheadMs * 10) / 10 });
  try {
    for await (const chunk of body) await sink.write(chunk);
    await sink.end();
    log.add({ outcome: 'complete' });
  } catch {
    log.add({ outcome: sink.closed.aborted ? 'cancelled' : 'failed' });
    sink.abort();
  }
  return true;
}

async function errorOf(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const bytes = await readWhole(body, ERROR_LIMIT_BYTES);
  if (bytes !== null) return bytes;
  throw new SpillwayError('upstream_unreachable', 'the upstream answered with an error that does not end');
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
