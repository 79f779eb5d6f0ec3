import type { OwnResponse } from './dialect.js';
import { envelopeOf } from './openai-error.js';

/**
 * A reply of Spillway's own in the shape of an ordinary completion, whole or as a finished stream. No model was asked,
 * so a whole one reports zero tokens and a stream none. `createdAt` is in milliseconds, as everywhere; the wire has
 * seconds.
 */
export function answerBody(text: string, reply: OwnResponse & { readonly stream: boolean }): string {
  const { model } = reply;
  const id = `chatcmpl-${reply.id}`;
  const created = Math.floor(reply.createdAt / 1000);
  if (!reply.stream) {
    const message = { role: 'assistant', content: text, refusal: null };
    return JSON.stringify({
      id,
      object: 'chat.completion',
      created,
      model,
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    });
  }
  const chunk = (delta: object, finish: 'stop' | null): string => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices })}\n\n`;
  };
  const opening = chunk({ role: 'assistant', content: '', refusal: null }, null);
  return `${opening}${chunk({ content: text }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`;
}

/** A chunk that says nothing: with a role and an empty text, since some clients lose track over an empty delta. */
export function keepAlive(reply: OwnResponse): string {
  const created = Math.floor(reply.createdAt / 1000);
  const choices = [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }];
  const chunk = { id: `chatcmpl-${reply.id}`, object: 'chat.completion.chunk', created, model: reply.model, choices };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

/** One event, whatever lines the body has; what is no JSON becomes the message of an error. */
export function streamError(body: string): string {
  return `data: ${JSON.stringify(envelopeOf(body))}\n\ndata: [DONE]\n\n`;
}
