import type { Refusal } from './answer.js';

/** A prompt that does not fit, in tokens. */
export interface Overflow {
  readonly limitTokens: number;
  readonly messageTokens: number;
  /** Tokens of tools, functions and response schema. */
  readonly functionTokens: number;
  /** The explicit limit of output tokens, or null. */
  readonly outputCap: number | null;
}

interface ErrorFields {
  readonly type?: string;
  readonly param?: string | null;
  readonly code?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error in OpenAI's form; an `invalid_request_error` unless said otherwise. */
export function openaiError(status: number, message: string, fields: ErrorFields = {}): Refusal {
  const { type = 'invalid_request_error', param = null, code = null, headers } = fields;
  return { kind: 'refusal', status, headers, body: { error: { message, type, param, code } } };
}

/** OpenAI's refusal of a prompt, or of a prompt and an explicit output limit, that exceeds the window. */
export function contextLengthExceeded(overflow: Overflow): Refusal {
  const { limitTokens, messageTokens, functionTokens, outputCap } = overflow;
  const parts = [`${messageTokens} in the messages`];
  const reducible = ['messages'];
  if (functionTokens > 0) {
    parts.push(`${functionTokens} in the functions`);
    reducible.push('functions');
  }
  if (outputCap !== null) {
    parts.push(`${outputCap} in the completion`);
    reducible.push('completion');
  }
  const total = messageTokens + functionTokens + (outputCap ?? 0);
  const asked = outputCap === null ? 'your messages resulted in' : 'you requested';
  const detail = parts.length === 1 ? '' : ` (${listed(parts, 'and')})`;
  return openaiError(
    400,
    `This model's maximum context length is ${limitTokens} tokens. However, ${asked} ${total} tokens${detail}. ` +
      `Please reduce the length of the ${listed(reducible, 'or')}.`,
    { param: 'messages', code: 'context_length_exceeded' },
  );
}

export const INPUT_EXCEEDS_WINDOW =
  'Your input exceeds the context window of this model. Please adjust your input and try again.';

/** The refusal of the Responses API, which names no numbers. */
export function inputExceedsWindow(): Refusal {
  return openaiError(400, INPUT_EXCEEDS_WINDOW, { param: 'input', code: 'context_length_exceeded' });
}

/** Two parts as OpenAI lists them in these sentences, "A in the messages, B in the completion" but "messages or completion". */
function listed(parts: readonly string[], word: 'and' | 'or'): string {
  if (parts.length > 2) return `${parts.slice(0, -1).join(', ')}, ${word} ${parts.at(-1) ?? ''}`;
  return parts.join(word === 'and' ? ', ' : ' or ');
}

export function missingKey(): Refusal {
  return openaiError(
    401,
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth " +
      '(i.e. Authorization: Bearer YOUR_KEY).',
  );
}

/** `shown`: the key as it may be shown. */
export function wrongKey(shown: string): Refusal {
  return openaiError(401, `Incorrect API key provided: ${shown}.`, { code: 'invalid_api_key' });
}

export function rateLimited(retryAfterSeconds: number): Refusal {
  return openaiError(429, 'Rate limit reached for requests. Please try again later.', {
    type: 'requests',
    code: 'rate_limit_exceeded',
    headers: { 'retry-after': String(retryAfterSeconds) },
  });
}

export function serverError(): Refusal {
  return openaiError(500, 'The server had an error while processing your request. Sorry about that!', {
    type: 'server_error',
  });
}

export function malformedJson(): Refusal {
  return openaiError(
    400,
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library " +
      'correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)',
  );
}

/** The failures that summary calls are made to meet. */
export const OPENAI_ERRORS = { wrongKey, rateLimited, serverError } as const;
