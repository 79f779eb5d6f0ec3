import type { Message, Usage } from '../core/message.js';
import type { Reply } from './dialect.js';
import { isEmpty, isJsonObject, tokenCount, unlessTooDeep, type JsonObject } from './json-value.js';
import { groupsOf, readGroup, sourceOf } from './responses-group.js';
import { typeOf } from './responses-item.js';

/** Reads a whole reply; null if the body is neither one nor an error. */
export function readReply(body: unknown): Reply | null {
  if (!isJsonObject(body)) return null;
  const error = errorOf(body);
  const { output } = body;
  if (error === null && !Array.isArray(output)) return null;
  // Some servers leave the status out of what is whole.
  const status = body['status'] ?? (error === null ? 'completed' : 'failed');
  return replyOf({ ...body, status }, Array.isArray(output) ? output : [], { error, unread: null });
}

/**
 * The reply of a response, of which id, status, usage and the reason for being incomplete are read, with these output items. It is finished
 * once it completed or broke off at a limit, but never with an error (SPEC 2.3).
 */
export function replyOf(
  response: JsonObject,
  output: readonly unknown[],
  { error, unread }: Pick<Reply, 'error' | 'unread'>,
): Reply {
  const messages: Message[] = [];
  const references: { readonly id: string; readonly message: number }[] = [];
  let gap: Reply['unread'] = null;
  for (const group of groupsOf(output)) {
    const read = unlessTooDeep(() => ({ message: readGroup(sourceOf(output, group)) }));
    const message = read?.message ?? null;
    if (message === null) {
      gap ??= read === null ? 'too_deep' : 'malformed';
      continue;
    }
    const ids = output.slice(group.from, group.to).map(idOf);
    references.push(...ids.flatMap((id) => (id === null ? [] : [{ id, message: messages.length }])));
    messages.push(message);
  }
  const id = idOf(response);
  if (id !== null && messages.length > 0) references.push({ id, message: messages.length - 1 });
  return {
    messages,
    follows: true,
    references,
    stopReason: stopReasonOf(response),
    finished: error === null && (response['status'] === 'completed' || response['status'] === 'incomplete'),
    usage: readUsage(response['usage']),
    unread: unread ?? gap,
    error,
  };
}

function idOf(value: unknown): string | null {
  const id = isJsonObject(value) ? value['id'] : null;
  return typeof id === 'string' && id !== '' ? id : null;
}

/** Why a response ended; null while it has not. */
function stopReasonOf(response: JsonObject): string | null {
  const { status, incomplete_details: details } = response;
  if (typeof status !== 'string' || ['', 'in_progress', 'queued'].includes(status)) return null;
  const reason = isJsonObject(details) ? details['reason'] : null;
  return status === 'incomplete' && typeof reason === 'string' && reason !== '' ? reason : status;
}

/** Members by which an item alone says nothing: its kind, its names, how far it is. */
const FRAME: ReadonlySet<string> = new Set(['type', 'id', 'status', 'role', 'phase']);

/**
 * Whether an item says anything yet. What reasoning is encrypted to can be there before any of it was thought, and is nothing by itself
 * until the item is `done`.
 */
export function saysSomething(item: unknown, isDone: boolean): boolean {
  if (!isJsonObject(item)) return true;
  const type = typeOf(item);
  if (type === 'message') return saysText(item['content']);
  if (type !== 'reasoning') return Object.entries(item).some(([name, value]) => !FRAME.has(name) && !isEmpty(value));
  return saysText(item['summary']) || saysText(item['content']) || (isDone && !isEmpty(item['encrypted_content']));
}

function saysText(parts: unknown): boolean {
  if (!Array.isArray(parts)) return !isEmpty(parts);
  const texts = ['text', 'refusal'];
  return parts.some(
    (part) =>
      !isJsonObject(part) ||
      !texts.some((member) => part[member] === '') ||
      texts.some((member) => !isEmpty(part[member])),
  );
}

/** The error in a body or a response, in the envelope an HTTP error has; null if there is none. */
export function errorOf(value: JsonObject): string | null {
  if (!isEmpty(value['error'])) return JSON.stringify({ error: value['error'] });
  return value['status'] === 'failed'
    ? JSON.stringify({ error: { message: 'The response failed.', code: null } })
    : null;
}

/**
 * Usage as reported; null when nothing was. No prompt is empty, so zero input tokens are "not reported" (SPEC 9.4), and zero output
 * tokens beside them as well.
 */
function readUsage(value: unknown): Usage | null {
  if (!isJsonObject(value)) return null;
  const input = tokenCount(value, 'input_tokens') || null;
  const output = tokenCount(value, 'output_tokens');
  const usage = {
    inputTokens: input,
    outputTokens: input === null ? output || null : output,
    cachedTokens: tokenCount(value['input_tokens_details'], 'cached_tokens'),
    reasoningTokens: tokenCount(value['output_tokens_details'], 'reasoning_tokens'),
  };
  return usage.inputTokens === null && usage.outputTokens === null ? null : usage;
}
