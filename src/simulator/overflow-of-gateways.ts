import { inStream, overHttp } from './overflow-numbers.js';
import type { OverflowNumbers } from './overflow-numbers.js';
import type { OverflowForm } from './reply-plan.js';

const endpointLimit = ({ limit, total, input, output }: OverflowNumbers) =>
  `This endpoint's maximum context length is ${limit} tokens. However, you requested about ${total} tokens (${input} of ` +
  `text input, ${output} in the output). Please reduce the length of either one, or use the "middle-out" transform to ` +
  'compress your prompt automatically.';
const messagesResulted = ({ limit, input }: OverflowNumbers) =>
  `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${input} tokens. Please ` +
  'reduce the length of the messages.';
const inputTooLong = ({ limit, input }: OverflowNumbers) =>
  `Input too long: ${input} input tokens, limit is ${limit} for this model`;
const openrouter = (message: string, metadata: object) => ({ error: { message, code: 400, metadata } });
const litellm = (message: string, status: number) => ({
  error: { message, type: 'None', param: 'None', code: String(status) },
});

/** What those say who pass requests on to others, with the others' errors inside their own. */
export const GATEWAY_OVERFLOWS = {
  openrouter: overHttp(400, (numbers) => openrouter(endpointLimit(numbers), { provider_name: null })),
  'openrouter-provider-error': overHttp(400, (numbers) =>
    openrouter('Provider returned error', {
      raw: JSON.stringify({ error: { message: messagesResulted(numbers), type: 'Bad Request', code: 400 } }),
      provider_name: 'Simulated',
      is_byok: false,
    }),
  ),
  'openrouter-error-chunk': inStream(
    'stream',
    400,
    (numbers) => openrouter(endpointLimit(numbers), { provider_name: null }),
    (numbers) =>
      `data: ${JSON.stringify({
        id: 'gen-simulated',
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
        error: { code: 400, message: endpointLimit(numbers) },
      })}\n\n`,
  ),
  'github-models': overHttp(413, ({ limit, model }) => {
    const message = `Request body too large for ${model} model. Max size: ${limit} tokens.`;
    return { error: { code: 'tokens_limit_reached', message, details: message } };
  }),
  'github-copilot': overHttp(400, ({ limit, input }) => ({
    error: {
      message: `prompt token count of ${input} exceeds the limit of ${limit}`,
      code: 'model_max_prompt_tokens_exceeded',
    },
  })),
  'github-copilot-without-code': overHttp(400, ({ limit, input }) => ({
    error: { message: `prompt token count of ${input} exceeds the limit of ${limit}`, param: '', code: '', type: '' },
  })),
  'workers-ai': overHttp(413, ({ limit, total }) => ({
    errors: [
      {
        message:
          `AiError: The estimated number of input and maximum output tokens (${total}) exceeded this model context window ` +
          `limit (${limit}).`,
        code: 5021,
      },
    ],
    success: false,
    result: {},
    messages: [],
  })),
  litellm: overHttp(400, ({ limit, input }) =>
    litellm(
      JSON.stringify({
        type: 'error',
        error: { type: 'invalid_request_error', message: `prompt is too long: ${input} tokens > ${limit} maximum` },
      }),
      400,
    ),
  ),
  'litellm-mapped': overHttp(400, (numbers) =>
    litellm(
      'litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: Hosted_vllmException - ' +
        `Error code: 400 - {'object': 'error', 'message': "${messagesResulted(numbers)}", 'type': 'BadRequestError', ` +
        "'param': None, 'code': 400}. Received Model Group=simulated\nAvailable Model Group Fallbacks=None",
      400,
    ),
  ),
  'litellm-unavailable': overHttp(503, () =>
    litellm(
      'litellm.ServiceUnavailableError: litellm.ContextWindowExceededError: BedrockException - Context Window Error - ' +
        '{"message":"Input is too long for requested model."}',
      503,
    ),
  ),
  'vercel-gateway': overHttp(400, (numbers) => inputTooLong(numbers)),
  'vercel-gateway-detail': overHttp(400, (numbers) => ({ detail: inputTooLong(numbers) })),
  'zen-error-event': inStream(
    'first',
    400,
    (numbers) => ({ error: { message: inputTooLong(numbers), type: 'invalid_request_error' } }),
    (numbers) =>
      `data: ${JSON.stringify({
        type: 'error',
        error_type: 'invalid_request_error',
        error_message: JSON.stringify({ error: { message: inputTooLong(numbers) } }),
      })}\n\n`,
  ),
  poolside: overHttp(
    400,
    ({ limit, input }) => `Input length ${input} exceeds the maximum allowed input length of ${limit} tokens.`,
  ),
  'plain-text': overHttp(
    400,
    ({ limit, total }) => `Estimated total tokens (${total}) exceeds model context window (${limit})`,
  ),
  html: overHttp(
    502,
    (numbers) =>
      '<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Upstream error</h1><p>' +
      `${messagesResulted(numbers).replace(/'/g, '&#39;')}</p></body></html>\r\n`,
  ),
  'empty-body': overHttp(400, () => ''),
} as const satisfies Readonly<Record<string, OverflowForm>>;
