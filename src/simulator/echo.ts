import { createHash } from 'node:crypto';
import type { Answer } from './answer.js';
import { jsonAnswer } from './answer.js';
import type { RecordedRequest } from './request-log.js';

const PIECE_BYTES = 1024;

/**
 * Answers a request nobody else serves: with what was received, described as JSON; or, with `echo=bytes` in the query, with
 * the very body, under its own content type, in pieces of 1 KiB.
 */
export function echo(request: RecordedRequest): Answer {
  const { method, path, query, bytes, headers } = request;
  const contentType = headers['content-type'] ?? null;
  if (new URLSearchParams(query).get('echo') === 'bytes') {
    const pieces = Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, index) =>
      bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
    );
    return { status: 200, headers: { 'content-type': contentType ?? 'application/octet-stream' }, pieces };
  }
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return jsonAnswer(200, {
    object: 'simulator.echo',
    method,
    path,
    query,
    content_type: contentType,
    bytes: bytes.length,
    sha256,
  });
}
