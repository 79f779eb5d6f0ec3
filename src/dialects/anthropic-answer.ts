import { errorOf } from './anthropic-reply.js';
import type { ErrorForm, OwnResponse } from './dialect.js';
import { isJsonObject, parsedJson, type JsonObject } from './json-value.js';

/**
 * A reply of Spillway's own in the shape of an ordinary message, whole or as a finished stream. No model was asked, so it reports zero
 * tokens.
 */
export function answerBody(text: string, reply: OwnResponse & { readonly stream: boolean }): string {
  const message = {
    id: `msg_${reply.id}`,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 0, output_tokens: 0 },
  };
  return reply.stream ? messageEvents(message, message.content) : JSON.stringify(message);
}

/** A whole message's body as the events of a stream; null for what is no message. */
export function streamOf(body: string): string | null {
  const message = parsedJson(body);
  if (!isJsonObject(message) || errorOf(message) !== null) return null;
  const content: unknown = message['content'];
  if (!Array.isArray(content) || !content.every(isJsonObject)) return null;
  return messageEvents(message, content);
}

/** A message as its events, each block in one delta. */
function messageEvents(message: JsonObject, content: readonly JsonObject[]): string {
  const { stop_reason = null, stop_sequence = null, stop_details, usage = {}, ...rest } = message;
  const stop = { stop_reason, stop_sequence, ...(stop_details === undefined ? {} : { stop_details }) };
  return [
    event({ type: 'message_start', message: { ...rest, content: [], stop_reason: null, stop_sequence: null, usage } }),
    ...content.flatMap((block, index) => blockEvents(block, index)),
    event({ type: 'message_delta', delta: stop, usage }),
    event({ type: 'message_stop' }),
  ].join('');
}

/** Blocks that arrive in pieces begin empty; all others come whole. */
function blockEvents(block: JsonObject, index: number): readonly string[] {
  const { start, deltas } = inPieces(block);
  return [
    event({ type: 'content_block_start', index, content_block: start }),
    ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
    event({ type: 'content_block_stop', index }),
  ];
}

function inPieces(block: JsonObject): { readonly start: JsonObject; readonly deltas: readonly JsonObject[] } {
  switch (block['type']) {
    case 'text': {
      const citations: readonly unknown[] = Array.isArray(block['citations']) ? block['citations'] : [];
      const start = { ...block, text: '', ...(citations.length > 0 ? { citations: [] } : {}) };
      const cited = citations.map((citation) => ({ type: 'citations_delta', citation }));
      return { start, deltas: [...cited, { type: 'text_delta', text: block['text'] }] };
    }
    case 'thinking': {
      const { thinking, signature } = block;
      const signed = isFilled(signature) ? [{ type: 'signature_delta', signature }] : [];
      const start = { ...block, thinking: '', signature: '' };
      return { start, deltas: [{ type: 'thinking_delta', thinking }, ...signed] };
    }
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use': {
      const partial_json = JSON.stringify(block['input'] ?? {});
      return { start: { ...block, input: {} }, deltas: [{ type: 'input_json_delta', partial_json }] };
    }
    default:
      return { start: block, deltas: [] };
  }
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Allowed anywhere in a stream, before its first event too. */
export function keepAlive(): string {
  return event({ type: 'ping' });
}

/** One event, whatever lines the body has; what is no error of this form becomes the message of one. */
export function streamError(body: string): string {
  const value = parsedJson(body);
  const isError = isJsonObject(value) && isJsonObject(value['error']);
  return event(isError ? { ...value, type: 'error' } : { type: 'error', error: { type: 'api_error', message: body } });
}

/** The provider's error types; its clients go by them. */
const TYPE_OF_STATUS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
};

/**
 * An error in Anthropic's envelope, whose clients know an overflow by its words (SPEC 7.7) and any other cause by
 * `details.error_code`.
 */
export function errorBody(form: ErrorForm): string {
  const { status, field, code } = form;
  const type = TYPE_OF_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  const message =
    form.overflow === null
      ? form.message
      : `prompt is too long: ${form.overflow.usedTokens} tokens > ${form.overflow.limitTokens} maximum. ${form.message}`;
  return JSON.stringify({ type: 'error', error: { type, message, details: { error_code: code, param: field } } });
}

function event(data: JsonObject): string {
  return `event: ${String(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`;
}
