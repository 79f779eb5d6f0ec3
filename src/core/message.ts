/**
 * What the core sees of a message, whatever wire format it came in. A dialect builds it; nothing here knows a provider.
 * `source` keeps the wire form as it came, so that what is kept is sent again unchanged (SPEC 4.3).
 */

/** The role of a node (SPEC 2.1). System and developer messages are both `system`. */
export type Role = 'user' | 'llm' | 'tool' | 'system';

/** A call of a tool by the model. `arguments` is the string as sent; objects are serialised with sorted keys (SPEC 1.3). */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** The result of one tool call; `text` is its text parts joined. */
export interface ToolResult {
  readonly callId: string;
  readonly text: string;
}

/**
 * A part that is not text. `data` is what identifies it: base64 when `inline`, otherwise a URL or a provider's file id.
 * `detail` is the resolution the client asked for an image, where the dialect has one.
 */
export interface Media {
  readonly kind: 'image' | 'audio' | 'file' | 'video' | 'other';
  readonly inline: boolean;
  readonly data: string;
  readonly mimeType: string | null;
  readonly name: string | null;
  readonly detail: 'low' | 'high' | null;
}

export interface Message {
  readonly role: Role;
  /** Text parts joined, tool results excluded. */
  readonly text: string;
  /** The `name` a client gave a user message; null otherwise. */
  readonly name: string | null;
  readonly calls: readonly ToolCall[];
  readonly results: readonly ToolResult[];
  readonly media: readonly Media[];
  /** Reasoning echoed as text: on the wire, so it is counted; no part of identity (SPEC 1.3). */
  readonly reasoning: string;
  /** Carries signed or encrypted reasoning: sent whole with its unit or gone with it (SPEC 4.7). */
  readonly signed: boolean;
  /** The wire form: what was parsed from the client's request, or folded from the provider's reply. */
  readonly source: unknown;
}

/** A user message with content of the user's own and no tool result in it: the only thing that starts a turn. */
export function isTypedUserMessage(message: Message): boolean {
  return message.role === 'user' && message.results.length === 0 && (message.text !== '' || message.media.length > 0);
}

/** True if nothing of it but text would be lost by telling it in other words. */
export function isTextOnly(message: Message): boolean {
  return message.media.length === 0;
}

/** Tokens as a provider reported them. Null is "not reported", which is never the same as zero (SPEC 9.4). */
export interface Usage {
  /** All input tokens, cached ones included. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cachedTokens: number | null;
  readonly reasoningTokens: number | null;
}

/**
 * What became of an upstream request (SPEC 2.3). Complete: its stop reason was relayed. Unread: it went through to its end, but not
 * all of it could be read, so that what was said is not known.
 */
export type Outcome = 'complete' | 'cancelled' | 'failed' | 'unread';
