import { SpillwayError } from '../core/errors.js';
import type { SendUpstream } from './upstream.js';

/**
 * Ends a request whose upstream says nothing for `timeoutMs`, until its headers or between two pieces of its body: for a way of
 * sending that knows no such limit. Rejects with `upstream_timeout`.
 */
export function limitSilence(send: SendUpstream, timeoutMs: number): SendUpstream {
  return async (request) => {
    const silent = new AbortController();
    const listen = async <T>(work: Promise<T>): Promise<T> => {
      const timer = setTimeout(() => silent.abort(timedOut(request.url, timeoutMs)), timeoutMs);
      try {
        return await work;
      } catch (error) {
        throw silent.signal.aborted ? silent.signal.reason : error;
      } finally {
        clearTimeout(timer);
      }
    };
    const response = await listen(send({ ...request, signal: AbortSignal.any([request.signal, silent.signal]) }));
    const body = response.body[Symbol.asyncIterator]();
    const heard: AsyncIterator<Uint8Array> = {
      next: () => listen(body.next()),
      return: async () => (await body.return?.()) ?? { done: true, value: undefined },
    };
    return { ...response, body: { [Symbol.asyncIterator]: () => heard } };
  };
}

function timedOut(url: string, timeoutMs: number): SpillwayError {
  return new SpillwayError('upstream_timeout', `${new URL(url).host} sent nothing for ${timeoutMs} ms`);
}
