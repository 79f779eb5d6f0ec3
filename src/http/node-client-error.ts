import { maxHeaderSize } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorForm } from '../dialects/dialect.js';
import { errorText } from './errors.js';

const REASONS = new Map([
  [400, 'Bad Request'],
  [408, 'Request Timeout'],
  [413, 'Payload Too Large'],
  [431, 'Request Header Fields Too Large'],
]);

/**
 * Answers what is too broken to become a request, in the error form of all others, and ends its connection. `current` is the response
 * that is being given on it, if one is: once that has begun, nothing can be said any more.
 */
export function answerClientError(error: Error, socket: Duplex, current: ServerResponse | null): void {
  if (!socket.writable || current?.headersSent === true) {
    socket.destroy();
    return;
  }
  const form = formOf('code' in error ? error.code : null);
  const body = errorText(form);
  const head = [
    `HTTP/1.1 ${form.status} ${REASONS.get(form.status)}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

/** Never a word of the request itself. */
function formOf(code: unknown): ErrorForm {
  const refused = (status: number, name: string, message: string): ErrorForm => {
    return { status, type: 'invalid_request_error', code: name, message, field: null, overflow: null };
  };
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return refused(
        431,
        'headers_too_large',
        `The request line and the headers are larger than ${maxHeaderSize} bytes together.`,
      );
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return refused(413, 'body_too_large', 'The extensions of a chunk of the body are too large.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refused(408, 'request_timeout', 'The headers of the request did not arrive in time.');
    default:
      return refused(400, 'invalid_request', 'This is not a valid HTTP/1.1 request.');
  }
}
