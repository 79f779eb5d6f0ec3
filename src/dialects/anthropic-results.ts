import type { Message } from '../core/message.js';
import { textOf } from './anthropic-media.js';
import { applyEdits, valueAt, type Edit } from './json-edits.js';
import { elementSpans, memberSpans } from './json-spans.js';
import { isJsonObject, type JsonObject } from './json-value.js';

/** A message with other text in some of its tool results, by call id; everything else of them stays (SPEC 7.3). */
export function withResults(message: Message, results: ReadonlyMap<string, string>): Message {
  const { source } = message;
  if (!isJsonObject(source) || !Array.isArray(source['content'])) return message;
  const content: readonly unknown[] = source['content'];
  return {
    ...message,
    results: message.results.map((result) => ({ ...result, text: results.get(result.callId) ?? result.text })),
    source: {
      ...source,
      content: content.map((block) => {
        const text = textFor(block, results);
        return text === null || !isJsonObject(block) ? block : { ...block, content: shortened(block['content'], text) };
      }),
    },
  };
}

/** The same for a message as JSON text, whose other characters stay. */
export function reducedText(message: string, results: ReadonlyMap<string, string>): string {
  const content = memberSpans(message).get('content');
  if (content === undefined) return message;
  const edits = elementSpans(message, content.start).flatMap((span): readonly Edit[] => {
    const inner = memberSpans(message, span.start).get('content');
    const text = textFor(valueAt(message, span), results);
    if (inner === undefined || text === null) return [];
    return [{ ...inner, text: JSON.stringify(shortened(valueAt(message, inner), text)) }];
  });
  return applyEdits(message, edits);
}

/** Null for what is no tool result with content, or none of these. */
function textFor(block: unknown, results: ReadonlyMap<string, string>): string | null {
  if (!isJsonObject(block) || block['type'] !== 'tool_result' || block['content'] === undefined) return null;
  const id = block['tool_use_id'];
  return typeof id === 'string' ? (results.get(id) ?? null) : null;
}

/**
 * A result's content with `text` in the place of all its text: in its last block with a cache mark, so that the mark stays, else in its
 * first. Other blocks stay; content without text stays as it is.
 */
function shortened(content: unknown, text: string): unknown {
  if (!Array.isArray(content)) return text;
  const blocks: readonly unknown[] = content;
  const isText = (block: unknown): block is JsonObject => isJsonObject(block) && textOf(block) !== null;
  const marked = blocks.findLast((block) => isText(block) && isJsonObject(block['cache_control']));
  const place = marked ?? blocks.find(isText);
  return blocks.flatMap((block) => {
    if (!isText(block)) return [block];
    if (block !== place) return [];
    const mark = block['cache_control'];
    return [mark === undefined ? { type: 'text', text } : { type: 'text', text, cache_control: mark }];
  });
}
