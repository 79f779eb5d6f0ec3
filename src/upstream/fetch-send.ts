import { SpillwayError } from '../core/errors.js';
import type { SendUpstream, UpstreamRequest } from './upstream.js';

/** What fetch decodes on every platform; the headers that described the encoded bytes are then no longer true. */
const DECODED_BY_FETCH = new Set(['gzip', 'br']);

/** Sends with `fetch`, for Workers: streamed both ways, redirects not followed. The runtime bounds the time. */
export function createFetchSend(fetch: typeof globalThis.fetch): SendUpstream {
  return async ({ method, url, headers, body, signal }) => {
    let response: Response;
    try {
      // `duplex` is what fetch asks for before it streams a request body.
      response = await fetch(url, { method, headers, body: asBody(body), signal, redirect: 'manual', duplex: 'half' });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw new SpillwayError('upstream_unreachable', `no response from ${new URL(url).host}`, null, error);
    }
    const decoded = DECODED_BY_FETCH.has(response.headers.get('content-encoding')?.toLowerCase() ?? '');
    return {
      status: response.status,
      headers: [...response.headers].filter(
        ([name]) => !decoded || (name !== 'content-encoding' && name !== 'content-length'),
      ),
      body: response.body ?? new ReadableStream({ start: (controller) => controller.close() }),
    };
  };
}

function asBody(body: UpstreamRequest['body']): Uint8Array | string | ReadableStream | null {
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) return body;
  return body instanceof ReadableStream ? body : ReadableStream.from(body);
}
