import type { TokenCounter } from '../core/ports.js';
import type { Refusal } from './answer.js';
import { ANTHROPIC_ERRORS, promptTooLong, withRequestId } from './anthropic-errors.js';
import type { Asked, Format, Spoken } from './format.js';
import { createMarkedCache } from './marked-cache.js';
import { contentBlocks, wholeMessage } from './message-body.js';
import { messageStream } from './message-stream.js';
import type { MessageThreads } from './message-threads.js';
import { messagesTokens, promptMessages, unsealedMessages } from './messages-prompt.js';
import { readMessagesRequest } from './messages-request.js';
import type { Block, MessagesRequest } from './messages-request.js';
import { brokenMessagesRule } from './messages-rules.js';
import { systemTextOf } from './model-request.js';
import type { Seal } from './seal.js';
import { sseData, sseTyped } from './server-events.js';

export interface MessagesProvider {
  readonly seal: Seal;
  readonly threads: MessageThreads;
  /** Output that is cut at the end of the window, with a stop reason of its own, in place of the refusal of a `max_tokens` past it. */
  readonly cutsAtWindow: boolean;
}

interface AskedMessage extends Asked {
  readonly wire: MessagesRequest;
}

/** The format of `POST /messages`, Anthropic's. */
export function createMessagesFormat(counter: TokenCounter, provider: MessagesProvider): Format<AskedMessage> {
  const content = ({ asked, reply }: Spoken<AskedMessage>): readonly Block[] => {
    const [choice] = reply.choices;
    return choice === undefined ? [] : contentBlocks(choice, asked.wire, provider.seal);
  };
  const whole = (spoken: Spoken<AskedMessage>): Block => wholeMessage(spoken.head, spoken.reply, content(spoken));
  return {
    kind: 'chat',
    ids: { reply: 'msg_simulated_', call: 'toolu_simulated_' },
    overflow: { where: 'http', refusal: promptTooLong },
    piecesBefore: { first: 0, stream: 1, 'after-content': 5 },
    refusesCap: !provider.cutsAtWindow,
    stopAtWindow: 'model_context_window_exceeded',
    errors: ANTHROPIC_ERRORS,
    createCache: createMarkedCache,
    read: (body) => {
      const resolved = provider.threads.resolve(body);
      return 'kind' in resolved ? resolved : readMessagesCall(resolved.body, counter, provider.seal, true);
    },
    whole,
    stream: (spoken) => messageStream(whole(spoken), content(spoken), spoken.reply.choices[0]?.calls ?? []),
    failure: (_spoken, { body }) => errorEvent(body),
    keep: (spoken) => provider.threads.keep(spoken.asked.wire.body, spoken.head.id, content(spoken)),
    refusal: withRequestId,
  };
}

/** Reads and judges a call, or a request to count one, which needs no `max_tokens`. */
export function readMessagesCall(
  body: unknown,
  counter: TokenCounter,
  seal: Seal,
  needsCap: boolean,
): AskedMessage | Refusal {
  const wire = readMessagesRequest(body, needsCap);
  if ('kind' in wire) return wire;
  const broken = brokenMessagesRule(wire, seal);
  if (broken !== null) return broken;
  const tokens = messagesTokens(wire, seal, counter);
  const messages = promptMessages(wire);
  const request = {
    model: wire.model,
    stream: wire.stream,
    messages,
    systemText: systemTextOf(messages),
    toolNames: wire.tools.flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
    choices: 1,
    outputCap: wire.maxTokens,
    promptTokens: tokens.messages + tokens.functions,
    body: wire.body,
    reads: { ...wire.body, messages: unsealedMessages(wire, seal) },
  };
  return { wire, request, tokens, reasoning: wire.thinking === null ? 'never' : 'always', compacts: false };
}

function errorEvent(body: unknown): string {
  return typeof body === 'object' && body !== null && 'type' in body && body.type === 'error'
    ? sseTyped({ ...body, type: 'error' })
    : `event: error\n${sseData(body)}`;
}
