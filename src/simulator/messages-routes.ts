import type { TokenCounter } from '../core/ports.js';
import type { Refusal } from './answer.js';
import { jsonAnswer } from './answer.js';
import { malformedAnthropicJson, missingVersion, requestTooLarge, withRequestId } from './anthropic-errors.js';
import type { ConversationRoute, RequestStamp } from './conversation-route.js';
import { readMessagesCall } from './messages-format.js';
import type { RecordedRequest } from './request-log.js';
import { plain, refused } from './routed.js';
import type { Routed } from './routed.js';
import type { Seal } from './seal.js';

export interface MessagesRoutes {
  readonly counter: TokenCounter;
  readonly seal: Seal;
  /** Most bytes of a body. */
  readonly largestBodyBytes: number;
  readonly converse: ConversationRoute;
}

/** Serves `POST /messages` and `/messages/count_tokens`, whose every refusal is in Anthropic's form; null for other paths. */
export async function serveMessages(
  route: string,
  { body, bytes }: RecordedRequest,
  version: string | undefined,
  stamp: RequestStamp,
  routes: MessagesRoutes,
): Promise<Routed | null> {
  const kind = route === 'POST /messages' ? 'chat' : 'other';
  if (kind === 'other' && route !== 'POST /messages/count_tokens') return null;
  const refuse = (refusal: Refusal) => refused(kind, withRequestId(refusal, stamp.requestId));
  if (bytes.length > routes.largestBodyBytes) return refuse(requestTooLarge());
  if (version === undefined) return refuse(missingVersion());
  if (body === undefined) return refuse(malformedAnthropicJson());
  if (kind === 'chat') return routes.converse(body, stamp);
  const counted = readMessagesCall(body, routes.counter, routes.seal, false);
  if ('kind' in counted) return refuse(counted);
  const { promptTokens, reads } = counted.request;
  return { ...plain('other', jsonAnswer(200, { input_tokens: promptTokens })), promptTokens, reads };
}
