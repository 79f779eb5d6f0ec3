import type { Refusal } from './answer.js';
import type { ChatMessage, ChatRequest } from './chat-request.js';
import { openaiError } from './openai-errors.js';

const ROLES: readonly string[] = ['system', 'assistant', 'user', 'function', 'tool', 'developer'];

export interface StrictRoles {
  /** After leading system messages, user and assistant must take turns, as the templates of many models demand. */
  readonly rolesMustAlternate: boolean;
}

/** What the API refuses of a request that is well typed; null if it is sound. */
export function brokenChatRule(request: ChatRequest, strict: StrictRoles): Refusal | null {
  return (
    brokenOption(request) ??
    brokenMessage(request.messages) ??
    brokenPairing(request.messages) ??
    (strict.rolesMustAlternate ? brokenAlternation(request.messages) : null)
  );
}

function brokenOption({ body, stream, choices, topLogprobs }: ChatRequest): Refusal | null {
  if (body['max_tokens'] != null && body['max_completion_tokens'] != null) {
    return openaiError(400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", {
      param: 'max_tokens',
      code: 'invalid_parameter_combination',
    });
  }
  if (body['stream_options'] != null && !stream) {
    return openaiError(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: 'stream_options',
    });
  }
  if (body['top_logprobs'] != null && topLogprobs === null) {
    return openaiError(400, "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", {
      param: 'top_logprobs',
    });
  }
  const low = ['max_tokens', 'max_completion_tokens'].find((name) => typeof body[name] === 'number' && body[name] < 1);
  if (low !== undefined || choices < 1) return belowMinimum(low ?? 'n');
  return null;
}

function belowMinimum(param: string): Refusal {
  return openaiError(400, `Invalid '${param}': integer below minimum value. Expected a value >= 1.`, {
    param,
    code: 'integer_below_min_value',
  });
}

function brokenMessage(messages: readonly ChatMessage[]): Refusal | null {
  if (messages.length === 0) {
    return openaiError(
      400,
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      {
        param: 'messages',
        code: 'empty_array',
      },
    );
  }
  for (const [index, { role, source, callIds }] of messages.entries()) {
    if (!ROLES.includes(role)) {
      return openaiError(400, `Invalid value: '${role}'. Supported values are: '${ROLES.join("', '")}'.`, {
        param: `messages[${index}].role`,
        code: 'invalid_value',
      });
    }
    const mayLackContent =
      role === 'assistant' && (callIds.length > 0 || source['function_call'] != null || source['refusal'] != null);
    if (source['content'] == null && !mayLackContent) {
      return openaiError(400, "Invalid value for 'content': expected a string, got null.", {
        param: `messages[${index}].content`,
      });
    }
  }
  return null;
}

/** Every call is answered right after it, and every tool message answers a call of the assistant message before it. */
function brokenPairing(messages: readonly ChatMessage[]): Refusal | null {
  let open: readonly string[] = [];
  let calls: readonly string[] = [];
  for (const [index, { role, source, callIds }] of messages.entries()) {
    if (role !== 'tool') {
      if (open.length > 0) return unanswered(open, index);
      open = calls = callIds;
      continue;
    }
    if (calls.length === 0) {
      return openaiError(
        400,
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        {
          param: `messages.[${index}].role`,
        },
      );
    }
    const id = typeof source['tool_call_id'] === 'string' ? source['tool_call_id'] : '';
    if (!calls.includes(id)) {
      return openaiError(
        400,
        `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`,
        {
          param: `messages.[${index}].tool_call_id`,
        },
      );
    }
    open = open.filter((other) => other !== id);
  }
  return open.length > 0 ? unanswered(open, messages.length) : null;
}

function unanswered(ids: readonly string[], index: number): Refusal {
  return openaiError(
    400,
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
      `The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
    { param: `messages.[${index}].role` },
  );
}

function brokenAlternation(messages: readonly ChatMessage[]): Refusal | null {
  const start = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  let expected = 'user';
  for (const { role, callIds, source } of start < 0 ? [] : messages.slice(start)) {
    if (role === 'tool' || role === 'function') continue;
    if (role !== expected)
      return openaiError(400, 'Conversation roles must alternate user/assistant/user/assistant/...', {
        param: 'messages',
      });
    // After the results of its calls the assistant goes on.
    expected = role === 'user' || callIds.length > 0 || source['function_call'] != null ? 'assistant' : 'user';
  }
  return start < 0
    ? openaiError(400, 'Conversation roles must alternate user/assistant/user/assistant/...', { param: 'messages' })
    : null;
}
