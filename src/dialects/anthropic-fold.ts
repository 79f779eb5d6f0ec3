import { OpenBlock } from './anthropic-block.js';
import { errorOf, readUsage, replyOf, saysSomething, stopReasonOf } from './anthropic-reply.js';
import type { EventMeaning, Folder, Reply, Unread } from './dialect.js';
import { isJsonObject, parsedJson, unlessTooDeep, type JsonObject } from './json-value.js';

const NOTHING: EventMeaning = { hasContent: false, usageOnly: false, hasError: false, ends: false };

/** Folds the events of a Messages stream. */
export class MessagesFolder implements Folder {
  readonly #blocks = new Map<number, OpenBlock>();
  #id: unknown = null;
  #usage: JsonObject = {};
  #stopReason: string | null = null;
  #error: string | null = null;
  #unread: Unread | null = null;

  push(data: string, event: string | null): EventMeaning {
    const meaning = unlessTooDeep(() => this.#fold(data, event));
    if (meaning !== null) return meaning;
    // What nests too deep to be folded was said all the same: it is relayed, and nothing can be retried after it.
    this.#unread ??= 'too_deep';
    return { ...NOTHING, hasContent: true };
  }

  reply(): Reply {
    const blocks = [...this.#blocks].toSorted(([a], [b]) => a - b).map(([, block]) => block.wire());
    return replyOf({
      id: this.#id,
      content: blocks,
      stopReason: this.#stopReason,
      usage: readUsage(this.#usage),
      error: this.#error,
      unread: this.#unread,
    });
  }

  #fold(data: string, event: string | null): EventMeaning {
    const chunk = parsedJson(data);
    if (!isJsonObject(chunk)) return this.#foldOther(data, event);
    const error = errorOf(event === 'error' && chunk['type'] === undefined ? { type: 'error', ...chunk } : chunk);
    if (error !== null) {
      this.#error ??= error;
      return { ...NOTHING, hasError: true };
    }
    const type: unknown = chunk['type'] ?? event;
    switch (type) {
      case 'message_start':
        return { ...NOTHING, hasContent: this.#start(chunk['message']) };
      case 'content_block_start':
        return { ...NOTHING, hasContent: this.#startBlock(placeOf(chunk), chunk['content_block']) };
      case 'content_block_delta':
        return { ...NOTHING, hasContent: this.#addDelta(placeOf(chunk), chunk['delta']) };
      case 'message_delta':
        this.#addUsage(chunk['usage']);
        if (isJsonObject(chunk['delta'])) this.#stopReason = stopReasonOf(chunk['delta']) ?? this.#stopReason;
        return NOTHING;
      case 'message_stop':
        return { ...NOTHING, ends: true };
      default:
        return NOTHING;
    }
  }

  /** Data that is no object: an error where the event says so, garbled where it began as one, otherwise a word of some server's own. */
  #foldOther(data: string, event: string | null): EventMeaning {
    if (event === 'error') {
      this.#error ??= JSON.stringify({ type: 'error', error: { type: 'api_error', message: data } });
      return { ...NOTHING, hasError: true };
    }
    if (data.trimStart().startsWith('{')) this.#unread ??= 'malformed';
    return NOTHING;
  }

  /** Some servers begin with blocks, or with the whole message, in place of an empty one. */
  #start(message: unknown): boolean {
    if (!isJsonObject(message)) return false;
    this.#id = message['id'];
    this.#stopReason = stopReasonOf(message);
    const { output_tokens: placeholder, ...usage } = isJsonObject(message['usage']) ? message['usage'] : {};
    this.#addUsage(this.#stopReason === null ? usage : { ...usage, output_tokens: placeholder });
    const content: readonly unknown[] = Array.isArray(message['content']) ? message['content'] : [];
    // Not `some`: every block has to be begun.
    return content.map((block, index) => this.#startBlock(index, block)).includes(true);
  }

  #startBlock(index: number, block: unknown): boolean {
    if (!isJsonObject(block)) return false;
    this.#blocks.set(index, new OpenBlock(block));
    return saysSomething(block);
  }

  #addDelta(index: number, delta: unknown): boolean {
    if (!isJsonObject(delta)) return false;
    const block = this.#blocks.get(index);
    if (block !== undefined) return block.add(delta);
    this.#unread ??= 'malformed';
    return true;
  }

  /** Counts are totals so far; one that is left out or null stays as it was. */
  #addUsage(usage: unknown): void {
    if (!isJsonObject(usage)) return;
    const given = Object.entries(usage).filter(([, count]) => count !== null && count !== undefined);
    this.#usage = { ...this.#usage, ...Object.fromEntries(given) };
  }
}

function placeOf(chunk: JsonObject): number {
  return typeof chunk['index'] === 'number' ? chunk['index'] : 0;
}
