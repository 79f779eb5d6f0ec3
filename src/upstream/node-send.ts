import { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import { SpillwayError } from '../core/errors.js';
import { BodyQueue } from './body-queue.js';
import { leaveOpen } from './leave-open.js';
import { decodeResponse } from './node-decode-response.js';
import type { SendUpstream } from './upstream.js';

export interface NodeSendOptions {
  /**
   * Longest silence of an upstream, until its headers and between two pieces of its body; null waits for ever, because
   * models think for minutes. Kept to within about a second.
   */
  readonly timeoutMs: number | null;
  readonly connectTimeoutMs?: number;
}

export interface NodeSend {
  readonly send: SendUpstream;
  /** Ends what still runs and closes every connection. */
  close(): Promise<void>;
}

/**
 * Sends over pooled keep-alive connections. Redirects are answers like any other, nothing is sent twice, and bodies are
 * streamed both ways as they are, whatever their encoding; only where `accept-encoding` asks for none and one comes all the same,
 * it is undone. An error of the request body's own iterable rejects as it is.
 */
export function createNodeSend(options: NodeSendOptions): NodeSend {
  const timeoutMs = options.timeoutMs ?? 0;
  const agent = new Agent({
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connectTimeout: options.connectTimeoutMs ?? 10_000,
  });

  const send: SendUpstream = ({ method, url, headers, body: requestBody, signal }) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const { origin, host, path } = splitUrl(url);
      let controller: Dispatcher.DispatchController | null = null;
      let body: BodyQueue | null = null;
      let uploadError: unknown;

      // Undici knows no way to cancel a request that waits for its connection: that one is refused in onRequestStart.
      const onAbort = (): void => {
        if (body) body.abort(signal.reason);
        else reject(signal.reason);
        controller?.abort(new Error('aborted'));
      };
      signal.addEventListener('abort', onAbort, { once: true });

      agent.dispatch(
        {
          origin,
          path,
          method,
          headers,
          body: isAsyncIterable(requestBody) ? upload(requestBody, (error) => (uploadError = error)) : requestBody,
        },
        {
          onRequestStart(started) {
            controller = started;
            if (signal.aborted) started.abort(new Error('aborted'));
          },
          onResponseStart(started, status) {
            if (status < 200) return;
            body = new BodyQueue({
              pause: () => started.pause(),
              resume: () => started.resume(),
              stop: () => started.abort(new Error('the reader left')),
            });
            const response = { status, headers: readHeaders(started.rawHeaders), body };
            resolve(headers['accept-encoding'] === 'identity' ? decodeResponse(response) : response);
            // A 304 may state the length of what it does not send (RFC 9110 8.6); undici takes that for a broken body.
            if (status === 304) body.end();
          },
          onResponseData(_, chunk) {
            body?.push(chunk);
          },
          onResponseEnd() {
            signal.removeEventListener('abort', onAbort);
            body?.end();
          },
          onResponseError(_, error) {
            signal.removeEventListener('abort', onAbort);
            const failure = error === uploadError ? error : describe(error, host, timeoutMs, body !== null);
            if (body) body.fail(failure);
            else reject(failure);
          },
        },
      );
    });

  return { send, close: () => agent.destroy() };
}

/** By hand, because the URL class rewrites some characters of a path and query, and they are to arrive as they came. */
function splitUrl(url: string): { readonly origin: string; readonly host: string; readonly path: string } {
  const { origin, host } = new URL(url);
  const path = url.replace(/^[a-z]+:\/\/[^/?#]*/i, '');
  return { origin, host, path: path.startsWith('/') ? path : `/${path}` };
}

function isAsyncIterable(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

function upload(body: AsyncIterable<Uint8Array>, onError: (error: unknown) => void): Readable {
  // Undici listens for errors only as long as it wants the body; one that comes later would end the process.
  return Readable.from(leaveOpen(body, onError), { objectMode: false }).on('error', () => undefined);
}

/** Pairs of names and values from the flat list of the parser; Latin-1, as HTTP has it and as they are sent on. */
function readHeaders(raw: Dispatcher.DispatchController['rawHeaders']): (readonly [string, string])[] {
  if (!Array.isArray(raw)) return [];
  const flat = raw.map((item) => (typeof item === 'string' ? item : item.toString('latin1')));
  const headers: (readonly [string, string])[] = [];
  for (let index = 0; index + 1 < flat.length; index += 2) {
    headers.push([(flat[index] ?? '').toLowerCase(), flat[index + 1] ?? '']);
  }
  return headers;
}

function describe(error: Error, host: string, timeoutMs: number, answered: boolean): SpillwayError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return new SpillwayError('upstream_timeout', `${host} sent nothing for ${timeoutMs} ms`, null, error);
  }
  const what = answered
    ? `${host} broke its response off (${code})`
    : `no response from ${host} (${code}): check SPILLWAY_UPSTREAM_URL, or its entry in SPILLWAY_UPSTREAMS`;
  return new SpillwayError('upstream_unreachable', what, null, error);
}
