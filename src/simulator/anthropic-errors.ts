import type { Refusal } from './answer.js';
import type { ProviderErrors } from './format.js';
import { isRecord } from './json-value.js';
import type { Overflow } from './openai-errors.js';

interface ErrorFields {
  readonly type?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error in Anthropic's form; an `invalid_request_error` unless said otherwise. */
export function anthropicError(status: number, message: string, fields: ErrorFields = {}): Refusal {
  const { type = 'invalid_request_error', details, headers } = fields;
  const error = { type, message, ...(details === undefined ? {} : { details }) };
  return { kind: 'refusal', status, headers, body: { type: 'error', error } };
}

/** An error with the id of its request, as Anthropic names it in each; one of another form stays as it is. */
export function withRequestId(refusal: Refusal, requestId: string): Refusal {
  const { body } = refusal;
  return isRecord(body) && body['type'] === 'error'
    ? { ...refusal, body: { ...body, request_id: requestId } }
    : refusal;
}

/** Anthropic's refusal of a prompt, or of a prompt and the output wanted, that exceeds the window. */
export function promptTooLong({ limitTokens, messageTokens, functionTokens, outputCap }: Overflow): Refusal {
  const input = messageTokens + functionTokens;
  if (input > limitTokens || outputCap === null) {
    return anthropicError(400, `prompt is too long: ${input} tokens > ${limitTokens} maximum`);
  }
  return anthropicError(
    400,
    `input length and \`max_tokens\` exceed context limit: ${input} + ${outputCap} > ${limitTokens}, decrease input ` +
      'length or `max_tokens` and try again',
  );
}

/** This one alone has no `type` at its top. */
export function requestTooLarge(): Refusal {
  const error = { type: 'request_too_large', message: 'Request exceeds the maximum size' };
  return { kind: 'refusal', status: 413, body: { error } };
}

export function missingAnthropicKey(): Refusal {
  return anthropicError(401, 'x-api-key header is required', { type: 'authentication_error' });
}

export function missingVersion(): Refusal {
  return anthropicError(400, 'anthropic-version: header is required');
}

export function malformedAnthropicJson(): Refusal {
  return anthropicError(400, 'The request body is not valid JSON');
}

export const ANTHROPIC_ERRORS: ProviderErrors = {
  wrongKey: () => anthropicError(401, 'invalid x-api-key', { type: 'authentication_error' }),
  rateLimited: (retryAfterSeconds) =>
    anthropicError(429, 'Number of requests has exceeded your rate limit. Please try again later.', {
      type: 'rate_limit_error',
      headers: { 'retry-after': String(retryAfterSeconds) },
    }),
  serverError: () => anthropicError(500, 'Internal server error', { type: 'api_error' }),
};
