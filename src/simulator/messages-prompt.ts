import type { TokenCounter } from '../core/ports.js';
import { isRecord, stringsIn } from './json-value.js';
import type { Block, MessagesMessage, MessagesRequest } from './messages-request.js';
import { isMarked } from './messages-rules.js';
import type { PromptMessage } from './model-request.js';
import type { PromptPart, PromptTokens } from './prompt-tokens.js';
import { tokensOf } from './prompt-tokens.js';
import type { Seal } from './seal.js';
import { promptText, structuredTokens } from './structured-tokens.js';
import { isThinking, thinkingText } from './thinking-rules.js';

const TOKENS_PER_MESSAGE = 3;

/** Counts what the model reads block by block, in its order: tools as JSON text, system, messages. */
export function messagesTokens(request: MessagesRequest, seal: Seal, counter: TokenCounter): PromptTokens {
  const blockPart =
    (role: string) =>
    (block: Block, index: number): PromptPart => {
      // The input of a call is read as the text it was made of.
      const read =
        block['type'] === 'tool_use' ? { ...block, input: JSON.stringify(block['input']) } : unsealed(block, seal);
      const overhead = index === 0 ? TOKENS_PER_MESSAGE : 0;
      const tokens = overhead + structuredTokens(read, counter);
      return { text: `${role} ${index} ${promptText(read)}`, tokens, isMarked: isMarked(block) };
    };
  const tools = request.tools.map((tool): PromptPart => {
    const { cache_control: _mark, ...described } = tool;
    const text = JSON.stringify(described);
    return { text, tokens: counter.count(text), isMarked: isMarked(tool) };
  });
  const messages = [
    ...request.system.map(blockPart('system')),
    ...request.messages.flatMap(({ role, content }) => content.map(blockPart(role))),
  ];
  const parts = [...tools, ...messages];
  return {
    messages: TOKENS_PER_MESSAGE + tokensOf(messages),
    functions: tokensOf(tools),
    // A mark on the request itself stands for one on its last block.
    parts:
      request.body['cache_control'] == null
        ? parts
        : parts.map((part, index) => (index === parts.length - 1 ? { ...part, isMarked: true } : part)),
  };
}

/** Messages as a model reads them: results of tools are messages of their own. */
export function promptMessages({ system, messages }: MessagesRequest): readonly PromptMessage[] {
  const instructions = system.map(({ text }): PromptMessage => ({
    role: 'system',
    text: String(text),
    calledTools: [],
  }));
  return [...instructions, ...messages.flatMap(spokenMessages)];
}

function spokenMessages({ role, content }: MessagesMessage): readonly PromptMessage[] {
  const results = content
    .filter(({ type }) => type === 'tool_result')
    .map((block): PromptMessage => ({ role: 'tool', text: textOf(block['content']), calledTools: [] }));
  const own = content.filter(({ type }) => type !== 'tool_result');
  if (own.length === 0 && results.length > 0) return results;
  const calledTools = own.filter(({ type }) => type === 'tool_use').map(({ name }) => String(name));
  return [...results, { role, text: textOf(own), calledTools }];
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(isRecord)
    .flatMap(({ text }) => stringsIn(text))
    .join('');
}

/** Messages with the thinking in place that their signatures carry. */
export function unsealedMessages({ messages }: MessagesRequest, seal: Seal): readonly MessagesMessage[] {
  return messages.map(({ role, content }) => ({ role, content: content.map((block) => unsealed(block, seal)) }));
}

function unsealed(block: Block, seal: Seal): Block {
  return isThinking(block) ? { type: 'thinking', thinking: thinkingText(block, seal) } : block;
}
