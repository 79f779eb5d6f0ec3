import type { ReplyHead } from './format.js';
import type { GeneratedCall, GeneratedChoice, GeneratedReply, ReplyUsage } from './generate.js';
import { isRecord } from './json-value.js';
import type { Block, MessagesRequest } from './messages-request.js';
import type { Stop } from './reply-plan.js';
import type { Seal } from './seal.js';

/** What the model said as content blocks; the input of a call that was cut is what could be read of it. */
export function contentBlocks(choice: GeneratedChoice, { thinking }: MessagesRequest, seal: Seal): readonly Block[] {
  const { reasoning, text, refusal, calls } = choice;
  const thought = {
    type: 'thinking',
    thinking: thinking?.isOmitted === true ? '' : reasoning,
    signature: seal.seal('thinking', reasoning),
  };
  const said = text + refusal;
  return [
    ...(reasoning === '' ? [] : [thought]),
    ...(said === '' ? [] : [{ type: 'text', text: said }]),
    ...calls.map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: inputOf(call) })),
  ];
}

/** A reply as the body of `POST /messages`. */
export function wholeMessage(head: ReplyHead, reply: GeneratedReply, content: readonly Block[]): Block {
  return {
    id: head.id,
    type: 'message',
    role: 'assistant',
    model: head.model,
    content,
    stop_reason: stopReason(reply.choices[0]),
    stop_sequence: null,
    usage: messageUsage(reply.usage),
  };
}

/** Disjoint counts: what was neither read from the cache nor put into it is the plain input. */
function messageUsage(usage: ReplyUsage): Block {
  const { promptTokens, cachedTokens, writtenTokens, completionTokens } = usage;
  return {
    input_tokens: promptTokens - cachedTokens - writtenTokens,
    cache_creation_input_tokens: writtenTokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation: { ephemeral_5m_input_tokens: writtenTokens, ephemeral_1h_input_tokens: 0 },
    output_tokens: completionTokens,
    service_tier: 'standard',
  };
}

/** Anthropic's words for a stop. */
function stopReason(choice: GeneratedChoice | undefined): string {
  if (choice !== undefined && choice.refusal !== '') return 'refusal';
  return reasonOf(choice?.stop ?? 'stop');
}

function reasonOf(stop: Stop): string {
  switch (stop) {
    case 'stop':
      return 'end_turn';
    case 'length':
      return 'max_tokens';
    case 'tool_calls':
      return 'tool_use';
    case 'content_filter':
      return 'refusal';
    case 'model_context_window_exceeded':
      return stop;
  }
}

function inputOf({ arguments: json }: GeneratedCall): Block {
  try {
    const input: unknown = JSON.parse(json);
    return isRecord(input) ? input : {};
  } catch {
    return {};
  }
}
