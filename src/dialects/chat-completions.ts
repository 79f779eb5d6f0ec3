import { answerBody, keepAlive, streamError } from './chat-answer.js';
import { ChatFolder } from './chat-fold.js';
import { readChatMessage } from './chat-message.js';
import { readRequest } from './chat-read.js';
import { readReply } from './chat-reply.js';
import { withResults } from './chat-results.js';
import { streamOf } from './chat-stream-of.js';
import { summaryBody, summaryMessage } from './chat-summary.js';
import { writeRequest } from './chat-write.js';
import type { Dialect } from './dialect.js';
import { unlessTooDeep } from './json-value.js';
import { errorBody } from './openai-error.js';
import { chatTraits } from './vendors.js';

/** The wire format of `POST /chat/completions`. */
export const chatCompletions: Dialect = {
  name: 'chat-completions',
  path: '/chat/completions',
  headers: {},
  read: (body) => unlessTooDeep(() => readRequest(body)),
  write: writeRequest,
  folder: (choices = 1) => new ChatFolder(choices),
  readReply: (body) => unlessTooDeep(() => readReply(body)),
  summaryMessage,
  withResults,
  summaryBody,
  summaryReasoningTokens: (model, upstreamHost) => chatTraits(model, upstreamHost).reasoningTokens,
  isNormalStop: (stopReason) => stopReason === 'stop',
  answer: answerBody,
  keepAlive,
  resume: () => null,
  streamOf,
  streamError,
  readMessage: (source) => unlessTooDeep(() => readChatMessage(source)),
  errorBody,
  compaction: null,
};
