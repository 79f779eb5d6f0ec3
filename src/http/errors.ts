import { SpillwayError, type ErrorCode } from '../core/errors.js';
import type { ErrorForm } from '../dialects/dialect.js';

const statusOf: Readonly<Record<ErrorCode, number>> = {
  invalid_json: 400,
  invalid_request: 400,
  invalid_header: 400,
  // Thrown before anything listens.
  invalid_setting: 500,
  body_too_large: 413,
  unsupported_encoding: 415,
  unauthorized: 401,
  forbidden_host: 403,
  not_found: 404,
  conversation_not_found: 404,
  conversation_exists: 409,
  node_not_found: 404,
  thread_not_found: 404,
  turn_in_progress: 409,
  head_moved: 409,
  no_credential: 409,
  context_length_exceeded: 400,
  compaction_failed: 502,
  store_unavailable: 503,
  upstream_unreachable: 502,
  upstream_timeout: 504,
  shutting_down: 503,
};

/** What may be told of a defect of our own: its kind and its place, never its message, which can quote a text. */
export interface Defect {
  readonly kind: string;
  readonly frames: readonly string[];
}

/** How an error is told to a client; of a defect, which is any error but a `SpillwayError`, nothing is. */
export function errorForm(error: unknown): ErrorForm {
  if (!(error instanceof SpillwayError)) return internalError;
  const status = statusOf[error.code];
  const { code, message, field, overflow } = error;
  return { status, type: errorType(status), code, message, field, overflow };
}

const internalError: ErrorForm = {
  status: 500,
  type: 'server_error',
  code: 'internal_error',
  message: 'Spillway failed on this request. The log names the place.',
  field: null,
  overflow: null,
};

/** The body of an error outside any dialect: OpenAI's form, which every client reads. */
export function errorText({ type, code, message, field }: ErrorForm): string {
  return JSON.stringify({ error: { message, type, param: field, code } });
}

export function errorResponse(form: ErrorForm, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(errorText(form), {
    status: form.status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

export function defectOf(error: unknown): Defect {
  if (!(error instanceof Error)) return { kind: typeof error, frames: [] };
  const stack = error.stack ?? '';
  // The message comes first in a stack and may itself hold lines that look like frames; if it is not found, neither are they.
  const start = stack.indexOf(error.message);
  const frames = start < 0 ? null : stack.slice(start + error.message.length).match(/(?<=^ *at ).+$/gm);
  return { kind: error.name, frames: frames ?? [] };
}

function errorType(status: number): string {
  if (status === 401) return 'authentication_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}
