/** A message as a model reads it, whatever the wire format. */
export interface PromptMessage {
  readonly role: string;
  /** Its text parts joined. */
  readonly text: string;
  /** The names of the tools it calls, in order. */
  readonly calledTools: readonly string[];
}

/** What a script decides on: one request, validated and within its window. */
export interface ModelRequest {
  readonly model: string;
  readonly stream: boolean;
  /** System and developer messages included. */
  readonly messages: readonly PromptMessage[];
  /** System and developer messages joined by empty lines. */
  readonly systemText: string;
  /** Names of the tools (or legacy functions) offered. */
  readonly toolNames: readonly string[];
  /** How many replies are wanted; at least 1. */
  readonly choices: number;
  /** The explicit limit of output tokens, or null. */
  readonly outputCap: number | null;
  readonly promptTokens: number;
  /** The parsed body as it came. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** The text of the last user message, or an empty string. */
export function lastUserText(messages: readonly PromptMessage[]): string {
  return messages.findLast((message) => message.role === 'user')?.text ?? '';
}
