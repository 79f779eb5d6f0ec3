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
  /** JSON that holds all the model could read: the body, or what it stands for where the provider holds a part of the history. */
  readonly reads: unknown;
}

/** The text of the last user message, or an empty string. */
export function lastUserText(messages: readonly PromptMessage[]): string {
  return messages.findLast((message) => message.role === 'user')?.text ?? '';
}

/** The texts of system and developer messages joined by empty lines. */
export function systemTextOf(messages: readonly PromptMessage[]): string {
  const system = messages.filter(({ role }) => role === 'system' || role === 'developer');
  return system.map(({ text }) => text).join('\n\n');
}
