import { inStream, modelLimit, overHttp } from './overflow-numbers.js';
import type { OverflowNumbers } from './overflow-numbers.js';
import type { OverflowForm } from './reply-plan.js';

const vllm = (message: string, param: string | null = null) => ({
  error: { message, type: 'BadRequestError', param, code: 400 },
});
const flat = (message: string) => ({ object: 'error', message, type: 'BadRequestError', param: null, code: 400 });
const dataThenDone = (body: unknown) => `data: ${JSON.stringify(body)}\n\ndata: [DONE]\n\n`;
const llamaServer = (message: string, { limit, input }: OverflowNumbers) => ({
  error: { code: 400, message, type: 'exceed_context_size_error', n_prompt_tokens: input, n_ctx: limit },
});
const availableContext = ({ limit, input }: OverflowNumbers) =>
  `request (${input} tokens) exceeds the available context size (${limit} tokens), try increasing it`;
const sglangInput = ({ limit, input }: OverflowNumbers) =>
  `The input (${input} tokens) is longer than the model's context length (${limit} tokens).`;
const keptTokens = ({ limit, input }: OverflowNumbers) =>
  'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: ' +
  `${input}>= n_ctx: ${limit}). Try to load the model with a larger context length, or provide a shorter input.`;

/** What programs say that serve open models. */
export const SERVER_OVERFLOWS = {
  'vllm-flat': overHttp(400, (numbers) => flat(modelLimit(numbers))),
  vllm: overHttp(400, (numbers) => vllm(modelLimit(numbers))),
  'vllm-input-tokens': overHttp(400, ({ limit, input }) =>
    vllm(
      `This model's maximum context length is ${limit} tokens. However, your request has ${input} input tokens. Please ` +
        `reduce the length of the input messages. (parameter=input_tokens, value=${input})`,
      'input_tokens',
    ),
  ),
  'vllm-at-least': overHttp(400, ({ limit, input, output, total }) =>
    vllm(
      `This model's maximum context length is ${limit} tokens. However, you requested ${output} output tokens and your ` +
        `prompt contains at least ${input} input tokens, for a total of at least ${total} tokens. Please reduce the ` +
        `length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=${input})`,
      'input_tokens',
    ),
  ),
  'vllm-characters': overHttp(400, ({ limit, output, characters }) =>
    vllm(
      `This model's maximum context length is ${limit} tokens. However, you requested ${output} output tokens and your ` +
        `prompt contains ${characters} characters (more than ${limit - output} characters, which is the upper bound for ` +
        `${limit - output} input tokens). Please reduce the length of the input prompt or the number of requested output ` +
        `tokens. (parameter=input_text, value=${characters})`,
      'input_text',
    ),
  ),
  'vllm-negative-room': overHttp(400, ({ excess }) => flat(`max_tokens must be at least 1, got -${excess}.`)),
  'vllm-in-stream': inStream(
    'first',
    400,
    (numbers) => vllm(modelLimit(numbers)),
    (numbers) => dataThenDone(vllm(modelLimit(numbers))),
  ),
  sglang: overHttp(400, (numbers) => flat(sglangInput(numbers))),
  'sglang-total': overHttp(400, ({ limit, total, input, output }) =>
    flat(
      `Requested token count exceeds the model's maximum context length of ${limit} tokens. You requested a total of ` +
        `${total} tokens: ${input} tokens from the input messages and ${output} tokens for the completion. Please reduce ` +
        'the number of tokens in the input messages or the completion to fit within the limit.',
    ),
  ),
  'sglang-cache': overHttp(400, ({ limit, input }) =>
    flat(`Input length (${input} tokens) exceeds the maximum allowed length (${limit} tokens).`),
  ),
  'sglang-in-stream': inStream(
    'stream',
    400,
    (numbers) => flat(sglangInput(numbers)),
    (numbers) => dataThenDone({ error: flat(sglangInput(numbers)) }),
  ),
  nim: overHttp(400, ({ limit, input, output }) => ({
    error: {
      message:
        `You passed ${input} input tokens and requested ${output} output tokens. However, the model's context length is ` +
        `only ${limit} tokens, resulting in a maximum input length of ${limit - output} tokens. Please reduce the length ` +
        `of the input prompt. (parameter=input_tokens, value=${input})`,
      type: 'invalid_request_error',
      param: null,
      code: 'context_length_exceeded',
    },
  })),
  'tensorrt-llm': overHttp(
    500,
    ({ limit, input }) =>
      `Encountered an error when fetching new request: Prompt length (${input}) exceeds maximum input length (${limit})`,
  ),
  tgi: overHttp(422, ({ limit, input }) => ({
    error: `Input validation error: \`inputs\` must have less than ${limit} tokens. Given: ${input}`,
    error_type: 'validation',
  })),
  'llama.cpp': overHttp(400, (numbers) => llamaServer(availableContext(numbers), numbers)),
  'llama.cpp-fields-only': overHttp(400, (numbers) =>
    llamaServer('the request exceeds the available context size, try increasing it', numbers),
  ),
  'llama.cpp-first-event': inStream('first', 400, (numbers) => llamaServer(availableContext(numbers), numbers)),
  'llama.cpp-mid-generation': inStream('stream', 500, () => ({
    error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' },
  })),
  'llama-cpp-python': overHttp(500, ({ limit, total }) => ({
    error: {
      message: `Requested tokens (${total}) exceed context window of ${limit}`,
      type: 'internal_server_error',
      param: null,
      code: null,
    },
  })),
  ds4: overHttp(400, ({ limit, input }) => ({
    error: {
      message: `Prompt tokens (${input}) exceeds context size (${limit})`,
      type: 'context_exceeded',
      n_prompt_tokens: input,
      n_ctx: limit,
    },
  })),
  'lm-studio': overHttp(400, (numbers) => ({ error: keptTokens(numbers) })),
  'lm-studio-error-event': inStream(
    'first',
    400,
    (numbers) => ({ error: keptTokens(numbers) }),
    ({ limit, input }) =>
      'event: error\ndata: ' +
      `{"error":{"message":"Cannot truncate prompt with n_keep (${input}) >= n_ctx (${limit})"}}\n\n`,
  ),
  'lm-studio-first-tokens': overHttp(400, ({ limit, input }) => ({
    error:
      `Trying to keep the first ${input} tokens when context the overflows. However, the model is loaded with context ` +
      `length of only ${limit} tokens, which is not enough. Try to load the model with a larger context length, or ` +
      'provide a shorter input.',
  })),
  'ollama-cloud': overHttp(400, ({ excess }) => ({
    error: {
      message: `prompt too long; exceeded max context length by ${excess} tokens`,
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
  })),
  'ollama-runner': overHttp(400, (numbers) => ({
    error: {
      message: JSON.stringify(llamaServer(availableContext(numbers), numbers)),
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
  })),
  'text-generation-webui': overHttp(400, ({ limit, input }) => ({
    error: {
      message: `This model maximum context length is ${limit} tokens. However, your messages resulted in over ${input} tokens.`,
      type: 'InvalidRequestError',
      param: 'messages',
      code: 400,
    },
  })),
  exllamav3: overHttp(400, ({ limit, input }) => ({
    error: {
      message:
        `context/cache: Job requires ${Math.ceil(input / 256)} pages (only ${Math.floor(limit / 256)} available) and ` +
        'cannot be enqueued.',
      type: 'invalid_request_error',
    },
  })),
  kronk: inStream('first', 500, () => ({
    error: {
      code: 'server_error',
      message:
        'start-slot: unable to process request: the context window is full. Please reduce the input size or increase ' +
        'the context window',
      type: 'server_error',
    },
  })),
} as const satisfies Readonly<Record<string, OverflowForm>>;
