import type { TokenCounter } from '../core/ports.js';
import type { ChatRequest } from './chat-request.js';
import { isRecord } from './json-value.js';
import { mediaOf } from './part-media.js';

const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
const PRIMING_TOKENS = 3;

/** A piece of a prompt as its JSON text. */
export interface PromptPart {
  readonly text: string;
  readonly tokens: number;
  /** The client wants what goes up to here cached, where the provider leaves that to it. */
  readonly isMarked?: boolean | undefined;
}

/** Tokens of what a model reads. The two add up to the prompt. */
export interface PromptTokens {
  readonly messages: number;
  /** Tools, functions and response schema, as the JSON text that describes them. */
  readonly functions: number;
  /** In the order the model reads them: tools, functions and response schema, then message by message. */
  readonly parts: readonly PromptPart[];
}

/**
 * Counts a chat prompt by OpenAI's documented recipe: every string member of every message, 3 tokens a message, 1 a name, 3
 * that prime the reply; other members as JSON text, media by the counter's rule.
 */
export function chatPromptTokens(request: ChatRequest, counter: TokenCounter): PromptTokens {
  const functions = ['tools', 'functions', 'response_format'].flatMap((name) => jsonPart(request.body[name], counter));
  const messages = request.messages.map(({ source }): PromptPart => ({
    text: JSON.stringify(source),
    tokens: messageTokens(source, counter),
  }));
  return {
    messages: PRIMING_TOKENS + tokensOf(messages),
    functions: tokensOf(functions),
    parts: [...functions, ...messages],
  };
}

/** A member that the model reads as JSON text; nothing for one that is not given. */
export function jsonPart(value: unknown, counter: TokenCounter): readonly PromptPart[] {
  if (value == null) return [];
  const text = JSON.stringify(value);
  return [{ text, tokens: counter.count(text) }];
}

export function tokensOf(parts: readonly PromptPart[]): number {
  return parts.reduce((sum, part) => sum + part.tokens, 0);
}

function messageTokens(message: Readonly<Record<string, unknown>>, counter: TokenCounter): number {
  return Object.entries(message).reduce((sum, [name, value]) => {
    if (value === null || value === undefined) return sum;
    const own =
      name === 'content' && Array.isArray(value)
        ? value.reduce<number>((parts, part) => parts + partTokens(part, counter), 0)
        : valueTokens(value, counter);
    return sum + own + (name === 'name' ? TOKENS_PER_NAME : 0);
  }, TOKENS_PER_MESSAGE);
}

function partTokens(part: unknown, counter: TokenCounter): number {
  if (!isRecord(part)) return valueTokens(part, counter);
  const media = mediaOf(part);
  if (media !== null) return counter.countMedia(media);
  const text = part['text'] ?? part['refusal'];
  return valueTokens(typeof text === 'string' ? text : part, counter);
}

function valueTokens(value: unknown, counter: TokenCounter): number {
  return counter.count(typeof value === 'string' ? value : JSON.stringify(value));
}
