import { errorOf } from './chat-reply.js';
import { isJsonObject, parsedJson, type JsonObject } from './json-value.js';

/**
 * A whole completion as the chunks of a stream: each choice's message in one delta, then its stop reason, then the usage where it
 * was asked for. All other members are carried over as they are. Null for what is no completion.
 */
export function streamOf(body: string, options: { readonly includesUsage: boolean }): string | null {
  const completion = parsedJson(body);
  if (!isJsonObject(completion) || !Array.isArray(completion['choices']) || errorOf(completion) !== null) return null;
  const choices: readonly unknown[] = completion['choices'];
  if (!choices.every(isJsonObject) || choices.some((choice) => errorOf(choice) !== null)) return null;
  const { usage, choices: _, ...rest } = completion;
  const chunk = (members: JsonObject): string =>
    `data: ${JSON.stringify({ ...rest, object: 'chat.completion.chunk', ...members })}\n\n`;
  const events = choices.flatMap((choice, position) => {
    const { message, finish_reason: reason = null, index = position, ...more } = choice;
    const said = { index, delta: deltaOf(message), ...more, finish_reason: null };
    const stopped = { index, delta: {}, finish_reason: reason };
    return [chunk({ choices: [said] }), chunk({ choices: [stopped] })];
  });
  if (options.includesUsage && isJsonObject(usage)) events.push(chunk({ choices: [], usage }));
  return `${events.join('')}data: [DONE]\n\n`;
}

/** A message's members; only its tool calls have another form in a delta, where each says its place. */
function deltaOf(message: unknown): JsonObject {
  if (!isJsonObject(message)) return {};
  if (!Array.isArray(message['tool_calls'])) return message;
  const calls: readonly unknown[] = message['tool_calls'];
  return { ...message, tool_calls: calls.map((call, index) => (isJsonObject(call) ? { index, ...call } : call)) };
}
