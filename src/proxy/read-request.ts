import { SpillwayError } from '../core/errors.js';
import type { Dialect, ReadRequest } from '../dialects/dialect.js';
import { asksByPath } from './asked-compaction.js';
import { openEnvelopes } from './open-envelopes.js';
import type { ProxyRequest } from './request.js';
import type { SpillwayHeaders } from './spillway-headers.js';
import type { Sign } from './tenant.js';
import type { RequestBody } from './turn.js';

export interface ReadRequestDeps {
  /** Reads a whole body and undoes its content encoding; rejects as `decodeBody` does. */
  readBody(
    body: AsyncIterable<Uint8Array> | null,
    contentEncoding: string | null,
  ): Promise<{ readonly original: Uint8Array; readonly decoded: Uint8Array }>;
  readonly sign: Sign;
}

/** A request as Spillway goes on with it. */
export interface RequestAsRead {
  readonly body: RequestBody;
  readonly options: SpillwayHeaders;
  /** Null for what the dialect cannot read. */
  readonly read: ReadRequest | null;
}

/**
 * Reads a request of a dialect. Spillway's own envelopes in it are opened where it is known whose they are; one that the list begins
 * with names the conversation that goes on, unless the client does. A request that asks to compact by its path is like one that asks at
 * its end, and never streams. Rejects with `invalid_json`, and as `openEnvelopes` does.
 */
export async function readRequest(
  request: ProxyRequest,
  dialect: Dialect,
  options: SpillwayHeaders,
  tenant: string | null,
  deps: ReadRequestDeps,
): Promise<RequestAsRead> {
  const { original, decoded } = await deps.readBody(request.body, request.headers['content-encoding'] ?? null);
  const text = new TextDecoder().decode(decoded);
  const parsed = parseJson(text);
  const came = { original, text, textBytes: decoded.byteLength, rewritten: false };
  const { body, conversation } =
    tenant === null ? { body: came, conversation: null } : openEnvelopes(came, dialect.compaction, tenant, deps.sign);
  const read = dialect.read(body.rewritten ? parseJson(body.text) : parsed);
  const isAsking = read !== null && asksByPath(request, dialect.compaction);
  return {
    body,
    options: { ...options, conversation: options.conversation ?? conversation },
    read: isAsking ? { ...read, stream: false, asksToCompact: true } : read,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SpillwayError('invalid_json', 'the request body is not valid JSON', 'body');
  }
}
