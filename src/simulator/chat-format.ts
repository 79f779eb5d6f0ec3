import type { TokenCounter } from '../core/ports.js';
import { chatCompletion } from './chat-completion.js';
import { readChatRequest } from './chat-request.js';
import type { ChatRequest } from './chat-request.js';
import { brokenChatRule } from './chat-rules.js';
import type { StrictRoles } from './chat-rules.js';
import { chatStream } from './chat-stream.js';
import type { Asked, Format } from './format.js';
import { systemTextOf } from './model-request.js';
import type { ModelRequest } from './model-request.js';
import { OPENAI_ERRORS, contextLengthExceeded } from './openai-errors.js';
import { createPrefixCache } from './prefix-cache.js';
import { chatPromptTokens } from './prompt-tokens.js';
import type { RefusalForm } from './reply-plan.js';
import { sseData } from './server-events.js';

export const OPENAI_OVERFLOW: RefusalForm = { where: 'http', refusal: contextLengthExceeded };

interface AskedChat extends Asked {
  readonly chat: ChatRequest;
}

/** The format of `POST /chat/completions`. */
export function createChatFormat(counter: TokenCounter, strict: StrictRoles): Format<AskedChat> {
  return {
    kind: 'chat',
    ids: { reply: 'chatcmpl-simulated-', call: 'call_simulated_' },
    overflow: OPENAI_OVERFLOW,
    piecesBefore: { first: 0, stream: 1, 'after-content': 3 },
    refusesCap: true,
    stopAtWindow: 'length',
    errors: OPENAI_ERRORS,
    createCache: createPrefixCache,
    read: (body) => {
      const chat = readChatRequest(body);
      if ('kind' in chat) return chat;
      const broken = brokenChatRule(chat, strict);
      if (broken !== null) return broken;
      const tokens = chatPromptTokens(chat, counter);
      const request = modelRequest(chat, tokens.messages + tokens.functions);
      return { chat, request, tokens, reasoning: 'as-planned', compacts: false };
    },
    whole: ({ head, asked, reply }) => chatCompletion(head, asked.chat, reply),
    stream: ({ head, asked, reply }) => chatStream(head, asked.chat, reply),
    failure: (_spoken, { body }) => sseData(body),
    keep: () => {},
    refusal: (refusal) => refusal,
  };
}

function modelRequest(chat: ChatRequest, promptTokens: number): ModelRequest {
  const { model, stream, messages, toolNames, choices, outputCap, body } = chat;
  const systemText = systemTextOf(messages);
  return { model, stream, messages, systemText, toolNames, choices, outputCap, promptTokens, body, reads: body };
}
