import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { jsonAnswer } from './answer.js';
import { withoutCredentials } from './credential.js';
import { deliver } from './deliver.js';
import { parseBody, readBody } from './read-body.js';
import type { MutableRecord, RecordedRequest, RequestLog } from './request-log.js';
import { plain } from './routed.js';
import type { Routed } from './routed.js';
import { isMessagesPath, requestIdOf } from './routes.js';
import type { Route } from './routes.js';

/** Receives a request, records it from its first byte to its end, and answers it as `route` says. */
export function createExchange(
  log: RequestLog,
  route: Route,
): (request: IncomingMessage, response: ServerResponse) => void {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const headers = flatHeaders(request.headers);
    const record = log.add(newRecord(request, headers));
    const update = (changes: Partial<MutableRecord>) => {
      Object.assign(record, changes);
      log.changed();
    };
    const left = new AbortController();
    response.once('close', () => {
      left.abort();
      if (record.state === 'receiving' || record.state === 'answering')
        update({ state: 'aborted', endedAt: Date.now() });
    });
    log.changed();

    const bytes = await readBody(request, (count) => update({ bytesReceived: record.bytesReceived + count }));
    update({ bytes, body: parseBody(bytes, headers['content-encoding'] ?? ''), state: 'answering' });
    const { answer, ...routed } = await route(record, headers).catch(failedRoute);
    if (left.signal.aborted) return;
    update({ ...routed, status: answer.status });
    response.setHeader('server', 'spillway-simulator');
    response.setHeader(isMessagesPath(record.path) ? 'request-id' : 'x-request-id', requestIdOf(record));
    const end = await deliver(answer, response, left.signal);
    if (end === 'left') return;
    update({ state: end === 'sent' ? 'answered' : 'cut', endedAt: Date.now() });
    if (end === 'cut') response.destroy();
  };

  return (request, response) => {
    // What can fail here is the connection, and that is recorded when it closes.
    serve(request, response).catch(() => response.destroy());
  };
}

/** A script of the caller's threw: the request fails, the server goes on. */
function failedRoute(error: unknown): Routed {
  const body = { error: { message: `simulator: ${String(error)}`, type: 'server_error', param: null, code: null } };
  return plain('other', jsonAnswer(500, body));
}

function flatHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}

function newRecord(
  request: IncomingMessage,
  headers: Readonly<Record<string, string>>,
): Omit<RecordedRequest, 'index'> {
  const target = request.url ?? '/';
  const queryAt = target.includes('?') ? target.indexOf('?') : target.length;
  return {
    kind: 'other',
    method: request.method ?? 'GET',
    path: target.slice(0, queryAt),
    query: target.slice(queryAt),
    headers: withoutCredentials(headers),
    bytesReceived: 0,
    bytes: new Uint8Array(),
    body: undefined,
    promptTokens: null,
    prefix: null,
    state: 'receiving',
    status: null,
    reply: null,
    arrivedAt: Date.now(),
    endedAt: null,
  };
}
