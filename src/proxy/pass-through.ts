import { requestHeaders, responseHeaders } from '../upstream/headers.js';
import { requestUrl } from '../upstream/request-url.js';
import type { SendUpstream } from '../upstream/upstream.js';
import type { RequestLog } from './request-log.js';
import type { ProxyRequest } from './request.js';
import { infoHeaders } from './response-info.js';
import type { Sink } from './sink.js';

export interface PassThroughOptions {
  /** The bytes that were read already, or null to stream the request's own body. */
  readonly body: Uint8Array | null;
  /** Why it passes: `none`, `unread`, `bypass`, … */
  readonly action: string;
  readonly storeUnavailable: boolean;
  /** Monotonic milliseconds, the clock of `ProxyRequest.arrivedAt`. */
  now(): number;
}

/** Forwards a request as it came and its answer as it comes: neither is read, nothing is recorded. */
export async function passThrough(
  request: ProxyRequest,
  sink: Sink,
  log: RequestLog,
  send: SendUpstream,
  options: PassThroughOptions,
): Promise<void> {
  const overheadMs = options.now() - request.arrivedAt;
  const response = await send({
    method: request.method,
    url: requestUrl(request.upstream.baseUrl, request.path, request.query),
    headers: requestHeaders(request.headers, { apiKey: request.upstream.apiKey, readsReply: false, rewritten: false }),
    body: options.body ?? request.body,
    signal: sink.closed,
  });
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
    for await (const chunk of response.body) await sink.write(chunk);
    await sink.end();
    log.add({ outcome: 'complete' });
  } catch {
    log.add({ outcome: sink.closed.aborted ? 'cancelled' : 'failed' });
    sink.abort();
  }
}
