import { answerBody, errorBody, keepAlive, streamError, streamOf } from './anthropic-answer.js';
import { MessagesFolder } from './anthropic-fold.js';
import { readAnthropicMessage } from './anthropic-message.js';
import { modelTraits } from './anthropic-models.js';
import { readRequest } from './anthropic-read.js';
import { readReply } from './anthropic-reply.js';
import { withResults } from './anthropic-results.js';
import { summaryBody } from './anthropic-summary.js';
import { writeRequest } from './anthropic-write.js';
import { summaryMessage } from './chat-summary.js';
import type { Dialect } from './dialect.js';
import { unlessTooDeep } from './json-value.js';

/** The wire format of `POST /messages`, Anthropic's. */
export const anthropicMessages: Dialect = {
  name: 'anthropic-messages',
  path: '/messages',
  headers: { 'anthropic-version': '2023-06-01' },
  read: (body) => unlessTooDeep(() => readRequest(body)),
  write: writeRequest,
  folder: () => new MessagesFolder(),
  readReply: (body) => unlessTooDeep(() => readReply(body)),
  summaryMessage,
  withResults,
  summaryBody,
  summaryReasoningTokens: (model, upstreamHost) => modelTraits(model, upstreamHost).reasoningTokens,
  // A stop sequence is one that the request named; summary requests name none.
  isNormalStop: (stopReason) => stopReason === 'end_turn',
  answer: answerBody,
  keepAlive,
  resume: () => null,
  streamOf,
  streamError,
  readMessage: (source) => unlessTooDeep(() => readAnthropicMessage(source)),
  errorBody,
  compaction: null,
};
