import { answerBody, errorBody, keepAlive, streamError } from './chat-answer.js';
import { ChatFolder } from './chat-fold.js';
import { readChatMessage } from './chat-message.js';
import { readRequest } from './chat-read.js';
import { readReply } from './chat-reply.js';
import { withResults } from './chat-results.js';
import { summaryBody, summaryMessage } from './chat-summary.js';
import { writeRequest } from './chat-write.js';
import type { Dialect } from './dialect.js';
import { unlessTooDeep } from './json-value.js';

/** The wire format of `POST /chat/completions`. */
export const chatCompletions: Dialect = {
  name: 'chat-completions',
  path: '/chat/completions',
  read: (body) => unlessTooDeep(() => readRequest(body)),
  write: writeRequest,
  folder: (choices = 1) => new ChatFolder(choices),
  readReply: (body) => unlessTooDeep(() => readReply(body)),
  summaryMessage,
  withResults,
  summaryBody,
  isNormalStop: (stopReason) => stopReason === 'stop',
  answer: answerBody,
  keepAlive,
  streamError,
  readMessage: (source) => unlessTooDeep(() => readChatMessage(source)),
  errorBody,
};
