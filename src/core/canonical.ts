import type { Message } from './message.js';
import type { Hash } from './ports.js';

/** Version of the canonical form; a conversation keeps the one it began with (SPEC 1.4). */
export const CANONICAL_VERSION = 1;

/**
 * The identity of a message as text, SPEC 1.3: what real clients rewrite between turns is not in it. JSON, because it
 * escapes lone surrogates, so that different texts never meet in one digest.
 */
function canonicalMessage(message: Message): string {
  const text = message.role === 'llm' ? message.text.trimEnd() : message.text;
  return JSON.stringify([
    message.role,
    text,
    message.role === 'user' ? message.name : null,
    message.calls.map((call) => [call.id, call.name, call.arguments]),
    message.results.map((result) => [result.callId, result.text]),
    message.media.map((media) => [media.kind, media.data]),
  ]);
}

/** The digest that a conversation's first node hangs on: it carries tenant, dialect and version (SPEC 1.4). */
export function rootDigest(hash: Hash, tenant: string, dialect: string, version: number): string {
  return hash(JSON.stringify(['spillway', version, dialect, tenant]));
}

/** The id of the message that follows `predecessor` (the root's digest for the first one), SPEC 1.4. */
export function nodeId(hash: Hash, predecessor: string, message: Message): string {
  return hash(`${predecessor}\n${canonicalMessage(message)}`);
}

/** The ids of a whole list of messages, each following the one before. One hash a message. */
export function chainIds(hash: Hash, predecessor: string, messages: readonly Message[]): readonly string[] {
  const ids: string[] = [];
  let last = predecessor;
  for (const message of messages) {
    last = nodeId(hash, last, message);
    ids.push(last);
  }
  return ids;
}
