import type { Refusal } from './answer.js';
import { anthropicError } from './anthropic-errors.js';
import type { Block, MessagesMessage, MessagesRequest } from './messages-request.js';
import type { Seal } from './seal.js';

/** What the API refuses of thinking that comes back; null if it is whole. */
export function brokenThinking({ messages, thinking }: MessagesRequest, seal: Seal): Refusal | null {
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'assistant') continue;
    const forged = content.findIndex((block) => isThinking(block) && thinkingText(block, seal) === null);
    if (forged >= 0) {
      const name =
        content[forged]?.['type'] === 'thinking' ? '`signature` in `thinking`' : '`data` in `redacted_thinking`';
      return anthropicError(400, `messages.${index}.content.${forged}: Invalid ${name} block`);
    }
    if (isThinking(content.at(-1))) {
      return anthropicError(400, `messages.${index}: The final block in an assistant message cannot be \`thinking\`.`);
    }
  }
  return thinking?.type === 'enabled' ? brokenStart(messages) : null;
}

/** What a block of thinking says; null if its signature does not bear it out. */
export function thinkingText(block: Block, seal: Seal): string | null {
  const { type, thinking, signature, data } = block;
  const sealed = type === 'redacted_thinking' ? data : signature;
  const text = typeof sealed === 'string' ? seal.open('thinking', sealed) : null;
  // Thinking whose text the provider kept comes back without it.
  return type === 'redacted_thinking' || thinking === '' || thinking === text ? text : null;
}

export function isThinking(block: Block | undefined): boolean {
  return block?.['type'] === 'thinking' || block?.['type'] === 'redacted_thinking';
}

/** An assistant's turn that goes on over results of its tools has to begin with thinking. */
function brokenStart(messages: readonly MessagesMessage[]): Refusal | null {
  const goesOn = (message: MessagesMessage) =>
    message.role !== 'user' || message.content.some(({ type }) => type === 'tool_result');
  const start = messages.findLastIndex((message) => !goesOn(message)) + 1;
  const index = messages.findIndex(({ role }, place) => place >= start && role === 'assistant');
  const first = messages[index]?.content[0];
  if (index < 0 || index === messages.length - 1 || isThinking(first)) return null;
  return anthropicError(
    400,
    `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found ` +
      `\`${String(first?.['type'])}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a ` +
      'thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include ' +
      'thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our ' +
      'documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking',
  );
}
