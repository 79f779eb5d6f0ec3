/** Every way in which Spillway itself says no. `http/errors.ts` turns a code into a status; the core knows none. */
export type ErrorCode =
  | 'invalid_json'
  | 'invalid_request'
  | 'invalid_header'
  | 'invalid_setting'
  | 'body_too_large'
  | 'unsupported_encoding'
  | 'unauthorized'
  | 'forbidden_host'
  | 'not_found'
  | 'conversation_not_found'
  | 'conversation_exists'
  | 'node_not_found'
  | 'thread_not_found'
  | 'turn_in_progress'
  | 'head_moved'
  | 'no_credential'
  | 'context_length_exceeded'
  | 'compaction_failed'
  | 'store_unavailable'
  | 'upstream_unreachable'
  | 'upstream_timeout'
  | 'shutting_down';

export interface OverflowFigures {
  readonly usedTokens: number;
  readonly limitTokens: number;
}

/**
 * An error with a code, a message fit for a client, and the field at fault. The message never carries message text, a
 * credential or another tenant's id.
 */
export class SpillwayError extends Error {
  override readonly name = 'SpillwayError';
  readonly code: ErrorCode;
  /** The request field, header, path parameter or setting at fault; null where there is none. */
  readonly field: string | null;
  /** Of `context_length_exceeded`: tokens of the input, and the most that would fit; null otherwise. */
  readonly overflow: OverflowFigures | null;

  constructor(
    code: ErrorCode,
    message: string,
    field: string | null = null,
    cause?: unknown,
    overflow: OverflowFigures | null = null,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.field = field;
    this.overflow = overflow;
  }
}
