import type { Message } from '../core/message.js';
import { isJsonObject } from './json-value.js';

/** A tool message with the text that its call id has in `results`; any other message as it is (SPEC 7.3). */
export function withResults(message: Message, results: ReadonlyMap<string, string>): Message {
  const text = message.results.flatMap(({ callId }) => results.get(callId) ?? [])[0];
  if (text === undefined || !isJsonObject(message.source)) return message;
  return {
    ...message,
    results: message.results.map((result) => ({ ...result, text: results.get(result.callId) ?? result.text })),
    source: { ...message.source, content: text },
  };
}
