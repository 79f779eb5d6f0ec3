import type { Refusal } from './answer.js';
import { anthropicError } from './anthropic-errors.js';
import { isRecord } from './json-value.js';

type Body = Readonly<Record<string, unknown>>;

/** Conversations that the provider holds, by the id of the message each has come to. */
export interface MessageThreads {
  /** A request with the history it continues in its place; the refusal says why it cannot be. */
  resolve(body: unknown): { readonly body: unknown } | Refusal;
  /** Remembers where a resolved request of a thread has come to. */
  keep(body: Body, messageId: string, content: readonly unknown[]): void;
}

/** `served` false: of a provider that knows no threads, and says so. */
export function createMessageThreads(served: boolean): MessageThreads {
  const held = new Map<string, Body>();
  return {
    resolve: (body) => {
      if (!isRecord(body) || !isRecord(body['thread'])) return { body };
      if (!served) return unsupported();
      const { type, previous_message_id: previousId } = body['thread'];
      if (type !== 'continue') return { body };
      const previous = held.get(String(previousId));
      if (previous === undefined) {
        return anthropicError(404, 'No usable Thread state', {
          type: 'not_found_error',
          details: { error_code: 'thread_not_found' },
        });
      }
      return { body: { ...previous, ...body, messages: [...listOf(previous), ...listOf(body)] } };
    },
    keep: (body, messageId, content) => {
      if (!isRecord(body['thread'])) return;
      const { system, tools } = body;
      held.set(messageId, { system, tools, messages: [...listOf(body), { role: 'assistant', content }] });
    },
  };
}

function unsupported(): Refusal {
  return anthropicError(400, 'thread: Extra inputs are not permitted', {
    details: { error_code: 'thread_unsupported_request' },
  });
}

function listOf({ messages }: Body): readonly unknown[] {
  return Array.isArray(messages) ? messages : [];
}
