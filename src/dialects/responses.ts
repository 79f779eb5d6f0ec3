import { summaryMessage } from './chat-summary.js';
import type { Dialect } from './dialect.js';
import { unlessTooDeep } from './json-value.js';
import { errorBody } from './openai-error.js';
import { answerBody, keepAlive, resume, streamError } from './responses-answer.js';
import { responsesCompaction } from './responses-compaction.js';
import { ResponsesFolder } from './responses-fold.js';
import { readRequest, readSource } from './responses-read.js';
import { readReply } from './responses-reply.js';
import { withResults } from './responses-results.js';
import { streamOf } from './responses-stream-of.js';
import { summaryBody } from './responses-summary.js';
import { writeRequest } from './responses-write.js';
import { chatTraits } from './vendors.js';

/** The wire format of `POST /responses`, OpenAI's newer one: a list of items in place of messages. */
export const responses: Dialect = {
  name: 'responses',
  path: '/responses',
  headers: {},
  read: (body) => unlessTooDeep(() => readRequest(body)),
  write: writeRequest,
  folder: () => new ResponsesFolder(),
  readReply: (body) => unlessTooDeep(() => readReply(body)),
  summaryMessage,
  withResults,
  summaryBody,
  summaryReasoningTokens: (model, upstreamHost) => chatTraits(model, upstreamHost).reasoningTokens,
  isNormalStop: (stopReason) => stopReason === 'completed',
  answer: answerBody,
  keepAlive,
  resume,
  streamOf,
  streamError,
  readMessage: (source) => unlessTooDeep(() => readSource(source)),
  errorBody,
  compaction: responsesCompaction,
};
