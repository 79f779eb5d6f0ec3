import { requestTooLarge } from './anthropic-errors.js';
import { INPUT_EXCEEDS_WINDOW, contextLengthExceeded, inputExceedsWindow, openaiError } from './openai-errors.js';
import { inStream, modelLimit, overHttp } from './overflow-numbers.js';
import type { OverflowNumbers } from './overflow-numbers.js';
import type { OverflowForm } from './reply-plan.js';

const openai = (message: string, code: string | null = 'context_length_exceeded') =>
  openaiError(400, message, { param: 'messages', code }).body;
const anthropic = (message: string) => ({
  type: 'error',
  error: { type: 'invalid_request_error', message },
  request_id: 'req_simulated',
});
const google = (message: string) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });
const named = (event: string, body: unknown) => `event: ${event}\ndata: ${JSON.stringify(body)}\n\n`;
const promptTooLong = ({ input, limit }: OverflowNumbers) => `prompt is too long: ${input} tokens > ${limit} maximum`;

/** What those say who run models of their own. Numbers are stated where the provider states them. */
export const VENDOR_OVERFLOWS = {
  openai: { where: 'http', refusal: contextLengthExceeded },
  'openai-first-event': { where: 'first', refusal: contextLengthExceeded },
  'openai-after-role': { where: 'stream', refusal: contextLengthExceeded },
  'openai-after-content': { where: 'after-content', refusal: contextLengthExceeded },
  'openai-without-code': overHttp(400, ({ limit, total, input, output }) =>
    openai(
      `This model's maximum context length is ${limit} tokens, however you requested ${total} tokens (${input} in your ` +
        `prompt; ${output} for the completion). Please reduce your prompt; or completion length.`,
      null,
    ),
  ),
  'openai-input-limit': overHttp(400, ({ limit, input }) =>
    openai(
      `Input tokens exceed the configured limit of ${limit} tokens. Your messages resulted in ${input} tokens. Please ` +
        'reduce the length of the messages.',
    ),
  ),
  'openai-without-numbers': overHttp(400, () => openai(INPUT_EXCEEDS_WINDOW)),
  'openai-error-event': inStream(
    'first',
    400,
    () => openai(INPUT_EXCEEDS_WINDOW),
    () =>
      named('error', {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          code: 'context_length_exceeded',
          message: INPUT_EXCEEDS_WINDOW,
          param: 'input',
        },
        sequence_number: 2,
      }),
  ),
  // Of the Responses API: the response fails, or an event tells of an error and no response ends.
  'responses-failed-event': { where: 'stream', refusal: inputExceedsWindow },
  'responses-error-event': {
    where: 'stream',
    refusal: inputExceedsWindow,
    events: () =>
      named('error', {
        type: 'error',
        code: 'context_length_exceeded',
        message: INPUT_EXCEEDS_WINDOW,
        param: 'input',
        sequence_number: 2,
      }),
  },
  'azure-inference': overHttp(400, (numbers) => ({
    error: { code: 'context_length_exceeded', message: modelLimit(numbers) },
  })),
  anthropic: overHttp(400, (numbers) => anthropic(promptTooLong(numbers))),
  'anthropic-with-output': overHttp(400, ({ input, output, limit }) =>
    anthropic(
      `input length and \`max_tokens\` exceed context limit: ${input} + ${output} > ${limit}, decrease input length or ` +
        '`max_tokens` and try again',
    ),
  ),
  'anthropic-error-event': inStream(
    'first',
    400,
    (numbers) => anthropic(promptTooLong(numbers)),
    (numbers) => named('error', anthropic(promptTooLong(numbers))),
  ),
  'anthropic-body-size': { where: 'http', refusal: requestTooLarge },
  'vertex-claude': overHttp(413, () => anthropic('Prompt is too long')),
  'bedrock-claude': overHttp(400, () => ({ message: 'Input is too long for requested model.' })),
  'bedrock-claude-wrapped': overHttp(400, (numbers) => ({
    message: `The model returned the following errors: ${promptTooLong(numbers)}`,
  })),
  'bedrock-stream': overHttp(424, () => ({ message: 'Input is too long', __type: 'ModelStreamErrorException' })),
  'bedrock-nova': overHttp(400, () => ({
    message:
      'Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.',
  })),
  'bedrock-nova-counts': overHttp(400, ({ limit, input }) => ({
    message: `Too many input tokens. Max input tokens: ${limit}, request input token count: ${input}`,
  })),
  gemini: overHttp(400, ({ limit, input }) => [
    google(`The input token count (${input}) exceeds the maximum number of tokens allowed (${limit}).`),
  ]),
  'gemini-without-count': overHttp(400, ({ limit }) =>
    google(`The input token count exceeds the maximum number of tokens allowed (${limit}).`),
  ),
  vertex: overHttp(400, ({ limit, input }) =>
    google(
      `Unable to submit request because the input token count is ${input} but model only supports up to ${limit}. ` +
        'Reduce the input token count and try again.',
    ),
  ),
  mistral: overHttp(400, ({ limit, input }) => ({
    object: 'error',
    message: `Prompt contains ${input} tokens and 0 draft tokens, too large for model with ${limit} maximum context length`,
    type: 'invalid_request_error',
    param: null,
    code: null,
  })),
  cohere: overHttp(400, ({ limit, excess }) => ({
    message:
      `too many tokens: size limit exceeded by ${excess} tokens. Try using shorter or fewer inputs. The limit for this ` +
      `model is ${limit} tokens.`,
  })),
  'cohere-excess-only': overHttp(400, ({ excess }) => ({
    message:
      `too many tokens: size limit exceeded by ${excess} tokens. Try using shorter or fewer inputs, or setting ` +
      "prompt_truncation='AUTO'.",
  })),
  groq: overHttp(400, () => openai('Please reduce the length of the messages or completion.')),
  cerebras: overHttp(400, ({ limit, total }) => ({
    message: `Please reduce the length of the messages or completion. Current length is ${total} while limit is ${limit}`,
    type: 'invalid_request_error',
    param: 'messages',
    code: 'context_length_exceeded',
  })),
  together: overHttp(422, ({ limit, input, output }) => ({
    error: {
      message:
        `Input validation error: \`inputs\` tokens + \`max_new_tokens\` must be <= ${limit}. Given: ${input} \`inputs\` ` +
        `tokens and ${output} \`max_new_tokens\``,
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
  })),
  fireworks: overHttp(400, ({ limit, input }) => ({
    error: {
      object: 'error',
      type: 'invalid_request_error',
      code: 'invalid_request_error',
      message: `The prompt is too long: ${input}, model maximum context length: ${limit}`,
    },
  })),
  deepseek: overHttp(400, (numbers) => openai(modelLimit(numbers), 'invalid_request_error')),
  xai: overHttp(400, ({ limit, input }) => ({
    code: 'Client specified an invalid argument',
    error: `This model's maximum prompt length is ${limit} but the request contains ${input} tokens.`,
  })),
  moonshot: overHttp(400, ({ limit, total }) => ({
    error: {
      message: `Invalid request: Your request exceeded model token limit: ${limit} (requested: ${total})`,
      type: 'invalid_request_error',
    },
  })),
  'moonshot-limit-only': overHttp(400, ({ limit }) => ({
    error: { message: `model max length exceeded, max length:${limit}`, type: 'invalid_request_error' },
  })),
  zhipu: overHttp(400, () => ({ error: { code: '1261', message: 'Prompt exceeds max length' } })),
  minimax: overHttp(400, () => anthropic('invalid params, context window exceeds limit (2013)')),
  'minimax-status': inStream('first', 400, () => ({
    choices: null,
    base_resp: { status_code: 2013, status_msg: 'invalid params, context window exceeds limit (2013)' },
  })),
  dashscope: overHttp(400, ({ limit }) => ({
    code: 'InvalidParameter',
    message: `Range of input length should be [1, ${limit}]`,
    request_id: 'simulated',
  })),
  'dashscope-event-body': overHttp(
    400,
    ({ limit }) =>
      'id:1\nevent:error\n:HTTP_STATUS/400\ndata:' +
      `{"code":"InvalidParameter","message":"Range of input length should be [1, ${limit}]","request_id":"simulated"}\n\n`,
  ),
  siliconflow: overHttp(400, ({ limit, total }) =>
    JSON.stringify(`max_total_tokens (${total}) must be less than or equal to max_seq_len (${limit})`),
  ),
  volcengine: overHttp(400, ({ limit, input }) => ({
    error: {
      code: 'InvalidParameter',
      message: `Input length ${input} exceeds the maximum length ${limit}`,
      param: '',
      type: 'BadRequest',
    },
  })),
  watsonx: overHttp(400, ({ limit, input, model }) => ({
    errors: [
      {
        code: 'invalid_input_argument',
        message:
          `Invalid input argument for Model '${model}': the number of input tokens ${input} cannot exceed the total ` +
          `tokens limit ${limit} for this model`,
      },
    ],
    trace: 'simulated',
    status_code: 400,
  })),
  'watsonx-code': overHttp(400, () => ({
    errors: [{ code: 'token_quantity_exceeded', message: 'input token count is above the limit' }],
    trace: 'simulated',
    status_code: 400,
  })),
} as const satisfies Readonly<Record<string, OverflowForm>>;
