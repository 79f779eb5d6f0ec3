import { SpillwayError } from './core/errors.js';
import { createFetchSend } from './upstream/fetch-send.js';
import { isUpgrade, requestHeaders, responseHeaders } from './upstream/headers.js';
import { requestUrl } from './upstream/request-url.js';

interface Env {
  readonly SPILLWAY_UPSTREAM_URL: string;
}

const send = createFetchSend((input, init) => fetch(input, init));

/**
 * The Worker: passes every request under `/v1` on to one upstream, streamed both ways, and answers `/health`. It has no
 * ledger, so conversations are neither recorded nor compacted. Web-standard APIs only.
 */
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    if (pathname === '/health') return Response.json({ status: 'ok' });
    if (pathname !== '/v1' && !pathname.startsWith('/v1/')) return failure(404, 'not_found', 'no such path');
    try {
      return await pass(request, requestUrl(env.SPILLWAY_UPSTREAM_URL, pathname, search));
    } catch (error) {
      if (!(error instanceof SpillwayError)) throw error;
      return failure(error.code === 'invalid_request' ? 400 : 502, error.code, error.message);
    }
  },
};

async function pass(request: Request, url: string): Promise<Response> {
  const given = Object.fromEntries(request.headers);
  if (isUpgrade(given)) return failure(400, 'invalid_request', 'protocol upgrades are not proxied');
  const reply = await send({
    method: request.method,
    url,
    // The runtime decodes what it reads, so the reply is asked for unencoded.
    headers: requestHeaders(given, { apiKey: null, readsReply: true, rewritten: false }),
    body: request.body,
    signal: request.signal,
  });
  const headers = new Headers();
  for (const [name, value] of responseHeaders(reply.headers, { rewritten: false })) headers.append(name, value);
  // These have no body, and may not be given an empty one either.
  const isBodiless = [204, 205, 304].includes(reply.status);
  return new Response(isBodiless ? null : asStream(reply.body), { status: reply.status, headers });
}

/** The upstream's own stream where it is one: the runtime then moves the bytes without waking the script. */
function asStream(body: AsyncIterable<Uint8Array>): ReadableStream {
  return body instanceof ReadableStream ? body : ReadableStream.from(body);
}

function failure(status: number, code: string, message: string): Response {
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return Response.json({ error: { message, type, param: null, code } }, { status });
}
