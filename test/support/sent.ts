import type { WireMessage } from './chat.js';
import type { StartedPair } from './start.js';

/** The last chat request that the provider received, as text: summary calls left out. */
export function lastText(pair: StartedPair): string {
  return Buffer.from(pair.simulator.chatRequests().at(-1)?.bytes ?? []).toString();
}

/** The messages that the model read last. */
export function lastMessages(pair: StartedPair): readonly WireMessage[] {
  return messagesIn(lastText(pair));
}

/** The message list of a body. */
export function messagesIn(text: string): readonly WireMessage[] {
  return (JSON.parse(text) as { messages: WireMessage[] }).messages;
}
