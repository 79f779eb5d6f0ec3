import type { Usage } from '../core/message.js';
import { ChoiceMessage } from './chat-delta.js';
import { errorOf, finishReason, readUsage, replyOf } from './chat-reply.js';
import type { EventMeaning, Folder, Reply, Unread } from './dialect.js';
import { isEmpty, isJsonObject, parsedJson, unlessTooDeep, type JsonObject } from './json-value.js';

interface OpenChoice {
  readonly said: ChoiceMessage;
  hasContent: boolean;
  finishReason: string | null;
}

const NOTHING: EventMeaning = { hasContent: false, usageOnly: false, hasError: false, ends: false };

/** Folds chat-completion chunks; `expected` is the number of choices the request asked for. */
export class ChatFolder implements Folder {
  readonly #expected: number;
  readonly #choices = new Map<number, OpenChoice>();
  #usage: Usage | null = null;
  #error: string | null = null;
  #unread: Unread | null = null;

  constructor(expected: number) {
    this.#expected = expected;
  }

  push(data: string, event: string | null): EventMeaning {
    if (data.trim() === '[DONE]') return { ...NOTHING, ends: true };
    const meaning = unlessTooDeep(() => this.#fold(data, event));
    if (meaning !== null) return meaning;
    // What nests too deep to be folded was said all the same: it is relayed, and nothing can be retried after it.
    this.#unread ??= 'too_deep';
    return { ...NOTHING, hasContent: true };
  }

  reply(): Reply {
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b).map(([, choice]) => choice);
    return replyOf(
      choices.map((choice) => ({ message: choice.said.message(), finishReason: choice.finishReason })),
      { expected: this.#expected, usage: this.#usage, error: this.#error, unread: this.#unread },
    );
  }

  #fold(data: string, event: string | null): EventMeaning {
    const chunk = parsedJson(data);
    const error = this.#readError(chunk, data, event);
    this.#error ??= error;
    if (!isJsonObject(chunk)) {
      // Some servers send words as signs of life; a chunk that came garbled had something to say.
      if (error === null && data.trimStart().startsWith('{')) this.#unread ??= 'malformed';
      return { ...NOTHING, hasError: error !== null };
    }
    const usage =
      readUsage(chunk['usage']) ?? readUsage(isJsonObject(chunk['x_groq']) ? chunk['x_groq']['usage'] : null);
    this.#usage = usage ?? this.#usage;
    const choices: readonly unknown[] = Array.isArray(chunk['choices']) ? chunk['choices'] : [];
    // Not `some`: every choice of the chunk has to be folded.
    const hasContent = choices.map((choice) => this.#foldChoice(choice)).includes(true);
    const usageOnly =
      error === null && choices.length === 0 && isJsonObject(chunk['usage']) && isEmpty(chunk['prompt_filter_results']);
    return { hasContent, usageOnly, hasError: error !== null, ends: false };
  }

  #readError(chunk: unknown, data: string, event: string | null): string | null {
    const choices: unknown = isJsonObject(chunk) ? chunk['choices'] : null;
    const found =
      errorOf(chunk) ?? (Array.isArray(choices) ? choices.map(errorOf).find((error) => error !== null) : null);
    return found ?? (event === 'error' ? JSON.stringify({ error: chunk ?? data }) : null);
  }

  #foldChoice(choice: unknown): boolean {
    if (!isJsonObject(choice)) return false;
    const open = this.#open(typeof choice['index'] === 'number' ? choice['index'] : 0);
    const hasContent = open.said.add(deltaOf(choice, open));
    open.hasContent ||= hasContent;
    open.finishReason = finishReason(choice) ?? open.finishReason;
    return hasContent;
  }

  #open(index: number): OpenChoice {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    const choice: OpenChoice = { said: new ChoiceMessage(), hasContent: false, finishReason: null };
    this.#choices.set(index, choice);
    return choice;
  }
}

/** Some vendors send a whole `message` in place of deltas; after deltas it repeats what they said. */
function deltaOf(choice: JsonObject, open: OpenChoice): JsonObject {
  if (isJsonObject(choice['delta'])) return choice['delta'];
  return isJsonObject(choice['message']) && !open.hasContent ? choice['message'] : {};
}
