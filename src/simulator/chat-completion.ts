import type { ChatRequest } from './chat-request.js';
import type { ReplyHead } from './format.js';
import type { GeneratedChoice, GeneratedReply, ReplyUsage } from './generate.js';
import { tokenLogprobs } from './logprobs.js';

export const SYSTEM_FINGERPRINT = 'fp_spillway_simulator';

/** A reply as the body of `POST /chat/completions`. */
export function chatCompletion(head: ReplyHead, request: ChatRequest, reply: GeneratedReply): unknown {
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.createdAt,
    model: head.model,
    choices: reply.choices.map((choice, index) => ({
      index,
      message: wholeMessage(choice, request.legacyFunctions),
      logprobs: choiceLogprobs(choice.text, choice.refusal, request.topLogprobs),
      finish_reason: finishReason(choice, request.legacyFunctions),
    })),
    usage: chatUsage(reply.usage),
    service_tier: 'default',
    system_fingerprint: SYSTEM_FINGERPRINT,
  };
}

function wholeMessage(choice: GeneratedChoice, legacyFunctions: boolean): unknown {
  const { text, refusal, reasoning, calls } = choice;
  return {
    role: 'assistant',
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    refusal: refusal === '' ? null : refusal,
    annotations: [],
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...wholeCalls(calls, legacyFunctions),
  };
}

function wholeCalls(calls: GeneratedChoice['calls'], legacyFunctions: boolean): object {
  const [first] = calls;
  if (first === undefined) return {};
  if (legacyFunctions) return { function_call: { name: first.name, arguments: first.arguments } };
  return {
    tool_calls: calls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    })),
  };
}

/** OpenAI's words for a stop; a legacy request is told of a function call. */
export function finishReason({ stop }: GeneratedChoice, legacyFunctions: boolean): string {
  return stop === 'tool_calls' && legacyFunctions ? 'function_call' : stop;
}

/** The `logprobs` member of a choice or a chunk; `wanted` as in `ChatRequest.topLogprobs`. */
export function choiceLogprobs(text: string, refusal: string, wanted: number | null): unknown {
  if (wanted === null) return null;
  return {
    content: text === '' ? null : tokenLogprobs(text, wanted),
    refusal: refusal === '' ? null : tokenLogprobs(refusal, wanted),
  };
}

export function chatUsage(usage: ReplyUsage): unknown {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
