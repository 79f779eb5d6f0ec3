import type { OwnResponse } from './dialect.js';
import { applyEdits } from './json-edits.js';
import { memberSpans } from './json-spans.js';
import { isJsonObject, parsedJson, type JsonObject } from './json-value.js';
import { envelopeOf } from './openai-error.js';
import { eventTexts, responseEvents } from './responses-stream-of.js';

const NO_USAGE = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
};

/**
 * A reply of Spillway's own in the shape of an ordinary response, whole or as a finished stream. No model was asked, so it reports zero
 * tokens.
 */
export function answerBody(text: string, reply: OwnResponse & { readonly stream: boolean }): string {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
  const message = { id: `msg_${reply.id}`, type: 'message', status: 'completed', role: 'assistant', content };
  return outputBody([message], reply);
}

/** The same of any items. */
export function outputBody(output: readonly JsonObject[], reply: OwnResponse & { readonly stream: boolean }): string {
  const response = { ...responseOf(reply, 'completed'), output, usage: NO_USAGE };
  return reply.stream ? responseEvents(response, output) : JSON.stringify(response);
}

/** Items as the answer to a request for a compaction and nothing else, which is never streamed. */
export function compactionBody(output: readonly JsonObject[], { id, createdAt }: OwnResponse): string {
  return JSON.stringify({
    id: `resp_${id}`,
    object: 'response.compaction',
    created_at: Math.floor(createdAt / 1000),
    output,
    usage: NO_USAGE,
  });
}

/** A response that has begun, and after that signs that it goes on: clients take no other event first, and the first but once. */
export function keepAlive(reply: OwnResponse, sent: number): string {
  const type = sent === 0 ? 'response.created' : 'response.in_progress';
  return eventTexts([{ type, response: responseOf(reply, 'in_progress') }], sent);
}

/**
 * The events of a stream behind `sent` keep-alives, which have begun it already: no second `response.created`, and their numbers go on
 * from there. They keep all other characters, ids included (SPEC 6.6).
 */
export function resume(sent: number): (data: string) => string | null {
  let shift = sent;
  return (data) => {
    const event = parsedJson(data);
    if (!isJsonObject(event)) return data;
    if (event['type'] === 'response.created') {
      shift--;
      return null;
    }
    const number = event['sequence_number'];
    const span = memberSpans(data).get('sequence_number');
    if (typeof number !== 'number' || span === undefined) return data;
    return applyEdits(data, [{ ...span, text: String(number + shift) }]);
  };
}

/** The response's failure, and the error itself: some clients heed only the first, others only the second. */
export function streamError(body: string, reply: OwnResponse): string {
  const { error } = envelopeOf(body);
  const given = isJsonObject(error) ? error : { message: String(error) };
  const { message = 'The request failed.', type = 'upstream_error', code = null, param = null } = given;
  const failed = { ...responseOf(reply, 'failed'), error: { code: code ?? 'server_error', message } };
  return eventTexts([
    { type: 'response.failed', response: failed },
    { type: 'error', code, message, param, error: { ...given, type, code, message, param } },
  ]);
}

/** `createdAt` is in milliseconds, as everywhere; the wire has seconds. */
function responseOf({ model, id, createdAt }: OwnResponse, status: string): JsonObject {
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: Math.floor(createdAt / 1000),
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    model,
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: null,
  };
}
