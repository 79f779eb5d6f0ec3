import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { getRequestListener, RequestError, type HttpBindings } from '@hono/node-server';
import type { Hono } from 'hono';
import { SpillwayError } from '../core/errors.js';
import { defectOf, errorForm, errorResponse, type Defect } from './errors.js';
import { answerClientError } from './node-client-error.js';

/** Longer than clients and load balancers keep an idle connection, so that it is they who close it. */
const KEEP_ALIVE_MS = 75_000;

/** The app behind node:http, not yet listening. A request too broken for the app is answered in the same error form. */
export function createNodeServer(
  app: Hono<{ Bindings: HttpBindings }>,
  reportDefect: (defect: Defect) => void,
): Server {
  const listener = getRequestListener(app.fetch, {
    // With hono's own classes in place of the global ones an answer to HEAD that is already sent would be sent again.
    overrideGlobalObjects: false,
    errorHandler(error) {
      if (error instanceof RequestError) {
        return errorResponse(errorForm(new SpillwayError('invalid_request', 'The request line or Host is malformed.')));
      }
      reportDefect(defectOf(error));
      return errorResponse(errorForm(error));
    },
  });
  /** The latest response on each connection. */
  const answering = new WeakMap<Duplex, ServerResponse>();
  // A request may be an upload of many minutes; its headers still have node's own limit of time.
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (incoming, outgoing) => {
    answering.set(incoming.socket, outgoing);
    void listener(incoming, outgoing);
  });
  // Past a number of headers node would leave the rest away in silence, credentials among them; their size is limited anyhow.
  server.maxHeadersCount = 0;
  server.on('clientError', (error, socket) => {
    const current = answering.get(socket);
    answerClientError(error, socket, current?.writableFinished === false ? current : null);
  });
  return server;
}
