import type { Message } from '../core/message.js';
import { withMember } from './json-edits.js';
import { isJsonObject, type JsonObject } from './json-value.js';
import { shortenedOutput } from './responses-content.js';
import { readGroup } from './responses-group.js';

/** A tool result with the text that its call id has in `results`; any other message as it is (SPEC 7.3). */
export function withResults(message: Message, results: ReadonlyMap<string, string>): Message {
  const { source } = message;
  const text = textFor(message, results);
  if (text === null || !isJsonObject(source)) return message;
  return {
    ...message,
    results: message.results.map((result) => ({ ...result, text })),
    source: { ...source, output: shortenedOutput(source['output'], text) },
  };
}

/** The same for an item as JSON text, whose other characters stay. */
export function reducedText(item: string, results: ReadonlyMap<string, string>): string {
  const source: unknown = JSON.parse(item);
  const message = readGroup(source);
  const text = message === null ? null : textFor(message, results);
  if (text === null || !isJsonObject(source)) return item;
  return withMember(item, 'output', JSON.stringify(shortenedOutput(source['output'], text)));
}

/** Null for what is no result of these, or one that has no text to be told in other words. */
function textFor(message: Message, results: ReadonlyMap<string, string>): string | null {
  const result = message.results[0];
  const isText = result !== undefined && result.text !== '' && hasOutput(message.source);
  return isText ? (results.get(result.callId) ?? null) : null;
}

function hasOutput(source: unknown): source is JsonObject {
  return isJsonObject(source) && source['output'] !== undefined;
}
