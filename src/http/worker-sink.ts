import type { Sink } from '../proxy/sink.js';

/** Statuses whose responses have no body, and may not be given an empty one either. */
const BODILESS = new Set([101, 204, 205, 304]);

export interface WorkerSink extends Sink {
  /** Resolves when the response starts; its body is what is written. */
  readonly response: Promise<Response>;
}

/** A sink whose other end is a Response of web standards. `left`: aborted when the client of a Worker leaves. */
export function createWorkerSink(method: string, left: AbortSignal): WorkerSink {
  const leave = new AbortController();
  let isOver = false;
  let writer: WritableStreamDefaultWriter<Uint8Array> | null = null;
  let started: (response: Response) => void;
  const response = new Promise<Response>((resolve) => (started = resolve));

  /** Whatever is refused before the end tells that the client is gone. */
  const onLeave = (): void => {
    if (!isOver) leave.abort();
  };
  if (left.aborted) onLeave();
  left.addEventListener('abort', onLeave, { once: true });

  return {
    response,
    closed: leave.signal,
    start(status, headers) {
      const hasBody = method !== 'HEAD' && !BODILESS.has(status);
      const pipe = hasBody ? pipeFor(headers) : null;
      writer = pipe?.writable.getWriter() ?? null;
      writer?.closed.catch(onLeave);
      const given = new Headers();
      for (const [name, value] of headers) given.append(name, value);
      started(new Response(pipe?.readable ?? null, { status, headers: given }));
    },
    async write(chunk) {
      if (!leave.signal.aborted) await writer?.write(chunk).catch(onLeave);
    },
    async end() {
      if (!leave.signal.aborted) await writer?.close().catch(onLeave);
      isOver = true;
    },
    abort() {
      isOver = true;
      writer?.abort(new Error('the response was broken off')).catch(() => undefined);
    },
  };
}

/** A body that is as long as its headers say is sent with its length, and one that ends too early is seen as broken. */
function pipeFor(headers: Parameters<Sink['start']>[1]): IdentityTransformStream {
  const length = headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1];
  return length !== undefined && /^\d+$/.test(length)
    ? new FixedLengthStream(Number(length))
    : new IdentityTransformStream();
}
