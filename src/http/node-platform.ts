import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Sink } from '../proxy/sink.js';
import { defectOf, type Defect } from './errors.js';
import type { Platform } from './platform.js';

/**
 * The app on Node: responses of `/v1` are written straight to the socket's response, past hono. `reportDefect` hears of
 * a failure after the first byte, when the client can no longer be told.
 */
export function nodePlatform(
  makeSink: (outgoing: ServerResponse) => Sink,
  reportDefect: (defect: Defect) => void,
): Platform<HttpBindings> {
  return {
    incoming(_, { incoming }) {
      return {
        method: incoming.method ?? 'GET',
        headers: headersOf(incoming),
        remoteAddress: incoming.socket.remoteAddress ?? null,
        body: bodyOf(incoming),
      };
    },
    async respond({ outgoing }, serve) {
      const sink = makeSink(outgoing);
      try {
        await serve(sink);
      } catch (error) {
        if (!outgoing.headersSent) throw error;
        sink.abort();
        reportDefect(defectOf(error));
      }
      return RESPONSE_ALREADY_SENT;
    },
  };
}

function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  const pairs = Object.entries(headers).flatMap(([name, value]): readonly (readonly [string, string])[] => {
    if (value === undefined) return [];
    return [[name, typeof value === 'string' ? value : value.join(', ')]];
  });
  return Object.fromEntries(pairs);
}

function bodyOf(incoming: IncomingMessage): AsyncIterable<Uint8Array> | null {
  const { 'content-length': length, 'transfer-encoding': encoding } = incoming.headers;
  if (encoding === undefined && (length === undefined || length === '0')) return null;
  // When its reader stops early the default iterator destroys the request, and then nobody takes in what the client still
  // sends: the connection would hang.
  return { [Symbol.asyncIterator]: (): AsyncIterator<Uint8Array> => incoming.iterator({ destroyOnReturn: false }) };
}
