import type { TokenCounter } from '../core/ports.js';
import { isRecord } from './json-value.js';
import type { PromptMessage } from './model-request.js';
import type { PromptPart, PromptTokens } from './prompt-tokens.js';
import { jsonPart, tokensOf } from './prompt-tokens.js';
import { callIdOf, contentText, isAssistants, typeOf } from './response-item.js';
import type { Item, ResponsesRequest } from './responses-request.js';
import { promptText, structuredTokens } from './structured-tokens.js';

const TOKENS_PER_ITEM = 3;

/** Counts what the model reads: tools and response format as JSON text, instructions, and item by item what it says. */
export function responsesTokens(
  { instructions, body }: ResponsesRequest,
  items: readonly Item[],
  counter: TokenCounter,
): PromptTokens {
  const text = isRecord(body['text']) ? body['text'] : {};
  const functions = [...jsonPart(body['tools'], counter), ...jsonPart(text['format'], counter)];
  const told = instructions === null ? items : [{ role: 'system', content: instructions }, ...items];
  const messages = told.map((item): PromptPart => ({
    text: itemText(item),
    tokens: TOKENS_PER_ITEM + structuredTokens(item, counter),
  }));
  return {
    messages: TOKENS_PER_ITEM + tokensOf(messages),
    functions: tokensOf(functions),
    parts: [...functions, ...messages],
  };
}

/** A message of text alone reads the same as text and as parts. */
function itemText(item: Item): string {
  const { role, content } = item;
  const isText = Array.isArray(content) && content.every((part) => isRecord(part) && typeof part['text'] === 'string');
  return typeOf(item) === 'message'
    ? promptText({ role, content: isText ? contentText(content) : content })
    : promptText(item);
}

/** Items as messages: all that the assistant said and did at once is one. */
export function promptMessages(instructions: string | null, items: readonly Item[]): readonly PromptMessage[] {
  const messages: PromptMessage[] = [];
  if (instructions !== null) messages.push({ role: 'system', text: instructions, calledTools: [] });
  for (const item of items) {
    const message = promptMessage(item);
    const last = messages.at(-1);
    if (last?.role === 'assistant' && message.role === 'assistant') {
      messages[messages.length - 1] = {
        role: 'assistant',
        text: last.text + message.text,
        calledTools: [...last.calledTools, ...message.calledTools],
      };
    } else {
      messages.push(message);
    }
  }
  return messages;
}

function promptMessage(item: Item): PromptMessage {
  const type = typeOf(item);
  if (type === 'message') return { role: String(item['role']), text: contentText(item['content']), calledTools: [] };
  if (type === 'compaction') return { role: 'user', text: contentText(item['text']), calledTools: [] };
  if (isAssistants(item)) return { role: 'assistant', text: '', calledTools: calledTool(item) };
  if (callIdOf(item) !== null) return { role: 'tool', text: contentText(item['output']), calledTools: [] };
  return { role: 'assistant', text: '', calledTools: [] };
}

function calledTool({ name, call_id: callId, type }: Item): readonly string[] {
  if (typeof callId !== 'string') return [];
  return [typeof name === 'string' ? name : String(type)];
}
