import type { ReplyHead } from './format.js';
import type { GeneratedReply, ReplyUsage } from './generate.js';
import type { Stop } from './reply-plan.js';
import type { Item, ResponsesRequest } from './responses-request.js';

/** A response before anything was said. */
export function openResponse(head: ReplyHead, { body, ...request }: ResponsesRequest): Item {
  const given = (name: string, otherwise: unknown) => body[name] ?? otherwise;
  return {
    id: head.id,
    object: 'response',
    created_at: head.createdAt,
    status: 'in_progress',
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    instructions: request.instructions,
    max_output_tokens: request.outputCap,
    max_tool_calls: given('max_tool_calls', null),
    model: head.model,
    output: [],
    parallel_tool_calls: given('parallel_tool_calls', true),
    previous_response_id: request.previousResponseId,
    prompt_cache_key: given('prompt_cache_key', null),
    reasoning: { effort: null, summary: null, ...request.reasoning },
    safety_identifier: given('safety_identifier', null),
    service_tier: 'default',
    store: request.store,
    temperature: given('temperature', 1),
    text: given('text', { format: { type: 'text' }, verbosity: 'medium' }),
    tool_choice: given('tool_choice', 'auto'),
    tools: given('tools', []),
    top_logprobs: given('top_logprobs', 0),
    top_p: given('top_p', 1),
    truncation: given('truncation', 'disabled'),
    usage: null,
    user: given('user', null),
    metadata: given('metadata', {}),
  };
}

/** A response that has come to its end. */
export function closedResponse(
  head: ReplyHead,
  request: ResponsesRequest,
  reply: GeneratedReply,
  output: readonly Item[],
): Item {
  const reason = incompleteReason(reply.choices[0]?.stop ?? 'stop');
  return {
    ...openResponse(head, request),
    status: reason === null ? 'completed' : 'incomplete',
    completed_at: reason === null ? head.createdAt : null,
    incomplete_details: reason === null ? null : { reason },
    output,
    usage: responseUsage(reply.usage),
  };
}

export function responseUsage(usage: ReplyUsage): Item {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.writtenTokens },
    output_tokens: usage.completionTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.promptTokens + usage.completionTokens,
  };
}

function incompleteReason(stop: Stop): string | null {
  switch (stop) {
    case 'stop':
    case 'tool_calls':
      return null;
    case 'length':
    case 'model_context_window_exceeded':
      return 'max_output_tokens';
    case 'content_filter':
      return 'content_filter';
  }
}
