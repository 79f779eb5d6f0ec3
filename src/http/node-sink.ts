import type { ServerResponse } from 'node:http';
import type { Sink } from '../proxy/sink.js';

/** A sink over a Node response. It listens for `drain`, `finish` and `close` once, however many writes there are. */
export function createNodeSink(response: ServerResponse): Sink {
  const { socket, httpVersion } = response.req;
  const leave = new AbortController();
  const waiting: (() => void)[] = [];
  let isSent = false;
  let isAborted = false;

  function wake(): void {
    for (const resolve of waiting.splice(0)) resolve();
  }

  function onClose(): void {
    if (!isSent && !isAborted) leave.abort();
    wake();
  }

  const isOpen = (): boolean => !response.destroyed && !response.writableEnded;

  response.on('drain', wake);
  // Node says `finish` of a response whose client left while its end was waiting, too: then the socket is gone.
  response.once('finish', () => (isSent = !socket.destroyed));
  response.once('close', onClose);
  // A response that waits for the one before it on its connection hears nothing when that closes.
  socket.once('close', onClose);
  response.once('close', () => socket.off('close', onClose));
  // A write that races with the client's departure fails; unheard, that would end the process.
  response.on('error', wake);
  if (response.destroyed || socket.destroyed) leave.abort();

  return {
    closed: leave.signal,
    start(status, headers) {
      if (!isOpen()) return;
      response.writeHead(status, headers.flat());
      // Sends the headers as the Latin-1 they are; `flushHeaders` would turn them into UTF-8.
      response.write('', 'latin1');
    },
    write(chunk) {
      if (!isOpen() || response.write(chunk)) return Promise.resolve();
      return new Promise((resolve) => waiting.push(resolve));
    },
    end() {
      if (!isOpen()) return Promise.resolve();
      return new Promise((resolve) => {
        waiting.push(resolve);
        response.end(wake);
      });
    },
    abort() {
      if (!isOpen()) return;
      isAborted = true;
      // HTTP/1.0 has no chunks: there the end of the connection is the end of the body, unless the connection is reset.
      if (httpVersion === '1.0') socket.resetAndDestroy();
      else response.destroy();
    },
  };
}
