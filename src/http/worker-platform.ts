import { defectOf, type Defect } from './errors.js';
import type { Platform } from './platform.js';
import { createWorkerSink } from './worker-sink.js';

/** What comes along with a request to a Worker. */
export interface WorkerBindings {
  readonly request: Request;
  /** Keeps the request alive after its response, until the promise settles. */
  waitUntil(work: Promise<unknown>): void;
}

/** What the network before a Worker adds about a client: not the client's words, and no business of the provider's. */
const ADDED = /^(cf-|x-forwarded-|x-real-ip$|true-client-ip$)/;

/** Where nobody waits for a response any more, something has to be returned all the same. */
const CLIENT_LEFT = 499;

/**
 * The app in a Worker. `serve` goes on beside the response that it writes, and after it. `reportDefect` hears of a failure after
 * the first byte, when the client can no longer be told.
 */
export function workerPlatform(reportDefect: (defect: Defect) => void): Platform<WorkerBindings> {
  return {
    incoming(request) {
      const headers = [...request.headers].filter(([name]) => !ADDED.test(name));
      return {
        method: request.method,
        headers: Object.fromEntries(headers),
        // It says nothing of who may do what: nobody is on a Worker's own machine.
        remoteAddress: null,
        body: request.body,
      };
    },
    async respond({ request, waitUntil }, serve) {
      const sink = createWorkerSink(request.method, request.signal);
      let hasStarted = false;
      const response = sink.response.then((started) => {
        hasStarted = true;
        return started;
      });
      const served = serve(sink).catch((error: unknown) => {
        if (!hasStarted) throw error;
        sink.abort();
        reportDefect(defectOf(error));
      });
      waitUntil(served.catch(() => undefined));
      return Promise.race([response, served.then(() => (hasStarted ? response : clientLeft()))]);
    },
  };
}

function clientLeft(): Response {
  return new Response(null, { status: CLIENT_LEFT });
}
