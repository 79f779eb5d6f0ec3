import type { ErrorForm } from './dialect.js';

/**
 * A reply of Spillway's own in the shape of an ordinary completion, whole or as a finished stream. No model was asked,
 * so a whole one reports zero tokens and a stream none. `createdAt` is in milliseconds, as everywhere; the wire has
 * seconds.
 */
export function answerBody(
  text: string,
  reply: { readonly model: string; readonly stream: boolean; readonly id: string; readonly createdAt: number },
): string {
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

/** An error in OpenAI's envelope. */
export function errorBody(form: ErrorForm): string {
  const { message, type, field, code } = form;
  return JSON.stringify({ error: { message, type, param: field, code } });
}
